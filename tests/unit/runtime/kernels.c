/* Kernels for the tests of calls, written by hand against the ABI. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "abi.h"

#define KERNEL(name)                                                                              \
    int32_t name(void *const *buffers, const int64_t *sizes, tw_context *context)
#define UNUSED (void)buffers, (void)sizes, (void)context

static int64_t first(int64_t n, const tw_context *c) { return n * c->thread / c->threads; }
static int64_t last(int64_t n, const tw_context *c) { return n * (c->thread + 1) / c->threads; }

/* x[N], y[N] → z[N] */
KERNEL(add) {
    const float *x = buffers[0], *y = buffers[1];
    float *z = buffers[2];
    for (int64_t i = first(sizes[0], context); i < last(sizes[0], context); i++)
        z[i] = x[i] + y[i];
    return 0;
}

/* a[M, K], b[K, N] → c[M, N]; sizes M, K, N */
KERNEL(matmul) {
    const float *a = buffers[0], *b = buffers[1];
    float *c = buffers[2];
    int64_t depth = sizes[1], columns = sizes[2];
    for (int64_t i = first(sizes[0], context); i < last(sizes[0], context); i++)
        for (int64_t j = 0; j < columns; j++) {
            float sum = 0;
            for (int64_t k = 0; k < depth; k++)
                sum += a[i * depth + k] * b[k * columns + j];
            c[i * columns + j] = sum;
        }
    return 0;
}

/* x[R, C] → y[R, C] of items of 1, 2, 4, 8 bytes */
#define COPY(bytes)                                                                               \
    KERNEL(copy##bytes) {                                                                         \
        (void)context;                                                                            \
        if (sizes[0] * sizes[1] > 0)                                                              \
            memcpy(buffers[1], buffers[0], (size_t)(sizes[0] * sizes[1] * bytes));                \
        return 0;                                                                                 \
    }
COPY(1)
COPY(2)
COPY(4)
COPY(8)

/* x[] → y[] */
KERNEL(negate_scalar) {
    (void)sizes, (void)context;
    *(float *)buffers[1] = -*(const float *)buffers[0];
    return 0;
}

/* x[2, 3] → sum[], product[] (in this order of parameters: sum, x, product) */
KERNEL(two_outputs) {
    (void)sizes, (void)context;
    const double *x = buffers[1];
    double sum = 0, product = 1;
    for (int i = 0; i < 6; i++) {
        sum += x[i];
        product *= x[i];
    }
    *(double *)buffers[0] = sum;
    *(double *)buffers[2] = product;
    return 0;
}

/* → x[N] of bytes: marks the last one; everything else stays untouched */
KERNEL(mark_last) {
    (void)context;
    ((unsigned char *)buffers[0])[sizes[0] - 1] = 42;
    return 0;
}

/* → x[N] = N */
KERNEL(iota) {
    int64_t *x = buffers[0];
    for (int64_t i = first(sizes[0], context); i < last(sizes[0], context); i++)
        x[i] = i;
    return 0;
}

/* flag[1] → seen[1]: waits until somebody sets the flag, ten seconds at most */
KERNEL(await_flag) {
    (void)sizes, (void)context;
    const volatile int64_t *flag = buffers[0];
    for (int i = 0; i < 10000 && *flag == 0; i++)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    *(int64_t *)buffers[1] = *flag;
    return 0;
}

/* → sum[1]: every thread adds one through shared scratch; checks the alignment of scratch */
KERNEL(use_scratch) {
    (void)sizes;
    int64_t *shared = context->shared, *local = context->local;
    if ((uintptr_t)shared % TW_ALIGNMENT || (uintptr_t)local % TW_ALIGNMENT)
        return 1;
    *local = context->thread;
    shared[context->thread] = *local - context->thread + 1;
    context->barrier(context);
    if (context->thread == 0) {
        *(int64_t *)buffers[0] = 0;
        for (int32_t i = 0; i < context->threads; i++)
            *(int64_t *)buffers[0] += shared[i];
    }
    return 0;
}

/* x[N] → y[N] backwards, by way of shared scratch that `reverse_scratch` tells */
KERNEL(reverse) {
    int64_t n = sizes[0];
    const int64_t *x = buffers[0];
    int64_t *y = buffers[1], *shared = context->shared;
    for (int64_t i = first(n, context); i < last(n, context); i++)
        shared[i] = x[i];
    context->barrier(context);
    for (int64_t i = first(n, context); i < last(n, context); i++)
        y[i] = shared[n - 1 - i];
    return 0;
}

void reverse_scratch(const int64_t *sizes, int64_t *bytes) {
    bytes[0] = sizes[0] * 8;
    bytes[1] = 0;
}

/* More than any machine has. */
void endless_scratch(const int64_t *sizes, int64_t *bytes) {
    (void)sizes;
    bytes[0] = bytes[1] = INT64_MAX;
}

KERNEL(fail) {
    UNUSED;
    return 7;
}

/* Thread 1 gives up before a barrier. */
KERNEL(fail_on_thread_one) {
    UNUSED;
    if (context->thread == 1)
        return 41;
    context->barrier(context);
    return 0;
}

/* address[1] of a function without arguments → unused[1] */
KERNEL(call_back) {
    (void)sizes, (void)context;
    void (*function)(void);
    memcpy(&function, buffers[0], sizeof function);
    function();
    return 0;
}

/* x[N] → count[1]: how many elements are positive */
KERNEL(count_positive) {
    (void)context;
    const float *x = buffers[0];
    int64_t count = 0;
    for (int64_t i = 0; i < sizes[0]; i++)
        count += x[i] > 0;
    *(int64_t *)buffers[1] = count;
    return 0;
}

/* x[N], chosen[M] → y[M]: the positive elements of x, in order */
KERNEL(take_positive) {
    (void)context;
    const float *x = buffers[0];
    float *y = buffers[1];
    for (int64_t i = 0, next = 0; i < sizes[0]; i++)
        if (x[i] > 0)
            y[next++] = x[i];
    return 0;
}

/* x[N], limit[1] → flag[1] of bytes: whether the first element is below the limit */
KERNEL(is_below) {
    (void)sizes, (void)context;
    *(unsigned char *)buffers[2] = *(const float *)buffers[0] < *(const float *)buffers[1];
    return 0;
}
