/* Time, and the measured time of kernels.
 *
 * A sample is the mean over an inner number of calls, chosen so that it lasts long enough for the
 * clock; the cost of reading the clock is measured once and subtracted. */
#ifndef TILEWRIGHT_TIMER_H
#define TILEWRIGHT_TIMER_H

#include <stdint.h>

#include "pool.h"

/* A steady clock that no time adjustment touches, in nanoseconds from an arbitrary start. */
int64_t tw_clock_ns(void);

/* What an interval that contains nothing measures. */
double tw_clock_overhead_ns(void);

/* How many calls a sample needs to last `min_ns`; runs the kernel a few times to find out. */
tw_status tw_time_calibrate(
    const tw_launch *launch, int64_t min_ns, int64_t *inner, int32_t *result
);

/* Run `inner` times; `*ns` becomes the time of one run. Stops at the first run that fails. */
tw_status tw_time_sample(const tw_launch *launch, int64_t inner, double *ns, int32_t *result);

#endif
