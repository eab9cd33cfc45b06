/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* The common part of the adapters of locks whose sections may be transactions. */
#ifndef TM_CHECK_LOCKS_TRANSACTIONAL_H
#define TM_CHECK_LOCKS_TRANSACTIONAL_H

#include <tm/htm.h>

#include "../host.h"
#include "../words.h"

#define LOCK_KIND transactional
#define LOCK_TRANSACTIONAL 1

/* The word htm=off makes them locks. */
#define LOCK_SETUP() transactional_setup()
static inline void transactional_setup(void)
{
    if (words_equal(host_text("htm", "on"), "off"))
        tm_htm_disable();
}

#endif
