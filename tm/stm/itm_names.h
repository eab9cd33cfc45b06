/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The compiler's names of an algorithm's loads and stores: other names for the same code, so that a barrier costs one
 * call. Included at the end of the file that defines them.
 */
#ifndef TM_STM_ITM_NAMES_H
#define TM_STM_ITM_NAMES_H

#ifdef TM_WITHOUT_ITM
/* A host whose programs are not compiled with -fgnu-tm. */
#define TM_ITM_NAMES(load_for_write)
#else

#include "itm.h"

#define ITM_ALIASES(suffix, bits, load_for_write) \
    ITM_ALIAS(R##suffix, tm_load##bits) \
    ITM_ALIAS(RaR##suffix, tm_load##bits) \
    ITM_ALIAS(RaW##suffix, tm_load##bits) \
    ITM_ALIAS(RfW##suffix, load_for_write##bits) \
    ITM_ALIAS(W##suffix, tm_store##bits) \
    ITM_ALIAS(WaR##suffix, tm_store##bits) \
    ITM_ALIAS(WaW##suffix, tm_store##bits)

/*
 * `load_for_write`: the beginning of the names of loads that expect a store to the same address; tm_load where there
 * are none.
 */
#define TM_ITM_NAMES(load_for_write) \
    ITM_ALIASES(U1, 8, load_for_write) \
    ITM_ALIASES(U2, 16, load_for_write) \
    ITM_ALIASES(U4, 32, load_for_write) \
    ITM_ALIASES(U8, 64, load_for_write)

#endif
#endif
