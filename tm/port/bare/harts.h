/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The calls of a program on bare harts beyond those of any port. Programs on the runtime of port/bare call them from
 * `run`.
 */
#ifndef TM_BARE_HARTS_H
#define TM_BARE_HARTS_H

#include <tm/port.h>

TM_DECLARATIONS_BEGIN

/*
 * Makes the calling hart the processor of this number, and handles its traps. Each hart calls it before any other
 * function of the library.
 */
void tm_bare_hart_start(unsigned processor);

TM_DECLARATIONS_END

#endif
