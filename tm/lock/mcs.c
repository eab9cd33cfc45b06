/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
#include <tm/lock/mcs.h>

void tm_mcs_lock_wait(struct tm_mcs_node *node, struct tm_mcs_node *previous)
{
    unsigned turns = 0;

    __atomic_store_n(&node->waiting, 1, __ATOMIC_RELAXED);
    /* Release: `waiting` is set before the one ahead can find us and clear it. */
    __atomic_store_n(&previous->next, node, __ATOMIC_RELEASE);
    while (__atomic_load_n(&node->waiting, __ATOMIC_ACQUIRE))
        tm_port_wait(&turns);
}

void tm_mcs_lock_hand_over(struct tm_mcs_node *node)
{
    struct tm_mcs_node *next;
    unsigned turns = 0;

    /* There is a tail behind us, so somebody is between the exchange of the tail and the link. */
    while (!(next = __atomic_load_n(&node->next, __ATOMIC_ACQUIRE)))
        tm_port_wait(&turns);
    __atomic_store_n(&next->waiting, 0, __ATOMIC_RELEASE);
}
