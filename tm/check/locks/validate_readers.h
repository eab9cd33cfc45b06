/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* The part of validate.c for locks that readers share. */

static void readers_body(unsigned thread)
{
    uint64_t random = random_state(validate_seed, thread);

    for (uint64_t i = 0; i < stress.sections; i++) {
        LOCK_CONTEXT context;

        (void)context;
        /* The first thread writes most of the time, the others read. */
        if (random_below(&random, 16) < (thread == 0 ? 12 : 1)) {
            LOCK_ACQUIRE(&lock, &context);
            guarded_add(&guarded, stress.turns, random_below(&random, 16) == 0);
            LOCK_RELEASE(&lock, &context);
        } else {
            bool taken = false;

            if (random_below(&random, 4) == 0)
                taken = LOCK_READ_TRY_ACQUIRE(&lock, &context);
            if (!taken)
                LOCK_READ_ACQUIRE(&lock, &context);
            guarded_check(&guarded);
            if (!LOCK_TRANSACTIONAL && random_below(&random, 32) == 0)
                host_yield();
            work(stress.turns);
            guarded_check(&guarded);
            LOCK_READ_RELEASE(&lock, &context);
        }
    }
}

static void test_readers(void)
{
    static const unsigned counts[] = {2, 3, 8, 32};

    for (unsigned i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
        for (unsigned turns = 0; turns <= 300; turns += 300) {
            if (counts[i] > host_threads_max())
                continue;
            stress.sections = validate_sections / counts[i];
            stress.turns = turns;
            host_run(counts[i], readers_body);
            guarded_expect(&guarded, guarded.lines[0].value);
            expect(LOCK_IS_IDLE(&lock), "the lock is not idle though nobody wants it");
        }
}

#if !LOCK_TRANSACTIONAL
static unsigned writer_has_been;

static void sharing_first_reader(void)
{
    LOCK_CONTEXT context, another;
    uint64_t waiters;
    unsigned turns = 0;

    (void)context;
    (void)another;
    LOCK_READ_ACQUIRE(&lock, &context);
    step_to(1);
    /* The second reader has the lock as well, and releases it. */
    step_wait(2);
    waiters = LOCK_WAITERS(&lock);
    step_to(3);
    /* The writer waits, and bars the way; then the second reader waits behind it. */
    waiters = waiter_wait(&lock, waiters);
    while (LOCK_READ_TRY_ACQUIRE(&lock, &another)) {
        LOCK_READ_RELEASE(&lock, &another);
        tm_port_wait(&turns);
    }
    step_to(4);
    waiter_wait(&lock, waiters);
    LOCK_READ_RELEASE(&lock, &context);
}

static void sharing_second_reader(void)
{
    LOCK_CONTEXT context;

    (void)context;
    step_wait(1);
    LOCK_READ_ACQUIRE(&lock, &context);
    expect(!LOCK_TRY_ACQUIRE(&lock, &context), "a writer's try took what readers hold");
    LOCK_READ_RELEASE(&lock, &context);
    expect(LOCK_READ_TRY_ACQUIRE(&lock, &context), "a reader's try failed though only readers hold the lock");
    LOCK_READ_RELEASE(&lock, &context);
    step_to(2);
    step_wait(4);
    LOCK_READ_ACQUIRE(&lock, &context);
    expect(__atomic_load_n(&writer_has_been, __ATOMIC_RELAXED), "a reader overtook a writer");
    LOCK_READ_RELEASE(&lock, &context);
}

static void sharing_body(unsigned thread)
{
    LOCK_CONTEXT context;

    (void)context;
    if (thread == 0) {
        sharing_first_reader();
    } else if (thread == 1) {
        sharing_second_reader();
    } else {
        step_wait(3);
        LOCK_ACQUIRE(&lock, &context);
        __atomic_store_n(&writer_has_been, 1, __ATOMIC_RELAXED);
        LOCK_RELEASE(&lock, &context);
    }
}

/* Readers share; a writer does not; a reader that arrives after a waiting writer waits behind it. */
static void test_sharing(void)
{
    LOCK_CONTEXT context;

    (void)context;
    for (unsigned i = 0; i < 20 && host_threads_max() >= 3; i++) {
        writer_has_been = 0;
        step_to(0);
        host_run(3, sharing_body);
    }
    LOCK_ACQUIRE(&lock, &context);
    expect(!LOCK_READ_TRY_ACQUIRE(&lock, &context), "a reader's try took what a writer holds");
    LOCK_RELEASE(&lock, &context);
}
#endif
