/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
#include <tm/lock/ticket.h>

void tm_ticket_lock_wait(struct tm_ticket_lock *lock, uint16_t ticket)
{
    unsigned turns = 0;

    /* The acquire pairs with the release by the holder of the ticket before. */
    while (__atomic_load_n(&lock->serving, __ATOMIC_ACQUIRE) != ticket)
        tm_port_wait(&turns);
}
