/* SPDX-License-Identifier: GPL-2.0 OR MIT */
#ifndef CONCORD_REGION_H
#define CONCORD_REGION_H

/*
 * Begins the machine's region of interest. The environment variable CONCORD_GEAR chooses the region's gear ("timed" or
 * "functional"); without the variable the gear does not change.
 */
void begin_region(void);

/* Ends the region of interest. The gear becomes functional if CONCORD_GEAR chose one. */
void end_region(void);

#endif
