/* Programs on several threads: batches, waiting, outputs, failures, frames at the same time. */
#include "draft.h"

#include <pthread.h>
#include <string.h>

#include "pool.h"
#include "wait.h"

#ifndef ROUNDS
#define ROUNDS 300
#endif

/* `add` with the parts of the threads in the opposite order. */
static int32_t add_backwards(void *const *buffers, const int64_t *sizes, tw_context *context) {
    tw_context mirrored = *context;
    mirrored.thread = context->threads - 1 - context->thread;
    return add(buffers, sizes, &mirrored);
}

/* The same by way of shared scratch: what a thread writes there, another one takes out. */
static int32_t add_slowly(void *const *buffers, const int64_t *sizes, tw_context *context) {
    const int64_t *x = buffers[0], *y = buffers[1];
    int64_t *z = buffers[2], *shared = context->shared, *local = context->local, n = sizes[0];
    int64_t first = n * context->thread / context->threads;
    int64_t last = n * (context->thread + 1) / context->threads;
    if ((uintptr_t)shared % TW_ALIGNMENT || (uintptr_t)local % TW_ALIGNMENT)
        return 9;
    for (int64_t i = first; i < last; i++)
        shared[i] = x[i] + y[i];
    *local = context->thread;
    context->barrier(context);
    if (*local != context->thread)
        return 10;
    for (int64_t i = n - last; i < n - first; i++)
        z[i] = shared[i];
    return 0;
}

static void scratch_of_add_slowly(const int64_t *sizes, int64_t *bytes) {
    bytes[0] = sizes[0] * 8;
    bytes[1] = 8;
}

/* x doubled `count` times, by kernels that are parallel, serial, or use shared scratch. */
static tw_program *doubling(int64_t count, int32_t threads) {
    draft *d = start();
    int64_t n = add_size(d, (tw_expression){0}, 0), kernels[3];
    tw_expression bytes = times(d, n, 8);
    int64_t last = add_buffer(d, TW_INPUT, bytes), y = add_buffer(d, TW_OUTPUT, bytes);
    kernels[0] = add_kernel(d, add, true);
    kernels[1] = add_kernel(d, add, false);
    kernels[2] = add_kernel(d, add_slowly, true);
    d->kernels[kernels[2]].scratch = (int64_t)(intptr_t)scratch_of_add_slowly;
    for (int64_t i = 0; i < count; i++) {
        int64_t to = i == count - 1 ? y : add_temporary(d, bytes, i, i + 1);
        add_call(d, kernels[draw(3)], true, last, last, to, n);
        last = to;
    }
    return finish(d, threads);
}

static void test_chains_of_all_kinds(void) {
    for (int round = 0; round < ROUNDS / 5; round++) {
        int64_t count = 1 + draw(12);
        tw_program *program = doubling(count, (int32_t)(1 + round % 4));
        tw_frame *frame = tw_frame_new(program);
        CHECK(frame != NULL);
        for (int again = 0; again < 4; again++) {
            int64_t x[200], y[200], size = draw(200);
            for (int64_t i = 0; i < size; i++)
                x[i] = i + again;
            run(frame, size, x, y);
            for (int64_t i = 0; i < size; i++)
                CHECK(y[i] == (i + again) << count);
        }
        tw_frame_free(frame);
        tw_program_free(program);
    }
}

/* t = x + x and u = x + t₀ do not wait for each other; memory must not be shared although t₀ is
 * not needed any more when u is written. */
static void test_calls_without_waiting_share_nothing(void) {
    draft *d = start();
    int64_t n = add_size(d, (tw_expression){0}, 0);
    tw_expression bytes = times(d, n, 8);
    int64_t x = add_buffer(d, TW_INPUT, bytes), y = add_buffer(d, TW_OUTPUT, bytes);
    int64_t kernel = add_kernel(d, add, true), one = add_kernel(d, add, false);
    int64_t other = add_kernel(d, add_backwards, true);
    int64_t a = add_temporary(d, bytes, 0, 1), b = add_temporary(d, bytes, 1, 4);
    int64_t c = add_temporary(d, bytes, 2, 4), e = add_temporary(d, bytes, 3, 5);
    add_call(d, kernel, true, x, x, a, n);
    add_call(d, kernel, true, a, a, b, n);
    add_call(d, other, false, x, x, c, n);
    add_call(d, one, false, x, x, e, n);
    add_call(d, kernel, true, b, c, y, n);
    add_call(d, one, true, y, e, y, n);
    tw_program *program = finish(d, 3);
    CHECK(program->batches[1].end == 4 && program->batches[1].is_parallel);
    tw_frame *frame = tw_frame_new(program);
    int64_t in[500], out[500];
    for (int round = 0; round < ROUNDS; round++) {
        for (int64_t i = 0; i < 500; i++)
            in[i] = i + round;
        run(frame, 500, in, out);
        for (int64_t i = 0; i < 500; i++)
            CHECK(out[i] == 8 * (i + round));
    }
    tw_frame_free(frame);
    tw_program_free(program);
}

/* The team goes home after the last parallel batch, unless a jump leads back to one. */
static void test_final_batches(void) {
    for (int32_t back = -1; back < 4; back++) {
        draft *d = start();
        int64_t n = add_size(d, (tw_expression){0}, 0);
        int64_t t = add_temporary(d, times(d, n, 8), 0, 5);
        int64_t adds = add_kernel(d, add, true), one = add_kernel(d, add, false);
        add_call(d, one, true, t, t, t, n);
        add_call(d, adds, true, t, t, t, n);
        add_call(d, adds, true, t, t, t, n);
        add_call(d, one, true, t, t, t, n);
        if (back >= 0)
            add_step(d, TW_JUMP, back, t);
        tw_program *program = finish(d, 2);
        for (int64_t i = 0; i < 4; i++)
            CHECK(program->batches[i].is_final == (i >= 2 && (back < 0 || back == 3)));
        tw_program_free(program);
    }
}

/* There is one shared scratch, so calls that use it wait for each other whatever they are told. */
static void test_calls_with_shared_scratch_wait(void) {
    draft *d = start();
    int64_t n = add_size(d, (tw_expression){0}, 0);
    tw_expression bytes = times(d, n, 8);
    int64_t x = add_buffer(d, TW_INPUT, bytes), y = add_buffer(d, TW_OUTPUT, bytes);
    int64_t slow = add_kernel(d, add_slowly, true), adds = add_kernel(d, add, true);
    d->kernels[slow].scratch = (int64_t)(intptr_t)scratch_of_add_slowly;
    int64_t a = add_temporary(d, bytes, 0, 2), b = add_temporary(d, bytes, 0, 2);
    add_call(d, slow, true, x, x, a, n);
    add_call(d, slow, false, x, x, b, n);
    add_call(d, adds, true, a, b, y, n);
    tw_program *program = finish(d, 3);
    CHECK(program->batches[0].end == 1);
    tw_frame *frame = tw_frame_new(program);
    int64_t in[300], out[300];
    for (int round = 0; round < ROUNDS; round++) {
        for (int64_t i = 0; i < 300; i++)
            in[i] = i * round;
        run(frame, 300, in, out);
        for (int64_t i = 0; i < 300; i++)
            CHECK(out[i] == 4 * i * round);
    }
    tw_frame_free(frame);
    tw_program_free(program);
}

/* An output that is given once is made the next time; a part of a part counts from both. */
static void test_outputs_are_given_or_made(void) {
    draft *d = start();
    int64_t n = add_size(d, (tw_expression){0}, 0), one = add_size(d, constant(d, 1), 0);
    tw_expression bytes = times(d, n, 8);
    int64_t x = add_buffer(d, TW_INPUT, bytes), y = add_buffer(d, TW_OUTPUT, bytes);
    int64_t tail = add_buffer(d, TW_PART, constant(d, 16)), end = add_buffer(d, TW_PART, constant(d, 8));
    d->buffers[tail].parent = y;
    d->buffers[end].parent = tail;
    d->buffers[tail].offset = d->buffers[end].offset = constant(d, 8);
    int64_t adds = add_kernel(d, add, true);
    add_call(d, adds, true, x, x, y, n);
    add_call(d, adds, true, end, end, end, one);
    tw_program *program = finish(d, 2);
    tw_frame *frame = tw_frame_new(program);
    int64_t in[3] = {1, 2, 3}, out[3];
    run(frame, 3, in, out);
    CHECK(out[0] == 2 && out[1] == 4 && out[2] == 12);
    frame->sizes[0] = 3;
    tw_frame_give(frame, x, in, sizeof in, false);
    CHECK(tw_frame_enter(frame, 0) && tw_walk(frame) == TW_DONE);
    int64_t *made = tw_frame_take(frame, y);
    CHECK(made != NULL && memcmp(made, out, sizeof out) == 0);
    tw_free(made);
    tw_frame_free(frame);
    tw_program_free(program);
}

/* x[n] = {thread that fails, before or after its barrier} */
static int32_t fail_there(void *const *buffers, const int64_t *sizes, tw_context *context) {
    const int64_t *x = buffers[0];
    (void)sizes;
    bool here = context->thread == x[0] % context->threads;
    if (here && x[1] == 0)
        return 5;
    context->barrier(context);
    return here && x[1] == 1 ? 5 : 0;
}

static void test_failures_hang_nobody(void) {
    for (int32_t threads = 1; threads <= 4; threads++) {
        for (int64_t at = 0; at < 5; at++) {
            draft *d = start();
            int64_t n = add_size(d, (tw_expression){0}, 0);
            tw_expression bytes = times(d, n, 8);
            int64_t x = add_buffer(d, TW_INPUT, bytes), y = add_buffer(d, TW_OUTPUT, bytes);
            int64_t adds = add_kernel(d, add, true), fails = add_kernel(d, fail_there, true);
            int64_t one = add_kernel(d, add, false);
            int64_t t = add_temporary(d, bytes, 3, 3);
            for (int64_t i = 0; i < 5; i++) {
                int64_t kernel = i == at ? fails : i == 2 ? one : adds;
                add_call(d, kernel, i != 3, x, x, i == 3 ? t : y, n);
            }
            tw_program *program = finish(d, threads);
            tw_frame *frame = tw_frame_new(program);
            int64_t in[4] = {0}, out[4];
            for (int round = 0; round < ROUNDS / 5; round++) {
                in[0] = round % threads;
                in[1] = round / 4 % 3;
                frame->sizes[0] = 4;
                tw_frame_give(frame, x, in, sizeof in, false);
                tw_frame_give(frame, y, out, sizeof out, false);
                CHECK(tw_frame_enter(frame, 0));
                tw_outcome outcome = tw_walk(frame);
                CHECK(outcome == (in[1] < 2 ? TW_FAILED_CALL : TW_DONE));
                if (outcome != TW_DONE)
                    CHECK(frame->trouble.which == at && frame->trouble.value == 5);
                tw_frame_reset(frame);
            }
            tw_frame_free(frame);
            tw_program_free(program);
        }
    }
}

typedef struct user {
    tw_program *program;
    int64_t seed;
} user;

static void *use(void *argument) {
    const user *self = argument;
    tw_frame *frame = tw_frame_new(self->program);
    for (int64_t round = 0; round < ROUNDS / 3; round++) {
        int64_t x[100], y[100], size = 1 + (round * 37 + self->seed) % 100;
        for (int64_t i = 0; i < size; i++)
            x[i] = i * self->seed + round;
        run(frame, size, x, y);
        for (int64_t i = 0; i < size; i++)
            CHECK(y[i] == x[i] << 9);
    }
    tw_frame_free(frame);
    return NULL;
}

static void test_frames_of_one_program_run_at_the_same_time(void) {
    for (int32_t threads = 1; threads <= 3; threads++) {
        tw_program *program = doubling(9, threads);
        pthread_t handles[4];
        user users[4];
        for (int i = 0; i < 4; i++) {
            users[i] = (user){program, i + 1};
            CHECK(pthread_create(&handles[i], NULL, use, &users[i]) == 0);
        }
        for (int i = 0; i < 4; i++)
            pthread_join(handles[i], NULL);
        tw_program_free(program);
    }
}

/* Sizes of the latest inferences are known: those before them are planned again. */
static void test_sizes_that_take_turns_are_planned_once(void) {
    random_state = 7;
    for (int32_t threads = 1; threads <= 2; threads++) {
        tw_program *program = doubling(5, threads);
        tw_frame *frame = tw_frame_new(program);
        int64_t x[200], y[200];
        for (int round = 0; round < 30; round++) {
            int64_t size = 20 * (round * 5 % TW_MEMOS + 1);
            for (int64_t i = 0; i < size; i++)
                x[i] = i - round;
            run(frame, size, x, y);
            for (int64_t i = 0; i < size; i++)
                CHECK(y[i] == (i - round) * 32);
        }
        CHECK(frame->plan_count == TW_MEMOS);
        size_t arena = tw_frame_arena_bytes(frame);
        run(frame, 7, x, y);
        run(frame, 20, x, y); /* another one has made room: 140, which was asked for first */
        CHECK(frame->plan_count == TW_MEMOS + 1);
        run(frame, 9, x, y);
        run(frame, 7, x, y);
        CHECK(frame->plan_count == TW_MEMOS + 2);
        CHECK(tw_frame_arena_bytes(frame) == arena);
        tw_frame_free(frame);
        tw_program_free(program);
    }
}

static void test_events_are_noted_in_order(void) {
    random_state = 1;
    tw_program *program = doubling(9, 2);
    tw_frame *frame = tw_frame_new(program);
    frame->event_room = 1;
    frame->events = calloc(1, sizeof *frame->events);
    int64_t x[9] = {1}, y[9];
    frame->sizes[0] = 9;
    tw_frame_give(frame, 0, x, sizeof x, false);
    tw_frame_give(frame, 1, y, sizeof y, false);
    CHECK(tw_frame_enter(frame, 0) && tw_walk(frame) == TW_DONE && frame->event_count == 9);
    for (int64_t i = 0; i < 9; i++) {
        CHECK(frame->events[i].step == i);
        CHECK(frame->events[i].begin_ns <= frame->events[i].end_ns);
        CHECK(i == 0 || frame->events[i - 1].end_ns <= frame->events[i].begin_ns);
    }
    tw_frame_free(frame);
    tw_program_free(program);
}

/* x[1] → nothing: sleeps so long that everybody who waits falls asleep, too */
static int32_t doze(void *const *buffers, const int64_t *sizes, tw_context *context) {
    (void)sizes;
    const int64_t *x = buffers[0];
    if (context->thread == x[0] % context->threads)
        nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
    return 0;
}

static void test_leader_and_team_sleep_and_wake(void) {
    draft *d = start();
    int64_t n = add_size(d, (tw_expression){0}, 0);
    tw_expression bytes = times(d, n, 8);
    int64_t x = add_buffer(d, TW_INPUT, bytes), y = add_buffer(d, TW_OUTPUT, bytes);
    int64_t dozes = add_kernel(d, doze, true), alone = add_kernel(d, doze, false);
    int64_t adds = add_kernel(d, add, true);
    add_call(d, dozes, true, x, x, y, n);
    add_call(d, alone, true, x, x, y, n);
    add_call(d, dozes, true, x, x, y, n);
    add_call(d, adds, true, x, x, y, n);
    tw_program *program = finish(d, 3);
    tw_frame *frame = tw_frame_new(program);
    for (int64_t round = 0; round < 12; round++) {
        int64_t in[] = {round}, out[1];
        run(frame, 1, in, out);
        CHECK(out[0] == 2 * round);
    }
    tw_frame_free(frame);
    tw_program_free(program);
}

int main(void) {
    RUN(test_chains_of_all_kinds);
    RUN(test_calls_without_waiting_share_nothing);
    RUN(test_final_batches);
    RUN(test_calls_with_shared_scratch_wait);
    RUN(test_outputs_are_given_or_made);
    RUN(test_failures_hang_nobody);
    RUN(test_frames_of_one_program_run_at_the_same_time);
    RUN(test_sizes_that_take_turns_are_planned_once);
    RUN(test_events_are_noted_in_order);
    RUN(test_leader_and_team_sleep_and_wake);
    tw_shutdown();
    return 0;
}
