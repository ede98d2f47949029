#if defined(__linux__) && !defined(_GNU_SOURCE)
#define _GNU_SOURCE
#endif
#include "pool.h"

#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

#include "barrier.h"
#include "caller.h"
#include "memory.h"
#include "platform.h"
#include "wait.h"

#define WORKER_STACK_BYTES ((size_t)8 << 20) /* address space; touched only as far as used */

/* A ticket announces a launch: number of the launch << 16 | its threads. Zero threads: go home. */
typedef uint64_t ticket;

typedef struct worker {
    alignas(TW_CACHE_LINE) tw_word parked;
    int32_t index; /* its thread number in every call; thread 0 is the caller */
    int32_t result;
    ticket seen;
    tw_arena local;
    pthread_t handle;
} worker;

static struct {
    pthread_mutex_t lock; /* one launch at a time; guards everything below but the atomics */
    atomic_bool busy;     /* the lock is held */
    _Atomic int32_t started;
    int32_t allocated;
    worker *workers[TW_MAX_THREADS];
    tw_launch launch;
    int32_t caller_cpu; /* -1 if threads are so many that they share processors anyway */
    void *shared;
    tw_barrier barrier;
    alignas(TW_CACHE_LINE) _Atomic ticket announced;
    alignas(TW_CACHE_LINE) _Atomic int32_t running; /* workers that have not finished */
    tw_word caller_parked;
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER};

static int32_t threads_of(ticket t) { return (int32_t)(t & 0xFFFF); }
static ticket next_ticket(ticket t, int32_t threads) {
    return (((t >> 16) + 1) << 16) | (ticket)threads;
}

static void no_barrier(tw_context *context) { (void)context; }
static void team_barrier(tw_context *context) {
    tw_barrier_wait(context->team, context->threads);
}

/* Wake a sleeping worker; free of system calls when it spins. */
static void rouse(worker *w) {
    if (atomic_load(&w->parked) != 0 && atomic_exchange(&w->parked, 0) != 0)
        tw_unpark(&w->parked);
}

/* Waking takes a system call each, so the woken help: thread i wakes 2i+1 and 2i+2. */
static void rouse_children(int32_t thread, int32_t threads) {
    for (int32_t child = 2 * thread + 1; child <= 2 * thread + 2 && child < threads; child++)
        rouse(pool.workers[child]);
}

static int32_t run_part(int32_t thread, void *local) {
    tw_context context = {
        .thread = thread,
        .threads = pool.launch.threads,
        .barrier = team_barrier,
        .shared = pool.shared,
        .local = local,
        .team = &pool.barrier,
    };
    int32_t result = pool.launch.kernel(pool.launch.buffers, pool.launch.sizes, &context);
    if (result != 0)
        tw_barrier_drop_out(&pool.barrier);
    return result;
}

/* Launches without this worker pass by: only its own tickets and the end are returned. */
static ticket await_ticket(worker *w, int32_t crowd) {
    tw_patience patience = tw_patience_for(crowd);
    for (;;) {
        ticket now = atomic_load_explicit(&pool.announced, memory_order_acquire);
        if (now != w->seen) {
            w->seen = now;
            if (threads_of(now) > w->index || threads_of(now) == 0)
                return now;
            continue;
        }
        if (tw_patience_wait(&patience))
            continue;
        atomic_store(&w->parked, 1);
        if (atomic_load(&pool.announced) == w->seen)
            tw_park(&w->parked, 1);
        atomic_store(&w->parked, 0);
    }
}

static void finish_part(void) {
    if (atomic_fetch_sub(&pool.running, 1) != 1)
        return;
    if (atomic_load(&pool.caller_parked) != 0 && atomic_exchange(&pool.caller_parked, 0) != 0)
        tw_unpark(&pool.caller_parked);
}

static void *work(void *argument) {
    worker *w = argument;
    tw_set_float_mode(TW_FLOAT_MODE_DEFAULT);
    tw_caller *self = tw_caller_get(); /* so that a nested call is noticed here, too */
    if (self != NULL)
        self->inside = true;
    int32_t crowd = w->index + 1;
    for (;;) {
        ticket now = await_ticket(w, crowd);
        crowd = threads_of(now);
        if (crowd == 0)
            return NULL;
        rouse_children(w->index, crowd);
        /* A woken thread is often put beside the one that woke it, and stays there for long. */
        tw_leave_cpu(pool.caller_cpu);
        w->result = run_part(w->index, w->local.data);
        finish_part();
    }
}

static void await_workers(int32_t threads) {
    tw_patience patience = tw_patience_for(threads);
    while (atomic_load_explicit(&pool.running, memory_order_acquire) != 0) {
        if (tw_patience_wait(&patience))
            continue;
        atomic_store(&pool.caller_parked, 1);
        if (atomic_load(&pool.running) != 0)
            tw_park(&pool.caller_parked, 1);
        atomic_store(&pool.caller_parked, 0);
    }
}

/* The child of a fork has no workers. If a launch was under way in the parent, its records may be
 * half written and are given up; otherwise they serve the child's own workers. */
static void after_fork(void) {
    tw_wait_after_fork();
    pthread_mutex_init(&pool.lock, NULL);
    if (atomic_load(&pool.busy))
        pool.allocated = 0;
    atomic_store(&pool.busy, false);
    atomic_store(&pool.started, 0);
    atomic_store(&pool.running, 0);
    atomic_store(&pool.caller_parked, 0);
    atomic_store(&pool.barrier.sleepers, 0);
    atomic_store(&pool.barrier.leader_sleeps, 0);
}

static pthread_once_t fork_once = PTHREAD_ONCE_INIT;
static void watch_forks(void) { pthread_atfork(NULL, NULL, after_fork); }

static tw_status allocate_worker(int32_t index) {
    worker *w = aligned_alloc(TW_CACHE_LINE, sizeof *w);
    if (w == NULL)
        return TW_NO_MEMORY;
    memset(w, 0, sizeof *w);
    w->index = index;
    pool.workers[index] = w;
    return TW_OK;
}

static tw_status start_worker(worker *w) {
    pthread_attr_t attributes;
    if (pthread_attr_init(&attributes) != 0)
        return TW_NO_THREADS;
    pthread_attr_setstacksize(&attributes, WORKER_STACK_BYTES);
    w->seen = atomic_load(&pool.announced);
    atomic_store(&w->parked, 0);
    sigset_t all, before; /* signals are for the threads of the program, not for ours */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(&w->handle, &attributes, work, w);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return failed ? TW_NO_THREADS : TW_OK;
}

static tw_status prepare_workers(int32_t threads, size_t local_bytes) {
    pthread_once(&fork_once, watch_forks);
    for (int32_t i = 1; i < threads; i++) {
        tw_status status = TW_OK;
        if (i > pool.allocated) {
            if ((status = allocate_worker(i)) != TW_OK)
                return status;
            pool.allocated = i;
        }
        if (i > atomic_load_explicit(&pool.started, memory_order_relaxed)) {
            if ((status = start_worker(pool.workers[i])) != TW_OK)
                return status;
            atomic_store(&pool.started, i);
        }
        if (!tw_arena_reserve(&pool.workers[i]->local, local_bytes))
            return TW_NO_MEMORY;
    }
    return TW_OK;
}

static int32_t first_failure(int32_t own, int32_t threads) {
    for (int32_t i = 1; i < threads && own == 0; i++)
        own = pool.workers[i]->result;
    return own;
}

static tw_status run_team(const tw_launch *launch, tw_caller *caller, int32_t *result) {
    int32_t threads = launch->threads;
    pthread_mutex_lock(&pool.lock);
    atomic_store_explicit(&pool.busy, true, memory_order_relaxed);
    tw_status status = prepare_workers(threads, launch->local_bytes);
    if (status == TW_OK) {
        pool.launch = *launch;
        pool.caller_cpu = threads <= tw_get_cpus() ? tw_this_cpu() : -1;
        pool.shared = caller->shared.data;
        tw_barrier_reset(&pool.barrier, threads);
        atomic_store_explicit(&pool.running, threads - 1, memory_order_relaxed);
        ticket last = atomic_load_explicit(&pool.announced, memory_order_relaxed);
        atomic_store(&pool.announced, next_ticket(last, threads));
        rouse_children(0, threads);
        int32_t own = run_part(0, caller->local.data);
        await_workers(threads);
        *result = first_failure(own, threads);
    }
    atomic_store_explicit(&pool.busy, false, memory_order_relaxed);
    pthread_mutex_unlock(&pool.lock);
    return status;
}

static tw_status run_alone(const tw_launch *launch, tw_caller *caller, int32_t *result) {
    tw_context context = {
        .threads = 1,
        .barrier = no_barrier,
        .shared = caller->shared.data,
        .local = caller->local.data,
    };
    *result = launch->kernel(launch->buffers, launch->sizes, &context);
    return TW_OK;
}

tw_status tw_run(const tw_launch *launch, int32_t *result) {
    if (launch->threads < 1 || launch->threads > TW_MAX_THREADS)
        return TW_BAD_THREADS;
    tw_caller *caller = tw_caller_get();
    if (caller == NULL)
        return TW_NO_MEMORY;
    if (caller->inside)
        return TW_NESTED;
    if (!tw_arena_reserve(&caller->shared, launch->shared_bytes)
        || !tw_arena_reserve(&caller->local, launch->local_bytes))
        return TW_NO_MEMORY;
    tw_float_mode mode = tw_get_float_mode();
    if (mode != TW_FLOAT_MODE_DEFAULT)
        tw_set_float_mode(TW_FLOAT_MODE_DEFAULT);
    caller->inside = true;
    tw_status status = launch->threads == 1 ? run_alone(launch, caller, result)
                                            : run_team(launch, caller, result);
    caller->inside = false;
    if (mode != TW_FLOAT_MODE_DEFAULT)
        tw_set_float_mode(mode);
    return status;
}

int32_t tw_count_workers(void) { return atomic_load(&pool.started); }

void tw_shutdown(void) {
    if (pthread_mutex_trylock(&pool.lock) != 0)
        return;
    atomic_store(&pool.busy, true);
    ticket last = atomic_load(&pool.announced);
    atomic_store(&pool.announced, next_ticket(last, 0));
    int32_t started = atomic_exchange(&pool.started, 0);
    for (int32_t i = 1; i <= started; i++) {
        rouse(pool.workers[i]);
        pthread_join(pool.workers[i]->handle, NULL);
    }
    for (int32_t i = 1; i <= pool.allocated; i++) {
        tw_arena_release(&pool.workers[i]->local);
        free(pool.workers[i]);
    }
    pool.allocated = 0;
    atomic_store(&pool.busy, false);
    pthread_mutex_unlock(&pool.lock);
    tw_caller_release();
}
