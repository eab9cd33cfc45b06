/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* The kernel is compiled without the compiler's own headers, and has these types elsewhere. */
#ifndef TM_LINUX_STDINT_H
#define TM_LINUX_STDINT_H

#include <linux/limits.h>
#include <linux/types.h>

/* Some kernels define some of these. */
#ifndef UINT8_MAX
#define UINT8_MAX U8_MAX
#endif
#ifndef UINT16_MAX
#define UINT16_MAX U16_MAX
#endif
#ifndef UINT32_MAX
#define UINT32_MAX U32_MAX
#endif
#ifndef UINT64_MAX
#define UINT64_MAX U64_MAX
#endif

#endif
