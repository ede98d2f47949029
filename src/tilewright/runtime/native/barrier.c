#include "barrier.h"

#define ONE_EXPECTED (UINT32_C(1) << 16)
#define ONE_ARRIVED UINT32_C(1)

static uint32_t expected_of(uint32_t arrivals) { return arrivals >> 16; }
static uint32_t arrived_of(uint32_t arrivals) { return arrivals & 0xFFFF; }

void tw_barrier_reset(tw_barrier *barrier, int32_t threads) {
    atomic_store_explicit(
        &barrier->arrivals, (uint32_t)threads * ONE_EXPECTED, memory_order_relaxed
    );
}

static bool others_arrived(uint32_t arrivals) {
    return arrived_of(arrivals) + 1 >= expected_of(arrivals);
}

static void rouse_leader(tw_barrier *barrier) {
    if (atomic_load(&barrier->leader_sleeps) != 0
        && atomic_exchange(&barrier->leader_sleeps, 0) != 0)
        tw_unpark(&barrier->leader_sleeps);
}

/* Nobody else can touch `arrivals` here: every expected thread has arrived and waits. */
static void release(tw_barrier *barrier, uint32_t arrivals) {
    uint32_t next = expected_of(arrivals) * ONE_EXPECTED;
    atomic_store_explicit(&barrier->arrivals, next, memory_order_relaxed);
    atomic_fetch_add(&barrier->generation, 1);
    if (atomic_load(&barrier->sleepers) > 0)
        tw_unpark(&barrier->generation);
}

void tw_barrier_wait(tw_barrier *barrier, int32_t threads) {
    uint32_t generation = atomic_load_explicit(&barrier->generation, memory_order_relaxed);
    uint32_t arrivals = ONE_ARRIVED + atomic_fetch_add(&barrier->arrivals, ONE_ARRIVED);
    if (arrived_of(arrivals) == expected_of(arrivals)) {
        release(barrier, arrivals);
        return;
    }
    if (others_arrived(arrivals))
        rouse_leader(barrier);
    tw_patience patience = tw_patience_for(threads);
    while (atomic_load_explicit(&barrier->generation, memory_order_acquire) == generation) {
        if (tw_patience_wait(&patience))
            continue;
        atomic_fetch_add(&barrier->sleepers, 1);
        if (atomic_load(&barrier->generation) == generation)
            tw_park(&barrier->generation, generation);
        atomic_fetch_sub(&barrier->sleepers, 1);
    }
}

void tw_barrier_drop_out(tw_barrier *barrier) {
    uint32_t arrivals = atomic_fetch_sub(&barrier->arrivals, ONE_EXPECTED) - ONE_EXPECTED;
    if (expected_of(arrivals) > 0 && arrived_of(arrivals) == expected_of(arrivals))
        release(barrier, arrivals);
    else if (others_arrived(arrivals))
        rouse_leader(barrier);
}

void tw_barrier_await_others(tw_barrier *barrier, int32_t threads) {
    tw_patience patience = tw_patience_for(threads);
    while (!others_arrived(atomic_load_explicit(&barrier->arrivals, memory_order_acquire))) {
        if (tw_patience_wait(&patience))
            continue;
        atomic_store(&barrier->leader_sleeps, 1);
        if (!others_arrived(atomic_load(&barrier->arrivals)))
            tw_park(&barrier->leader_sleeps, 1);
        atomic_store(&barrier->leader_sleeps, 0);
    }
}
