/* The calling convention between compiled kernels and the runtime; `tilewright/abi.py` is the
 * compiler's view of the same facts, and a test compares the two.
 *
 * Every thread of a call runs the kernel once with its own context. Parallel loops divide their
 * range by (thread, threads); stages that depend on each other meet at the barrier. Scratch memory
 * has unspecified contents on entry. */
#ifndef TILEWRIGHT_ABI_H
#define TILEWRIGHT_ABI_H

#include <stdint.h>

#define TW_ABI_VERSION 1
#define TW_MAX_THREADS 1024
#define TW_ALIGNMENT 64 /* of scratch memory and of arrays that the runtime allocates */

typedef struct tw_context {
    int32_t thread; /* 0 <= thread < threads */
    int32_t threads;
    void (*barrier)(struct tw_context *); /* all threads of this call meet */
    void *shared;                         /* scratch of the whole call, 64-byte aligned */
    void *local;                          /* scratch of this thread, 64-byte aligned */
    void *team;                           /* opaque to kernels */
} tw_context;

/* `buffers` holds the data pointers in parameter order, `sizes` the symbolic dimensions in order of
 * first appearance; none is negative. Zero means success. A thread that returns another value leaves the team: later
 * barriers of the same call no longer wait for it. */
typedef int32_t (*tw_kernel)(void *const *buffers, const int64_t *sizes, tw_context *context);

/* Tells the scratch of a call where it depends on the sizes: shared bytes, then those of a thread. */
typedef void (*tw_scratch)(const int64_t *sizes, int64_t *bytes);

#endif
