/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
#include <tm/statistics.h>

#if TM_STATISTICS
struct tm_statistics tm_statistics[TM_PROCESSORS_MAX];

void tm_statistics_read(uint64_t counts[TM_STATISTICS_COUNT])
{
    for (unsigned i = 0; i < TM_STATISTICS_COUNT; i++) {
        counts[i] = 0;
        for (unsigned processor = 0; processor < TM_PROCESSORS_MAX; processor++)
            counts[i] += __atomic_load_n(&tm_statistics[processor].counts[i], __ATOMIC_RELAXED);
    }
}

void tm_statistics_reset(void)
{
    for (unsigned processor = 0; processor < TM_PROCESSORS_MAX; processor++)
        for (unsigned i = 0; i < TM_STATISTICS_COUNT; i++)
            __atomic_store_n(&tm_statistics[processor].counts[i], 0, __ATOMIC_RELAXED);
}
#else
void tm_statistics_read(uint64_t counts[TM_STATISTICS_COUNT])
{
    for (unsigned i = 0; i < TM_STATISTICS_COUNT; i++)
        counts[i] = 0;
}

void tm_statistics_reset(void)
{
}
#endif

static const struct {
    const char *name;
    const char *description;
} registry[TM_STATISTICS_COUNT] = {
#define X(NAME, name, description) [TM_STATISTIC_##NAME] = {#name, description},
    TM_STATISTICS_REGISTRY(X)
#undef X
};

const char *tm_statistics_name(enum tm_statistic statistic)
{
    return (unsigned)statistic < TM_STATISTICS_COUNT ? registry[statistic].name : NULL;
}

const char *tm_statistics_description(enum tm_statistic statistic)
{
    return (unsigned)statistic < TM_STATISTICS_COUNT ? registry[statistic].description : NULL;
}
