/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
#include <tm/lock/mcs.h>

void tm_mcs_lock_wait(struct tm_mcs_node *node, struct tm_mcs_node *previous)
{
    unsigned turns = 0;

    __atomic_store_n(&node->waiting, 1, __ATOMIC_RELAXED);
    /* Release: `waiting` is set before the predecessor can find this node and clear it. */
    __atomic_store_n(&previous->next, node, __ATOMIC_RELEASE);
    while (__atomic_load_n(&node->waiting, __ATOMIC_ACQUIRE))
        tm_port_wait(&turns);
}

void tm_mcs_lock_hand_over(struct tm_mcs_node *node)
{
    struct tm_mcs_node *next;
    unsigned turns = 0;

    /* The tail is another node, so its owner is between the exchange of the tail and the link. */
    while (!(next = __atomic_load_n(&node->next, __ATOMIC_ACQUIRE)))
        tm_port_wait(&turns);
    __atomic_store_n(&next->waiting, 0, __ATOMIC_RELEASE);
}
