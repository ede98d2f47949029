#if defined(__linux__) && !defined(_GNU_SOURCE)
#define _GNU_SOURCE
#endif
#include "timer.h"

#include <pthread.h>
#include <time.h>

#ifdef CLOCK_MONOTONIC_RAW
#define CLOCK CLOCK_MONOTONIC_RAW
#else
#define CLOCK CLOCK_MONOTONIC
#endif

#define OVERHEAD_ROUNDS 64
#define OVERHEAD_READS 64
#define MAX_INNER ((int64_t)1 << 30)

int64_t tw_clock_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static double overhead_ns;

/* The least of many means: an interruption can only make a round longer. */
static void measure_overhead(void) {
    for (int round = 0; round < OVERHEAD_ROUNDS; round++) {
        int64_t start = tw_clock_ns();
        for (int read = 0; read < OVERHEAD_READS; read++)
            (void)tw_clock_ns();
        double mean = (double)(tw_clock_ns() - start) / (OVERHEAD_READS + 1);
        if (round == 0 || mean < overhead_ns)
            overhead_ns = mean;
    }
}

double tw_clock_overhead_ns(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, measure_overhead);
    return overhead_ns;
}

tw_status tw_time_sample(const tw_launch *launch, int64_t inner, double *ns, int32_t *result) {
    double overhead = tw_clock_overhead_ns();
    tw_status status = TW_OK;
    *result = 0;
    int64_t start = tw_clock_ns();
    for (int64_t i = 0; i < inner && status == TW_OK && *result == 0; i++)
        status = tw_run(launch, result);
    double elapsed = (double)(tw_clock_ns() - start) - overhead;
    *ns = elapsed > 0 ? elapsed / (double)inner : 0;
    return status;
}

tw_status tw_time_calibrate(
    const tw_launch *launch, int64_t min_ns, int64_t *inner, int32_t *result
) {
    double one_ns = 0;
    *inner = 1;
    for (;;) {
        tw_status status = tw_time_sample(launch, *inner, &one_ns, result);
        if (status != TW_OK || *result != 0)
            return status;
        if (one_ns * (double)*inner >= (double)min_ns || *inner >= MAX_INNER)
            break;
        *inner *= 2;
    }
    if (*inner > 1 && one_ns > 0) {
        double needed = (double)min_ns / one_ns + 1;
        *inner = needed < (double)*inner ? (int64_t)needed : *inner;
    }
    return TW_OK;
}
