/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
#ifndef TM_BARE_CLONES_H
#define TM_BARE_CLONES_H

/* Once, whoever calls first, and before any transaction of the caller's: others wait. */
void tm_bare_clones_register(void);

#endif
