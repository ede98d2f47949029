#if defined(__linux__) && !defined(_GNU_SOURCE)
#define _GNU_SOURCE
#endif
#include "wait.h"

#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stddef.h>
#include <unistd.h>

#include "platform.h"
#include "timer.h"

#if defined(__linux__) && !defined(TW_NO_FUTEX)
#include <linux/futex.h>
#include <sys/syscall.h>
#define TW_FUTEX 1
#else
#define TW_FUTEX 0
#endif

/* Long enough that calls in a loop with some Python between them find the workers awake, short
 * enough that an idle process costs nothing. In a crowd (more threads than processors) the thread
 * that we wait for may need our processor; without one it may still have been put there, until the
 * system notices that another is free: so even a spinning thread offers its place now and then. */
#ifndef TW_SLEEPY
#define SPIN_NS 100000
#define SPIN_CROWDED_NS 2000
#define OFFER_NS 8000
#define YIELDS 8
#define YIELDS_CROWDED 64
#else
#define SPIN_NS 0
#define SPIN_CROWDED_NS 0
#define OFFER_NS 0
#define YIELDS 0
#define YIELDS_CROWDED 0
#endif
#define PAUSES_PER_LOOK 16

static _Atomic int32_t known_cpus = 0;

static int32_t count_cpus(void) {
#if defined(__linux__)
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0)
        return CPU_COUNT(&set);
#endif
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 ? (int32_t)online : 1;
}

void tw_set_cpus(int32_t cpus) { atomic_store(&known_cpus, cpus > 0 ? cpus : count_cpus()); }

int32_t tw_get_cpus(void) {
    int32_t cpus = atomic_load_explicit(&known_cpus, memory_order_relaxed);
    if (cpus == 0) {
        cpus = count_cpus();
        atomic_store(&known_cpus, cpus);
    }
    return cpus;
}

#if defined(__linux__)
int32_t tw_this_cpu(void) { return sched_getcpu(); }

void tw_leave_cpu(int32_t cpu) {
    cpu_set_t others;
    if (cpu < 0 || sched_getcpu() != cpu || sched_getaffinity(getpid(), sizeof others, &others) != 0)
        return;
    CPU_CLR((size_t)cpu, &others);
    if (CPU_COUNT(&others) > 0)
        sched_setaffinity(0, sizeof others, &others);
}
#else
int32_t tw_this_cpu(void) { return -1; }
void tw_leave_cpu(int32_t cpu) { (void)cpu; }
#endif

tw_patience tw_patience_for(int32_t threads) {
    bool crowded = threads > tw_get_cpus();
    return (tw_patience){
        .spin_ns = crowded ? SPIN_CROWDED_NS : SPIN_NS,
        .yields = crowded ? YIELDS_CROWDED : YIELDS,
    };
}

#ifdef TW_SLEEPY
/* For tests: park always, and stretch the moment before, in which a wake-up could get lost. */
static void dawdle(void) {
    static _Atomic uint32_t turns;
    for (uint32_t i = atomic_fetch_add(&turns, 1) * 2654435761u >> 22; i > 0; i--)
        tw_pause();
}
#else
static void dawdle(void) {}
#endif

bool tw_patience_wait(tw_patience *patience) {
    if (patience->spin_ns > 0) {
        tw_pause();
        if (++patience->pauses < PAUSES_PER_LOOK)
            return true;
        patience->pauses = 0;
        int64_t now = tw_clock_ns();
        if (patience->end_ns == 0) {
            patience->end_ns = now + patience->spin_ns;
            patience->offer_ns = now + OFFER_NS;
        } else if (now >= patience->end_ns) {
            patience->spin_ns = 0;
        } else if (now >= patience->offer_ns) {
            patience->offer_ns = now + OFFER_NS;
            sched_yield();
        }
        return true;
    }
    if (patience->yields > 0) {
        patience->yields--;
        sched_yield();
        return true;
    }
    dawdle();
    return false;
}

#if TW_FUTEX

void tw_park(tw_word *word, uint32_t expected) {
    syscall(SYS_futex, (void *)word, FUTEX_WAIT_PRIVATE, expected, NULL, NULL, 0);
}

void tw_unpark(tw_word *word) {
    syscall(SYS_futex, (void *)word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

void tw_wait_after_fork(void) {}

#else

/* One sleeping place for all words: early wake-ups are allowed, and sleeping is the slow path. */
static pthread_mutex_t sleep_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t sleep_signal = PTHREAD_COND_INITIALIZER;

void tw_park(tw_word *word, uint32_t expected) {
    pthread_mutex_lock(&sleep_lock);
    if (atomic_load(word) == expected)
        pthread_cond_wait(&sleep_signal, &sleep_lock);
    pthread_mutex_unlock(&sleep_lock);
}

void tw_unpark(tw_word *word) {
    (void)word;
    pthread_mutex_lock(&sleep_lock);
    pthread_cond_broadcast(&sleep_signal);
    pthread_mutex_unlock(&sleep_lock);
}

/* Another thread of the parent may have held the lock, or slept, when the child was made. */
void tw_wait_after_fork(void) {
    pthread_mutex_init(&sleep_lock, NULL);
    pthread_cond_init(&sleep_signal, NULL);
}

#endif
