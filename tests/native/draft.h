/* Programs written by hand, for tests: a draft that grows, a kernel that adds, a run. */
#ifndef DRAFT_H
#define DRAFT_H

#include <stdlib.h>

#include "check.h"
#include "walk.h"

#define ROOM 256

/* A program under construction; numbers are what the functions below return. */
typedef struct draft {
    tw_operation operations[ROOM];
    tw_size sizes[ROOM];
    tw_buffer buffers[ROOM];
    tw_code kernels[ROOM];
    tw_step steps[ROOM];
    int64_t numbers[4 * ROOM];
    tw_tables tables;
} draft;

static inline draft *start(void) {
    draft *d = calloc(1, sizeof *d);
    CHECK(d != NULL);
    d->tables = (tw_tables){d->operations, d->sizes, d->buffers, d->kernels, d->steps,
                            d->numbers,    0,        0,          0,          0,
                            0,             0,        1};
    return d;
}

static inline tw_program *finish(draft *d, int32_t threads) {
    tw_program *program = tw_program_new(&d->tables, threads, NULL, 0);
    CHECK(program != NULL);
    free(d);
    return program;
}

static inline tw_expression expression(draft *d, const tw_operation *operations, int64_t count) {
    tw_expression made = {d->tables.operation_count, count};
    for (int64_t i = 0; i < count; i++)
        d->operations[d->tables.operation_count++] = operations[i];
    return made;
}

static inline tw_expression constant(draft *d, int64_t value) {
    tw_operation operation = {TW_CONST, value};
    return expression(d, &operation, 1);
}

/* factor × size */
static inline tw_expression times(draft *d, int64_t size, int64_t factor) {
    tw_operation operations[] = {{TW_SIZE, size}, {TW_CONST, factor}, {TW_MUL, 0}};
    return expression(d, operations, 3);
}

static inline int64_t add_size(draft *d, tw_expression value, int64_t segment) {
    d->sizes[d->tables.size_count] = (tw_size){value, segment};
    return d->tables.size_count++;
}

static inline int64_t add_buffer(draft *d, tw_place place, tw_expression bytes) {
    d->buffers[d->tables.buffer_count] = (tw_buffer){.place = place, .bytes = bytes, .parent = -1};
    return d->tables.buffer_count++;
}

static inline int64_t add_temporary(draft *d, tw_expression bytes, int64_t first, int64_t last) {
    int64_t number = add_buffer(d, TW_ARENA, bytes);
    d->buffers[number].first = first;
    d->buffers[number].last = last;
    return number;
}

static inline int64_t add_kernel(draft *d, tw_kernel kernel, bool is_parallel) {
    d->kernels[d->tables.kernel_count] = (tw_code){
        .entry = (int64_t)(intptr_t)kernel, .is_parallel = is_parallel
    };
    return d->tables.kernel_count++;
}

static inline tw_span span(draft *d, const int64_t *numbers, int64_t count) {
    tw_span made = {d->tables.number_count, count};
    for (int64_t i = 0; i < count; i++)
        d->numbers[d->tables.number_count++] = numbers[i];
    return made;
}

static inline int64_t add_step(draft *d, tw_kind kind, int64_t what, int64_t flag) {
    d->steps[d->tables.step_count] = (tw_step){.kind = kind, .what = what, .flag = flag};
    return d->tables.step_count++;
}

static inline int64_t add_call(
    draft *d, int64_t kernel, bool wait, int64_t from, int64_t other, int64_t to, int64_t size
) {
    int64_t buffers[] = {from, other, to};
    int64_t number = add_step(d, TW_CALL, kernel, wait);
    d->steps[number].first = span(d, buffers, 3);
    d->steps[number].second = span(d, &size, 1);
    return number;
}

/* x[n], y[n] → z[n] = x + y, divided among the threads */
static inline int32_t add(void *const *buffers, const int64_t *sizes, tw_context *context) {
    const int64_t *x = buffers[0], *y = buffers[1];
    int64_t *z = buffers[2];
    int64_t first = sizes[0] * context->thread / context->threads;
    int64_t last = sizes[0] * (context->thread + 1) / context->threads;
    for (int64_t i = first; i < last; i++)
        z[i] = x[i] + y[i];
    return 0;
}

static uint64_t random_state = 1;
static inline int64_t draw(int64_t below) {
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (int64_t)(random_state >> 33) % below;
}

static inline void run(tw_frame *frame, int64_t size, int64_t *x, int64_t *y) {
    frame->sizes[0] = size;
    tw_frame_give(frame, 0, x, size * 8, false);
    tw_frame_give(frame, 1, y, size * 8, false);
    CHECK(tw_frame_enter(frame, 0));
    CHECK(tw_walk(frame) == TW_DONE);
    tw_frame_reset(frame);
}

#endif
