/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Marks the machine's region of interest: see region.h. */
#include "region.h"
#include "concord.h"
#include <stdlib.h>
#include <string.h>

void begin_region(void)
{
	const char *gear = getenv("CONCORD_GEAR");

	concord_hint(CONCORD_HINT_REGION_BEGIN, 0);
	if (gear && !strcmp(gear, "timed"))
		concord_hint(CONCORD_HINT_GEAR_TIMED, 0);
	else if (gear && !strcmp(gear, "functional"))
		concord_hint(CONCORD_HINT_GEAR_FUNCTIONAL, 0);
}

void end_region(void)
{
	concord_hint(CONCORD_HINT_REGION_END, 0);
	if (getenv("CONCORD_GEAR"))
		concord_hint(CONCORD_HINT_GEAR_FUNCTIONAL, 0);
}
