/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
#ifndef TM_BARE_CLONES_H
#define TM_BARE_CLONES_H

#include <tm/compiler.h>

TM_DECLARATIONS_BEGIN

/* Called once, by the first caller, before any of its transactions; other callers wait. */
void tm_bare_clones_register(void);

TM_DECLARATIONS_END

#endif
