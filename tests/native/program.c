/* Programs built by hand: sizes, plans, batches on several threads, loops, segments, failures. */
#include "walk.h"

#include <pthread.h>
#include <string.h>

#include "check.h"
#include "pool.h"
#include "wait.h"

#ifndef ROUNDS
#define ROUNDS 300
#endif
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

static draft *start(void) {
    draft *d = calloc(1, sizeof *d);
    CHECK(d != NULL);
    d->tables = (tw_tables){d->operations, d->sizes, d->buffers, d->kernels, d->steps,
                            d->numbers,    0,        0,          0,          0,
                            0,             0,        1};
    return d;
}

static tw_program *finish(draft *d, int32_t threads) {
    tw_program *program = tw_program_new(&d->tables, threads, NULL, 0);
    CHECK(program != NULL);
    free(d);
    return program;
}

static tw_expression expression(draft *d, const tw_operation *operations, int64_t count) {
    tw_expression made = {d->tables.operation_count, count};
    for (int64_t i = 0; i < count; i++)
        d->operations[d->tables.operation_count++] = operations[i];
    return made;
}

static tw_expression constant(draft *d, int64_t value) {
    tw_operation operation = {TW_CONST, value};
    return expression(d, &operation, 1);
}

/* factor × size */
static tw_expression times(draft *d, int64_t size, int64_t factor) {
    tw_operation operations[] = {{TW_SIZE, size}, {TW_CONST, factor}, {TW_MUL, 0}};
    return expression(d, operations, 3);
}

static int64_t add_size(draft *d, tw_expression value, int64_t segment) {
    d->sizes[d->tables.size_count] = (tw_size){value, segment};
    return d->tables.size_count++;
}

static int64_t add_buffer(draft *d, tw_place place, tw_expression bytes) {
    d->buffers[d->tables.buffer_count] = (tw_buffer){.place = place, .bytes = bytes, .parent = -1};
    return d->tables.buffer_count++;
}

static int64_t add_temporary(draft *d, tw_expression bytes, int64_t first, int64_t last) {
    int64_t number = add_buffer(d, TW_ARENA, bytes);
    d->buffers[number].first = first;
    d->buffers[number].last = last;
    return number;
}

static int64_t add_kernel(draft *d, tw_kernel kernel, bool is_parallel) {
    d->kernels[d->tables.kernel_count] = (tw_code){
        .entry = (int64_t)(intptr_t)kernel, .is_parallel = is_parallel
    };
    return d->tables.kernel_count++;
}

static tw_span span(draft *d, const int64_t *numbers, int64_t count) {
    tw_span made = {d->tables.number_count, count};
    for (int64_t i = 0; i < count; i++)
        d->numbers[d->tables.number_count++] = numbers[i];
    return made;
}

static int64_t add_step(draft *d, tw_kind kind, int64_t what, int64_t flag) {
    d->steps[d->tables.step_count] = (tw_step){.kind = kind, .what = what, .flag = flag};
    return d->tables.step_count++;
}

static int64_t add_call(
    draft *d, int64_t kernel, bool wait, int64_t from, int64_t other, int64_t to, int64_t size
) {
    int64_t buffers[] = {from, other, to};
    int64_t number = add_step(d, TW_CALL, kernel, wait);
    d->steps[number].first = span(d, buffers, 3);
    d->steps[number].second = span(d, &size, 1);
    return number;
}

/* x[n], y[n] → z[n] = x + y, divided among the threads */
static int32_t add(void *const *buffers, const int64_t *sizes, tw_context *context) {
    const int64_t *x = buffers[0], *y = buffers[1];
    int64_t *z = buffers[2];
    int64_t first = sizes[0] * context->thread / context->threads;
    int64_t last = sizes[0] * (context->thread + 1) / context->threads;
    for (int64_t i = first; i < last; i++)
        z[i] = x[i] + y[i];
    return 0;
}

/* The same with the parts of the threads in the opposite order. */
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

static void test_expressions(void) {
    struct {
        tw_size_op op;
        int64_t a, b, value;
    } cases[] = {
        {TW_ADD, 7, -9, -2},          {TW_SUB, 7, 9, -2},       {TW_MUL, -3, 5, -15},
        {TW_FLOORDIV, 7, 2, 3},       {TW_FLOORDIV, -7, 2, -4}, {TW_FLOORDIV, 7, -2, -4},
        {TW_FLOORDIV, -8, 2, -4},     {TW_MOD, -7, 2, 1},       {TW_MOD, 7, -2, -1},
        {TW_MOD, -7, -2, -1},         {TW_MIN, 3, -4, -4},      {TW_MAX, 3, -4, 3},
        {TW_EQ, 2, 2, 1},             {TW_NE, 2, 2, 0},         {TW_LT, 2, 2, 0},
        {TW_LE, 2, 2, 1},             {TW_AND, 2, 0, 0},        {TW_OR, 0, -1, 1},
        {TW_MUL, INT64_MAX, 1, INT64_MAX},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tw_operation operations[] = {
            {TW_CONST, cases[i].a}, {TW_SIZE, 1}, {(int64_t)cases[i].op, 0}
        };
        int64_t sizes[] = {0, cases[i].b}, value = 99;
        CHECK(tw_evaluate(operations, (tw_expression){0, 3}, sizes, &value));
        CHECK(value == cases[i].value);
    }
}

static void test_expressions_notice_what_has_no_value(void) {
    struct {
        tw_size_op op;
        int64_t a, b;
    } cases[] = {
        {TW_ADD, INT64_MAX, 1},  {TW_SUB, INT64_MIN, 1},        {TW_MUL, INT64_MAX / 2, 3},
        {TW_MUL, INT64_MIN, -1}, {TW_FLOORDIV, 5, 0},           {TW_MOD, 5, 0},
        {TW_MOD, INT64_MIN, -1}, {TW_FLOORDIV, INT64_MIN, -1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tw_operation operations[] = {
            {TW_CONST, cases[i].a}, {TW_CONST, cases[i].b}, {(int64_t)cases[i].op, 0}
        };
        int64_t value;
        CHECK(!tw_evaluate(operations, (tw_expression){0, 3}, NULL, &value));
    }
}

static void test_expressions_of_all_depths(void) {
    tw_operation select[] = {{TW_SIZE, 0}, {TW_NOT, 0}, {TW_CONST, 5}, {TW_CONST, 6}, {TW_SELECT, 0}};
    int64_t value, sizes[] = {0};
    CHECK(tw_evaluate(select, (tw_expression){0, 5}, sizes, &value) && value == 5);
    sizes[0] = 3;
    CHECK(tw_evaluate(select, (tw_expression){0, 5}, sizes, &value) && value == 6);
    tw_operation deep[2 * TW_EXPRESSION_DEPTH];
    for (int i = 0; i < TW_EXPRESSION_DEPTH; i++)
        deep[i] = (tw_operation){TW_SIZE, 0};
    for (int i = TW_EXPRESSION_DEPTH; i < 2 * TW_EXPRESSION_DEPTH - 1; i++)
        deep[i] = (tw_operation){TW_ADD, 0};
    CHECK(tw_evaluate(deep, (tw_expression){0, 2 * TW_EXPRESSION_DEPTH - 1}, sizes, &value));
    CHECK(value == 3 * TW_EXPRESSION_DEPTH);
}

static uint64_t random_state = 1;
static int64_t draw(int64_t below) {
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (int64_t)(random_state >> 33) % below;
}

static void test_plans_keep_what_lives_together_apart(void) {
    enum { MOST = 40 };
    tw_item items[MOST], again[MOST], *placed[MOST];
    for (int round = 0; round < ROUNDS; round++) {
        int64_t count = draw(MOST), total, total_again, sum = 0;
        for (int64_t i = 0; i < count; i++) {
            int64_t first = draw(20);
            items[i] = (tw_item){draw(3) * draw(1000), first, first + draw(6), i, -1, -1};
            sum += (items[i].wanted_bytes + 63) / 64 * 64;
            again[count - 1 - i] = items[i];
        }
        CHECK(tw_plan(items, count, placed, &total) && total <= sum);
        CHECK(tw_plan(again, count, placed, &total_again) && total == total_again);
        for (int64_t i = 0; i < count; i++) {
            CHECK(items[i].offset % TW_ALIGNMENT == 0 && items[i].offset >= 0);
            CHECK(items[i].bytes >= items[i].wanted_bytes);
            CHECK(items[i].offset + items[i].bytes <= total);
            CHECK(items[i].buffer == again[i].buffer && items[i].offset == again[i].offset);
            for (int64_t j = 0; j < i; j++) {
                bool together = items[i].first <= items[j].last && items[j].first <= items[i].last;
                bool meet = items[i].offset < items[j].offset + items[j].bytes
                    && items[j].offset < items[i].offset + items[i].bytes;
                CHECK(!together || !meet);
            }
        }
    }
}

static void test_plans_share_memory(void) {
    tw_item items[] = {{640, 0, 1, 0, 0, 0}, {640, 2, 3, 1, 0, 0}, {64, 1, 2, 2, 0, 0}}, *placed[3];
    int64_t total;
    CHECK(tw_plan(items, 3, placed, &total) && total == 704);
    tw_item large[] = {{INT64_MAX - 10, 0, 1, 0, 0, 0}};
    tw_item two[] = {{INT64_MAX / 2, 0, 1, 0, 0, 0}, {INT64_MAX / 2 + 2, 3, 3, 1, 0, 0}};
    CHECK(!tw_plan(large, 1, placed, &total));
    CHECK(!tw_plan(two, 2, placed, &total));
}

static void run(tw_frame *frame, int64_t size, int64_t *x, int64_t *y) {
    frame->sizes[0] = size;
    tw_frame_give(frame, 0, x, size * 8, false);
    tw_frame_give(frame, 1, y, size * 8, false);
    CHECK(tw_frame_enter(frame, 0));
    CHECK(tw_walk(frame) == TW_DONE);
    tw_frame_reset(frame);
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

static void expect_trouble(draft *d, int64_t size, tw_outcome outcome, int64_t which) {
    tw_program *program = finish(d, 1);
    tw_frame *frame = tw_frame_new(program);
    frame->sizes[0] = size;
    CHECK(!tw_frame_enter(frame, 0));
    CHECK(frame->trouble.outcome == outcome && frame->trouble.which == which);
    tw_frame_free(frame);
    tw_program_free(program);
}

static void test_sizes_that_cannot_be(void) {
    draft *d = start();
    int64_t n = add_size(d, (tw_expression){0}, 0);
    int64_t square = add_size(d, (tw_expression){0}, 0);
    tw_operation product[] = {{TW_SIZE, n}, {TW_SIZE, n}, {TW_MUL, 0}};
    d->sizes[square].value = expression(d, product, 3);
    expect_trouble(d, INT64_C(1) << 40, TW_BAD_SIZE, square);

    d = start();
    add_temporary(d, times(d, add_size(d, (tw_expression){0}, 0), 8), 0, 0);
    expect_trouble(d, INT64_C(1) << 61, TW_BAD_BYTES, 0);

    d = start();
    add_temporary(d, times(d, add_size(d, (tw_expression){0}, 0), -8), 0, 0);
    expect_trouble(d, 1, TW_BAD_BYTES, 0);

    d = start();
    tw_expression huge = times(d, add_size(d, (tw_expression){0}, 0), 8);
    add_temporary(d, constant(d, 8), 0, 0);
    for (int i = 0; i < 3; i++)
        add_temporary(d, huge, 0, 0);
    expect_trouble(d, INT64_C(1) << 59, TW_BAD_BYTES, 1);

    d = start();
    add_size(d, (tw_expression){0}, 0);
    add_temporary(d, constant(d, 100), 0, 0);
    int64_t part = add_buffer(d, TW_PART, times(d, 0, 1));
    d->buffers[part].parent = 0;
    d->buffers[part].offset = constant(d, 64);
    expect_trouble(d, 37, TW_BAD_BOUNDS, part);

    d = start();
    add_size(d, (tw_expression){0}, 0);
    int64_t weights = add_buffer(d, TW_WEIGHTS, constant(d, 1));
    d->buffers[weights].offset = constant(d, 0);
    expect_trouble(d, 1, TW_BAD_BOUNDS, weights);

    d = start();
    add_size(d, (tw_expression){0}, 0);
    expect_trouble((add_buffer(d, TW_INPUT, constant(d, 1)), d), 1, TW_BAD_BOUNDS, 0);
}

static void endless_scratch(const int64_t *sizes, int64_t *bytes) {
    bytes[0] = 64;
    bytes[1] = sizes[0];
}

static void test_scratch_that_cannot_be(void) {
    int64_t sizes[] = {-5, INT64_MAX, INT64_MAX / 2};
    for (int i = 0; i < 3; i++) {
        draft *d = start();
        int64_t n = add_size(d, (tw_expression){0}, 0), big = add_size(d, (tw_expression){0}, 0);
        d->sizes[big].value = constant(d, sizes[i]);
        int64_t t = add_temporary(d, constant(d, 8), 0, 0), kernel = add_kernel(d, add, true);
        d->kernels[kernel].scratch = (int64_t)(intptr_t)endless_scratch;
        add_call(d, kernel, true, t, t, t, big);
        (void)n;
        if (i > 0) {
            expect_trouble(d, 1, TW_OUT_OF_MEMORY, -1);
            continue;
        }
        tw_program *program = finish(d, 1); /* an empty call needs nothing */
        tw_frame *frame = tw_frame_new(program);
        CHECK(tw_frame_enter(frame, 0) && tw_walk(frame) == TW_DONE);
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
    RUN(test_expressions);
    RUN(test_expressions_notice_what_has_no_value);
    RUN(test_expressions_of_all_depths);
    RUN(test_plans_keep_what_lives_together_apart);
    RUN(test_plans_share_memory);
    RUN(test_chains_of_all_kinds);
    RUN(test_calls_without_waiting_share_nothing);
    RUN(test_final_batches);
    RUN(test_calls_with_shared_scratch_wait);
    RUN(test_outputs_are_given_or_made);
    RUN(test_loops);
    RUN(test_segments);
    RUN(test_counted_loops);
    RUN(test_steps_notice_what_has_no_value);
    RUN(test_host_steps);
    RUN(test_failures_hang_nobody);
    RUN(test_frames_of_one_program_run_at_the_same_time);
    RUN(test_sizes_that_cannot_be);
    RUN(test_scratch_that_cannot_be);
    RUN(test_events_are_noted_in_order);
    RUN(test_leader_and_team_sleep_and_wake);
    tw_shutdown();
    return 0;
}
