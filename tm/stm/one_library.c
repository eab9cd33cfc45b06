/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What meets the other library (one_library.h), as a member of an archive; and with TM_SHARED as what the linker's script
 * of a shared object takes into each program: of two such scripts both define the same symbol.
 */
#undef TM_OWN
#include "one_library.h"

extern const char TM_REPORTED(TM_OTHER);
const char TM_REPORTED(TM_OTHER) = 1;

#ifdef TM_SHARED
extern const char TM_REPORTED(another), TM_JOIN(tm_shared_, TM_SHARED);
const char TM_REPORTED(another) = 1, TM_JOIN(tm_shared_, TM_SHARED) = 1;
#else
extern char TM_COMMON(TM_OTHER);
char TM_COMMON(TM_OTHER) = 1;
#endif
