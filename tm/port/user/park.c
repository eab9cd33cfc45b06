/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Sleeping on a word: the kernel compares it again before the thread sleeps (futex). */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <tm/port.h>

void tm_port_park(const volatile unsigned *word, unsigned value)
{
    int saved = errno;

    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
    errno = saved;
}

void tm_port_unpark(volatile unsigned *word, unsigned processor)
{
    int saved = errno;

    (void)processor;
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    errno = saved;
}
