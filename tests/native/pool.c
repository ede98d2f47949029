/* The thread pool under stress: every check must hold for any interleaving. */
#include "pool.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "check.h"
#include "platform.h"
#include "wait.h"

#ifndef ROUNDS
#define ROUNDS 2000
#endif

static tw_launch launch_of(tw_kernel kernel, void *const *buffers, int32_t threads) {
    return (tw_launch){.kernel = kernel, .buffers = buffers, .threads = threads};
}

static void run(const tw_launch *launch) {
    int32_t result = -1;
    CHECK(tw_run(launch, &result) == TW_OK);
    CHECK(result == 0);
}

/* Each thread adds one to its own plain counter: a lost or doubled run shows, a race is reported. */
static int32_t count(void *const *buffers, const int64_t *sizes, tw_context *context) {
    (void)sizes;
    ((int64_t *)buffers[0])[context->thread * 16] += 1;
    return 0;
}

static void test_every_thread_runs_exactly_once(void) {
    int64_t counts[9 * 16] = {0};
    int64_t expected[9] = {0};
    void *buffers[] = {counts};
    for (int round = 0; round < ROUNDS; round++) {
        int32_t threads = 1 + round * 7 % 9;
        tw_launch launch = launch_of(count, buffers, threads);
        run(&launch);
        for (int32_t i = 0; i < threads; i++)
            expected[i]++;
    }
    for (int i = 0; i < 9; i++)
        CHECK(counts[i * 16] == expected[i]);
}

/* Neighbours read what the stage before wrote, without atomics: only the barrier orders them. */
static int32_t rotate(void *const *buffers, const int64_t *sizes, tw_context *context) {
    int64_t *values = buffers[0], *other = buffers[1];
    int32_t next = (context->thread + 1) % context->threads;
    for (int64_t stage = 0; stage < sizes[0]; stage++) {
        other[context->thread * 16] = values[next * 16] + 1;
        context->barrier(context);
        int64_t *swap = values;
        values = other;
        other = swap;
    }
    return 0;
}

static void test_barrier_orders_stages(void) {
    int64_t sizes[] = {50};
    for (int round = 0; round < ROUNDS / 20; round++) {
        int32_t threads = 1 + round % 6;
        int64_t first[6 * 16] = {0}, second[6 * 16] = {0};
        for (int32_t i = 0; i < threads; i++)
            first[i * 16] = i;
        void *buffers[] = {first, second};
        tw_launch launch = launch_of(rotate, buffers, threads);
        launch.sizes = sizes;
        run(&launch);
        for (int32_t i = 0; i < threads; i++)
            CHECK(first[i * 16] == (i + sizes[0]) % threads + sizes[0]);
    }
}

static int32_t fill_scratch(void *const *buffers, const int64_t *sizes, tw_context *context) {
    (void)buffers;
    if ((uintptr_t)context->shared % TW_ALIGNMENT || (uintptr_t)context->local % TW_ALIGNMENT)
        return 1;
    unsigned char *shared = context->shared, *local = context->local;
    int64_t part = sizes[0] / context->threads;
    memset(local, context->thread, (size_t)sizes[0]);
    memset(shared + context->thread * part, context->thread + 1, (size_t)part);
    context->barrier(context);
    for (int64_t i = 0; i < part * context->threads; i++)
        if (shared[i] != i / part + 1)
            return 2;
    for (int64_t i = 0; i < sizes[0]; i++)
        if (local[i] != context->thread)
            return 3;
    return 0;
}

static void test_scratch_is_private_or_shared(void) {
    for (int32_t round = 0; round < 40; round++) {
        int64_t sizes[] = {1000 + 997 * (round % 7)};
        tw_launch launch = launch_of(fill_scratch, NULL, 1 + round % 5);
        launch.sizes = sizes;
        launch.shared_bytes = launch.local_bytes = (size_t)sizes[0];
        run(&launch);
    }
}

/* Threads 1 and 3 leave before the barriers; the others must neither hang nor lose order. */
static int32_t leave_early(void *const *buffers, const int64_t *sizes, tw_context *context) {
    if (context->thread % 2 == 1)
        return 10 + context->thread;
    return count(buffers, sizes, context) + (context->barrier(context), 0)
        + (context->barrier(context), 0);
}

static void test_failure_is_reported_and_hangs_nobody(void) {
    static int64_t counts[5 * 16];
    void *buffers[] = {counts};
    for (int round = 0; round < ROUNDS / 10; round++) {
        for (int32_t threads = 2; threads <= 5; threads++) {
            tw_launch launch = launch_of(leave_early, buffers, threads);
            int32_t result = 0;
            CHECK(tw_run(&launch, &result) == TW_OK);
            CHECK(result == 11);
        }
        tw_launch launch = launch_of(count, buffers, 5);
        run(&launch);
    }
}

static int32_t nested(void *const *buffers, const int64_t *sizes, tw_context *context) {
    (void)sizes;
    tw_launch inner = launch_of(count, buffers, 1 + context->thread);
    int32_t result = 0;
    return (int32_t)tw_run(&inner, &result);
}

static void test_nested_call_is_refused(void) {
    int64_t counts[16] = {0};
    void *buffers[] = {counts};
    for (int32_t threads = 1; threads <= 3; threads++) {
        tw_launch launch = launch_of(nested, buffers, threads);
        int32_t result = 0;
        CHECK(tw_run(&launch, &result) == TW_OK);
        CHECK(result == TW_NESTED);
    }
    CHECK(counts[0] == 0);
}

static void test_bad_thread_counts_are_refused(void) {
    int32_t result = 0;
    int32_t bad[] = {0, -1, TW_MAX_THREADS + 1};
    for (int i = 0; i < 3; i++) {
        tw_launch launch = launch_of(count, NULL, bad[i]);
        CHECK(tw_run(&launch, &result) == TW_BAD_THREADS);
    }
}

static int32_t sum_with_barriers(void *const *buffers, const int64_t *sizes, tw_context *context) {
    (void)sizes;
    int64_t *shared = context->shared;
    shared[context->thread * 16] = context->thread + 1;
    context->barrier(context);
    if (context->thread == 0)
        for (int32_t i = 0; i < context->threads; i++)
            *(int64_t *)buffers[0] += shared[i * 16];
    return 0;
}

static void *call_often(void *argument) {
    int32_t threads = *(int32_t *)argument;
    int64_t sum = 0;
    void *buffers[] = {&sum};
    tw_launch launch = launch_of(sum_with_barriers, buffers, threads);
    launch.shared_bytes = (size_t)threads * 128;
    for (int round = 0; round < ROUNDS / 10; round++)
        run(&launch);
    CHECK(sum == ROUNDS / 10 * threads * (threads + 1) / 2);
    return NULL;
}

static void test_callers_may_be_concurrent(void) {
    pthread_t callers[5];
    int32_t threads[5] = {1, 2, 3, 4, 2};
    for (int i = 0; i < 5; i++)
        CHECK(pthread_create(&callers[i], NULL, call_often, &threads[i]) == 0);
    for (int i = 0; i < 5; i++)
        pthread_join(callers[i], NULL);
}

static void test_workers_sleep_and_wake(void) {
    int64_t counts[4 * 16] = {0};
    void *buffers[] = {counts};
    tw_launch launch = launch_of(count, buffers, 4);
    for (int round = 0; round < 20; round++) {
        run(&launch);
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    CHECK(counts[0] == 20 && counts[3 * 16] == 20);
}

static void test_far_more_threads_than_processors(void) {
    static int64_t first[64 * 16], second[64 * 16];
    void *buffers[] = {first, second};
    int64_t sizes[] = {4};
    for (int32_t i = 0; i < 64; i++)
        first[i * 16] = i;
    tw_launch launch = launch_of(rotate, buffers, 64);
    launch.sizes = sizes;
    run(&launch);
    for (int32_t i = 0; i < 64; i++)
        CHECK(first[i * 16] == (i + 4) % 64 + 4);
}

static void test_shutdown_ends_workers_and_calls_revive_them(void) {
    int64_t counts[3 * 16] = {0};
    void *buffers[] = {counts};
    tw_launch launch = launch_of(count, buffers, 3);
    for (int round = 0; round < 5; round++) {
        run(&launch);
        CHECK(tw_count_workers() >= 2);
        tw_shutdown();
        CHECK(tw_count_workers() == 0);
    }
    CHECK(counts[2 * 16] == 5);
}

static int32_t report_mode(void *const *buffers, const int64_t *sizes, tw_context *context) {
    (void)sizes;
    ((tw_float_mode *)buffers[0])[context->thread] = tw_get_float_mode();
    return 0;
}

static void test_float_mode_is_the_default_on_all_threads(void) {
    tw_float_mode modes[3], own = tw_get_float_mode();
    void *buffers[] = {modes};
    tw_launch launch = launch_of(report_mode, buffers, 3);
#if defined(__x86_64__)
    tw_float_mode flush = own | 0x8040u; /* denormals are zero, both ways */
#else
    tw_float_mode flush = own;
#endif
    tw_set_float_mode(flush);
    run(&launch);
    CHECK(tw_get_float_mode() == flush);
    tw_set_float_mode(own);
    for (int i = 0; i < 3; i++)
        CHECK(modes[i] == TW_FLOAT_MODE_DEFAULT);
}

static void *leave(void *unused) {
    (void)unused;
    for (int i = 0; i < 20; i++) {
        int32_t here = tw_this_cpu();
        tw_leave_cpu(here);
        CHECK(here < 0 || tw_this_cpu() != here);
    }
    return NULL;
}

static void test_a_thread_leaves_the_processor_of_another(void) {
    if (tw_get_cpus() < 2)
        return;
    pthread_t thread; /* which then may not run everywhere any more */
    CHECK(pthread_create(&thread, NULL, leave, NULL) == 0);
    pthread_join(thread, NULL);
    int32_t here = tw_this_cpu();
    tw_leave_cpu(here < 0 ? -1 : here + 1); /* somebody else's: nothing happens */
}

int main(void) {
    CHECK(tw_count_workers() == 0);
    RUN(test_a_thread_leaves_the_processor_of_another);
    RUN(test_every_thread_runs_exactly_once);
    RUN(test_barrier_orders_stages);
    RUN(test_scratch_is_private_or_shared);
    RUN(test_failure_is_reported_and_hangs_nobody);
    RUN(test_nested_call_is_refused);
    RUN(test_bad_thread_counts_are_refused);
    RUN(test_callers_may_be_concurrent);
    RUN(test_workers_sleep_and_wake);
    RUN(test_float_mode_is_the_default_on_all_threads);
    RUN(test_far_more_threads_than_processors);
    RUN(test_shutdown_ends_workers_and_calls_revive_them);
    tw_set_cpus(64); /* now the same with long spinning although processors are few */
    RUN(test_every_thread_runs_exactly_once);
    RUN(test_callers_may_be_concurrent);
    tw_shutdown();
    return 0;
}
