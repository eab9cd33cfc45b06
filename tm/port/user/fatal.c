/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include <tm/port.h>

void tm_port_fatal(const char *what)
{
    struct iovec parts[] = {
        {.iov_base = (void *)"tm: ", .iov_len = 4},
        {.iov_base = (void *)(uintptr_t)what, .iov_len = strlen(what)},
        {.iov_base = (void *)"\n", .iov_len = 1},
    };

    /* One call, so that the reports of two threads do not mix. Its failure cannot be reported. */
    if (writev(STDERR_FILENO, parts, 3) < 0)
        abort();
    abort();
}
