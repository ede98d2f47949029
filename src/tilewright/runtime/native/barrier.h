/* A reusable meeting point for the threads of one call.
 *
 * Arrivals are counted in one cache line, the waiting threads watch a generation number in another.
 * A thread may drop out for good (its kernel returned an error): the others then no longer wait for
 * it, so that a failing thread cannot hang its team. One thread may be the leader: it can wait until
 * all others have arrived without letting them go. */
#ifndef TILEWRIGHT_BARRIER_H
#define TILEWRIGHT_BARRIER_H

#include <stdalign.h>

#include "platform.h"
#include "wait.h"

typedef struct tw_barrier {
    alignas(TW_CACHE_LINE) tw_word arrivals; /* expected threads << 16 | arrived threads */
    tw_word leader_sleeps;
    alignas(TW_CACHE_LINE) tw_word generation;
    tw_word sleepers;
} tw_barrier;

void tw_barrier_reset(tw_barrier *barrier, int32_t threads);
void tw_barrier_wait(tw_barrier *barrier, int32_t threads);
void tw_barrier_drop_out(tw_barrier *barrier);

/* Wait until every other thread waits at the barrier; `tw_barrier_wait` then lets them go. */
void tw_barrier_await_others(tw_barrier *barrier, int32_t threads);

#endif
