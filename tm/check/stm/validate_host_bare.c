/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Interrupts with transactions, and memory that is poisoned once it is freed, on bare harts. */
#include "validate.h"

#define MAGIC 0x677561726465645full

/* The header before each guarded allocation. */
struct header {
    uint64_t magic;
    size_t size_bytes;
};

void *__real_tm_port_allocate(size_t size_bytes, unsigned flags);
void __real_tm_port_free(void *memory);

void *validate_guarded_allocate(size_t size_bytes)
{
    struct header *header = __real_tm_port_allocate(sizeof *header + size_bytes, 0);

    if (!header)
        return NULL;
    *header = (struct header){MAGIC, size_bytes};
    return header + 1;
}

bool validate_guarded_free(void *memory)
{
    struct header *header = (struct header *)memory - 1;

    if (header->magic != MAGIC)
        return false;
    header->magic = 0;
    __builtin_memset(memory, VALIDATE_POISON, header->size_bytes);
    __real_tm_port_free(header);
    return true;
}

void validate_host_prepare(void)
{
}

static void (*interrupt_handler)(unsigned depth);

/* The host part has interrupts on here, except at the innermost level. */
static void handle(unsigned depth)
{
    unsigned long interrupts = tm_port_interrupts_disable();

    tm_bare_transactions_enter();
    tm_port_interrupts_restore(interrupts);
    interrupt_handler(depth);
    tm_port_interrupts_disable();
    tm_bare_transactions_leave();
    tm_port_interrupts_restore(interrupts);
}

void validate_interrupts_begin(void (*handler)(unsigned depth), unsigned period_us)
{
    __atomic_store_n(&interrupt_handler, handler, __ATOMIC_RELAXED);
    VALIDATE(tm_bare_transactions_prepare(host_interrupt_levels()), "tm_bare_transactions_prepare");
    host_interrupts_begin(handle, period_us);
}

void validate_interrupts_end(void)
{
    host_interrupts_end();
}

const struct validate_family validate_host_families[] = {
    {0},
};
