/* Programs that do not go straight on: loops, segments, steps of Python. */
#include "draft.h"

#include "pool.h"

/* counter, limit → counter + 1, condition: less than the limit */
static int32_t count_up(void *const *buffers, const int64_t *sizes, tw_context *context) {
    (void)sizes, (void)context;
    int64_t *counter = buffers[0], *limit = buffers[1];
    *counter += 1;
    *(unsigned char *)buffers[2] = *counter < *limit;
    return 0;
}

static int32_t set_zero(void *const *buffers, const int64_t *sizes, tw_context *context) {
    (void)sizes, (void)context;
    *(int64_t *)buffers[0] = 0;
    return 0;
}

/* y = 2y until the counter says that it is enough; the body has a parallel call or none. */
static void test_loops(void) {
    for (int32_t kind = 0; kind < 8; kind++) {
        draft *d = start();
        int64_t n = add_size(d, (tw_expression){0}, 0);
        tw_expression bytes = times(d, n, 8), eight = constant(d, 8);
        int64_t x = add_buffer(d, TW_INPUT, bytes), y = add_buffer(d, TW_OUTPUT, bytes);
        int64_t limit = add_buffer(d, TW_INPUT, eight);
        int64_t doubles = add_kernel(d, add, kind % 2), counts = add_kernel(d, count_up, false);
        int64_t zero = add_kernel(d, set_zero, false);
        int64_t counter = add_temporary(d, eight, 0, 6), again = add_temporary(d, eight, 0, 6);
        int64_t t = add_temporary(d, bytes, 0, 6);
        add_call(d, zero, true, counter, counter, counter, n);
        add_call(d, doubles, false, x, x, t, n);
        int64_t head = add_call(d, doubles, true, t, t, y, n);
        add_call(d, doubles, true, y, y, t, n);
        add_call(d, counts, false, counter, limit, again, n);
        add_step(d, TW_JUMP, 7, again);
        add_step(d, TW_JUMP, head, -1);
        add_call(d, doubles, true, t, t, y, n);
        tw_program *program = finish(d, 1 + kind / 2);
        tw_frame *frame = tw_frame_new(program);
        for (int64_t times = 1; times < 8; times++) {
            int64_t in[64], out[64];
            for (int64_t i = 0; i < 64; i++)
                in[i] = i;
            tw_frame_give(frame, limit, &times, 8, false);
            run(frame, 64, in, out);
            for (int64_t i = 0; i < 64; i++)
                CHECK(out[i] == i << (2 * times + 2));
        }
        tw_frame_free(frame);
        tw_program_free(program);
    }
}

/* x[n] → count[1]: how many are positive, or a size that cannot be */
static int32_t count_positive(void *const *buffers, const int64_t *sizes, tw_context *context) {
    (void)context;
    const int64_t *x = buffers[0];
    int64_t count = 0;
    for (int64_t i = 0; i < sizes[0]; i++)
        count += x[i] > 0;
    *(int64_t *)buffers[2] = x[0] == -77 ? -1 : count;
    return 0;
}

/* Segment 1 has as many elements as x has positive ones; its output is made when it is entered. */
static void test_segments(void) {
    for (int32_t threads = 1; threads <= 3; threads++) {
        draft *d = start();
        d->tables.segment_count = 2;
        int64_t n = add_size(d, (tw_expression){0}, 0), m = add_size(d, (tw_expression){0}, 1);
        tw_expression bytes = times(d, n, 8), fewer = times(d, m, 8);
        int64_t x = add_buffer(d, TW_INPUT, bytes), y = add_buffer(d, TW_OUTPUT, fewer);
        int64_t count = add_temporary(d, constant(d, 8), 0, 1);
        int64_t t = add_temporary(d, fewer, 2, 3), part = add_buffer(d, TW_PART, fewer);
        d->buffers[y].segment = d->buffers[t].segment = d->buffers[part].segment = 1;
        d->buffers[part].parent = x;
        tw_operation rest[] = {{TW_SIZE, n}, {TW_SIZE, m}, {TW_SUB, 0}, {TW_CONST, 8}, {TW_MUL, 0}};
        d->buffers[part].offset = expression(d, rest, 5);
        int64_t adds = add_kernel(d, add, true), counts = add_kernel(d, count_positive, false);
        add_call(d, counts, true, x, x, count, n);
        int64_t read[] = {m, count, 0}, enter = add_step(d, TW_ENTER, 1, 0);
        d->steps[enter].first = span(d, read, 3);
        add_call(d, adds, true, part, x, t, m);
        add_call(d, adds, true, t, t, y, m);
        tw_program *program = finish(d, threads);
        tw_frame *frame = tw_frame_new(program);
        for (int64_t positive = 0; positive < 50; positive += 7) {
            int64_t in[50];
            for (int64_t i = 0; i < 50; i++)
                in[i] = i - 49 + positive;
            frame->sizes[0] = 50;
            tw_frame_give(frame, x, in, sizeof in, false);
            CHECK(tw_frame_enter(frame, 0) && tw_walk(frame) == TW_DONE);
            CHECK(frame->sizes[m] == positive && frame->bytes[y] == 8 * positive);
            int64_t *out = tw_frame_take(frame, y);
            CHECK(out != NULL && tw_frame_take(frame, y) == NULL);
            for (int64_t i = 0; i < positive; i++)
                CHECK(out[i] == 2 * (in[50 - positive + i] + in[i]));
            tw_free(out);
            tw_frame_reset(frame);
        }
        int64_t bad[50] = {-77};
        tw_frame_give(frame, x, bad, sizeof bad, false);
        CHECK(tw_frame_enter(frame, 0) && tw_walk(frame) == TW_BAD_READ);
        CHECK(frame->trouble.which == m && frame->trouble.value == -1);
        tw_frame_free(frame);
        tw_program_free(program);
    }
}

/* y[k] = x[k] + x[k] row by row: a counter is assigned, a row is a part that moves with it, and the
 * memory of the loop stays where it is as long as its sizes do. */
static void test_counted_loops(void) {
    for (int32_t threads = 1; threads <= 3; threads++) {
        draft *d = start();
        d->tables.segment_count = 2;
        int64_t n = add_size(d, (tw_expression){0}, 0), k = add_size(d, (tw_expression){0}, 1);
        int64_t width = add_size(d, constant(d, 5), 0);
        tw_expression bytes = times(d, n, 40), row = constant(d, 40);
        int64_t x = add_buffer(d, TW_INPUT, bytes), y = add_buffer(d, TW_OUTPUT, bytes);
        int64_t from = add_buffer(d, TW_PART, row), to = add_buffer(d, TW_PART, row);
        int64_t t = add_temporary(d, row, 3, 4);
        tw_operation before[] = {{TW_SIZE, k}, {TW_CONST, 1}, {TW_SUB, 0}, {TW_CONST, 40}, {TW_MUL, 0}};
        d->buffers[from].parent = x;
        d->buffers[to].parent = y;
        d->buffers[from].offset = d->buffers[to].offset = expression(d, before, 5);
        d->buffers[from].segment = d->buffers[to].segment = d->buffers[t].segment = 1;
        int64_t adds = add_kernel(d, add, true), alone = add_kernel(d, add, false);
        tw_operation next[] = {{TW_SIZE, k}, {TW_CONST, 1}, {TW_ADD, 0}};
        tw_operation within[] = {{TW_SIZE, k}, {TW_SIZE, n}, {TW_LE, 0}};
        tw_expression zero = constant(d, 0), more = expression(d, next, 3);
        tw_expression is_within = expression(d, within, 3);
        int64_t step = add_step(d, TW_ASSIGN, k, 0);
        d->steps[step].first = (tw_span){zero.start, zero.count};
        int64_t head = add_step(d, TW_ASSIGN, k, 0);
        d->steps[head].first = (tw_span){more.start, more.count};
        step = add_step(d, TW_JUMP, 7, -1);
        d->steps[step].first = (tw_span){is_within.start, is_within.count};
        add_step(d, TW_ENTER, 1, 0);
        add_call(d, adds, true, from, from, t, width);
        add_call(d, alone, true, t, from, to, width);
        add_step(d, TW_JUMP, head, -1);
        tw_program *program = finish(d, threads);
        tw_frame *frame = tw_frame_new(program);
        for (int64_t rows = 0; rows < 9; rows += 4) {
            int64_t in[45], out[45];
            for (int64_t i = 0; i < 45; i++)
                in[i] = i, out[i] = -1;
            frame->sizes[n] = rows;
            tw_frame_give(frame, x, in, rows * 40, false);
            tw_frame_give(frame, y, out, rows * 40, false);
            CHECK(tw_frame_enter(frame, 0) && tw_walk(frame) == TW_DONE);
            for (int64_t i = 0; i < 45; i++)
                CHECK(out[i] == (i < 5 * rows ? 3 * i : -1));
            tw_frame_reset(frame);
        }
        tw_frame_free(frame);
        tw_program_free(program);
    }
}

static void test_steps_notice_what_has_no_value(void) {
    for (int64_t kind = TW_JUMP; kind <= TW_ASSIGN; kind += TW_ASSIGN - TW_JUMP) {
        draft *d = start();
        add_size(d, (tw_expression){0}, 0);
        tw_operation none[] = {{TW_CONST, 1}, {TW_SIZE, 0}, {TW_MOD, 0}};
        tw_expression value = expression(d, none, 3);
        int64_t step = add_step(d, (tw_kind)kind, 0, -1);
        d->steps[step].first = (tw_span){value.start, value.count};
        tw_program *program = finish(d, 2);
        tw_frame *frame = tw_frame_new(program);
        CHECK(tw_frame_enter(frame, 0) && tw_walk(frame) == TW_BAD_STEP);
        CHECK(frame->trouble.which == 0);
        tw_frame_free(frame);
        tw_program_free(program);
    }
}

/* A step of Python in the middle: the walk stops there, and goes on with the memory it is given. */
static void test_host_steps(void) {
    for (int32_t threads = 1; threads <= 3; threads++) {
        draft *d = start();
        int64_t n = add_size(d, (tw_expression){0}, 0);
        tw_expression bytes = times(d, n, 8);
        int64_t x = add_buffer(d, TW_INPUT, bytes), y = add_buffer(d, TW_OUTPUT, bytes);
        int64_t h = add_buffer(d, TW_HOST_MADE, bytes), t = add_temporary(d, bytes, 0, 2);
        int64_t part = add_buffer(d, TW_PART, bytes);
        d->buffers[part].parent = h;
        d->buffers[part].offset = constant(d, 0);
        int64_t adds = add_kernel(d, add, true);
        add_call(d, adds, true, x, x, t, n);
        add_step(d, TW_HOST, 0, 0);
        add_call(d, adds, true, part, t, y, n);
        tw_program *program = finish(d, threads);
        tw_frame *frame = tw_frame_new(program);
        int64_t in[20], out[20], made[20];
        for (int round = 0; round < 20; round++) {
            for (int64_t i = 0; i < 20; i++)
                in[i] = i, made[i] = 100 * round;
            frame->sizes[0] = 20;
            tw_frame_give(frame, x, in, sizeof in, false);
            tw_frame_give(frame, y, out, sizeof out, false);
            CHECK(tw_frame_enter(frame, 0) && tw_walk(frame) == TW_AT_HOST && frame->at == 1);
            int64_t wrong = (int64_t)sizeof made + (round % 2 ? 8 : -8);
            CHECK(!tw_frame_give(frame, h, made, wrong, false));
            CHECK(frame->trouble.outcome == TW_BAD_BOUNDS && frame->trouble.which == h);
            CHECK(tw_frame_give(frame, h, made, sizeof made, false));
            frame->at++;
            CHECK(tw_walk(frame) == TW_DONE);
            for (int64_t i = 0; i < 20; i++)
                CHECK(out[i] == 2 * i + 100 * round);
            tw_frame_reset(frame);
        }
        tw_frame_free(frame);
        tw_program_free(program);
    }
}

int main(void) {
    RUN(test_loops);
    RUN(test_segments);
    RUN(test_counted_loops);
    RUN(test_steps_notice_what_has_no_value);
    RUN(test_host_steps);
    tw_shutdown();
    return 0;
}
