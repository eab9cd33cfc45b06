/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
#ifndef TM_BARE_CLONES_H
#define TM_BARE_CLONES_H

/* Called once, by the first caller, before any of its transactions; other callers wait. */
void tm_bare_clones_register(void);

#endif
