/* The clock and the sampling of kernels; only relations that hold on a loaded machine are checked. */
#include "timer.h"

#include "check.h"

static int64_t calls;

static int32_t nothing(void *const *buffers, const int64_t *sizes, tw_context *context) {
    (void)buffers, (void)sizes;
    if (context->thread == 0)
        calls++;
    return 0;
}

static int32_t busy_wait(void *const *buffers, const int64_t *sizes, tw_context *context) {
    (void)buffers, (void)context;
    int64_t end = tw_clock_ns() + sizes[0];
    while (tw_clock_ns() < end) {
    }
    return 0;
}

static int32_t fail_at_third(void *const *buffers, const int64_t *sizes, tw_context *context) {
    (void)buffers, (void)sizes, (void)context;
    return ++calls == 3 ? 7 : 0;
}

static void test_clock_moves_forward(void) {
    int64_t last = tw_clock_ns();
    for (int i = 0; i < 1000; i++) {
        int64_t now = tw_clock_ns();
        CHECK(now >= last);
        last = now;
    }
}

static void test_overhead_is_measured_once(void) {
    double overhead = tw_clock_overhead_ns();
    CHECK(overhead > 0 && overhead < 100000);
    CHECK(tw_clock_overhead_ns() == overhead);
}

static void test_sample_is_at_least_the_work(void) {
    int64_t sizes[] = {200000};
    tw_launch launch = {.kernel = busy_wait, .sizes = sizes, .threads = 1};
    double ns = 0;
    int32_t result = 0;
    CHECK(tw_time_sample(&launch, 3, &ns, &result) == TW_OK);
    CHECK(ns >= 200000 - 1000);
}

static void test_inner_repetition_reaches_the_duration(void) {
    tw_launch launch = {.kernel = nothing, .threads = 1};
    int64_t inner = 0;
    int32_t result = 0;
    /* A process that waits for its turn meanwhile finds a slow kernel: it may try again. */
    for (int attempt = 0; attempt < 50 && inner <= 100; ++attempt) {
        CHECK(tw_time_calibrate(&launch, 200000, &inner, &result) == TW_OK);
        CHECK(inner > 0);
    }
    CHECK(inner > 100);
    calls = 0;
    double ns = -1;
    CHECK(tw_time_sample(&launch, inner, &ns, &result) == TW_OK);
    CHECK(calls == inner);
    CHECK(ns >= 0);
}

static void test_long_kernels_run_once_per_sample(void) {
    int64_t sizes[] = {300000};
    tw_launch launch = {.kernel = busy_wait, .sizes = sizes, .threads = 2};
    int64_t inner = 0;
    int32_t result = 0;
    CHECK(tw_time_calibrate(&launch, 100000, &inner, &result) == TW_OK);
    CHECK(inner == 1);
}

static void test_failure_stops_the_sample(void) {
    tw_launch launch = {.kernel = fail_at_third, .threads = 1};
    double ns = 0;
    int32_t result = 0;
    calls = 0;
    CHECK(tw_time_sample(&launch, 100, &ns, &result) == TW_OK);
    CHECK(result == 7 && calls == 3);
}

int main(void) {
    RUN(test_clock_moves_forward);
    RUN(test_overhead_is_measured_once);
    RUN(test_sample_is_at_least_the_work);
    RUN(test_inner_repetition_reaches_the_duration);
    RUN(test_long_kernels_run_once_per_sample);
    RUN(test_failure_stops_the_sample);
    tw_shutdown();
    return 0;
}
