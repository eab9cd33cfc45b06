/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What a program on bare harts does besides what any port does: programs on top of workloads/bare's runtime call it
 * from `run`.
 */
#ifndef TM_BARE_HARTS_H
#define TM_BARE_HARTS_H

#include <tm/port.h>

/*
 * Makes the calling hart the processor of this number, and has its traps handled. First on each hart, before anything
 * of the library.
 */
void tm_bare_hart_start(unsigned processor);

#endif
