/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* The kernel is compiled without the compiler's own headers, and has these types elsewhere. */
#include <linux/stddef.h>
#include <linux/types.h>
