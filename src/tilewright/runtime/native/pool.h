/* The process-wide pool of worker threads, and the one way to run a kernel.
 *
 * Workers are started by the first call that needs them and kept. Calls on several threads are
 * serialised: a call that finds the pool busy waits, because its result must not depend on how many
 * threads happen to be free. Calls on one thread run where they are and never wait. Scratch memory
 * belongs to the threads. After a fork the child starts its own workers at its first call. */
#ifndef TILEWRIGHT_POOL_H
#define TILEWRIGHT_POOL_H

#include <stddef.h>
#include <stdint.h>

#include "abi.h"

typedef struct tw_launch {
    tw_kernel kernel;
    void *const *buffers;
    const int64_t *sizes;
    int32_t threads; /* exactly so many, however many processors there are */
    size_t shared_bytes;
    size_t local_bytes; /* for each thread */
} tw_launch;

typedef enum tw_status {
    TW_OK,
    TW_NO_MEMORY,
    TW_NO_THREADS,  /* the system refuses to start another thread */
    TW_NESTED,      /* called from inside a running kernel */
    TW_BAD_THREADS, /* not in 1 … TW_MAX_THREADS */
} tw_status;

/* Run the kernel on all threads and wait for them; the caller is thread 0. `*result` is the value
 * returned by the lowest thread that did not return zero, else zero. The kernel always runs with
 * the default floating-point mode, whatever the caller has set. */
tw_status tw_run(const tw_launch *launch, int32_t *result);

/* Threads that wait for work now. */
int32_t tw_count_workers(void);

/* End the workers and free what they and the calling thread hold; a later call starts anew. Does
 * nothing while a call runs on another thread. */
void tw_shutdown(void);

#endif
