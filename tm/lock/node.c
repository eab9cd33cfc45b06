/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
#include "node.h"

struct tm_lock_processor tm_lock_processors[TM_PROCESSORS_MAX];
