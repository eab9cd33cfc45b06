/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Makes it an error to link a program with both libraries, whose names are the same: of two archives the linker would
 * silently take the first. The Makefile includes this header in front of an algorithm's file and defines TM_OWN and
 * TM_OTHER, each 2pl or tl2.
 *
 * An algorithm's object has a common symbol. The other archive has a member with a definition of this symbol
 * (one_library.c), for which linkers take such a member, and with another symbol, which the object also defines: its
 * name is what the linker then reports.
 */
#ifndef TM_STM_ONE_LIBRARY_H
#define TM_STM_ONE_LIBRARY_H

#define TM_JOIN_(first, second) first##second
#define TM_JOIN(first, second) TM_JOIN_(first, second)

#define TM_COMMON(library) TM_JOIN(tm_library_, library)
#define TM_REPORTED(library) TM_JOIN(tm_link_with_one_library_only__there_is_already_libtm_, library)

#ifdef TM_OWN
__attribute__((common)) char TM_COMMON(TM_OWN);
extern const char TM_REPORTED(TM_OWN);
const char TM_REPORTED(TM_OWN) = 1;
#endif

#endif
