/* Sizes and memory: expressions, plans, and what cannot be. */
#include "draft.h"

#include "pool.h"

#ifndef ROUNDS
#define ROUNDS 300
#endif

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

/* A call with a size of that value, whose result has so many bytes. */
static draft *call_of_size(int64_t value, int64_t result_bytes) {
    draft *d = start();
    add_size(d, (tw_expression){0}, 0);
    int64_t size = add_size(d, constant(d, value), 0), kernel = add_kernel(d, add, true);
    int64_t t = add_temporary(d, constant(d, result_bytes), 0, 0);
    d->kernels[kernel].scratch = (int64_t)(intptr_t)endless_scratch;
    add_call(d, kernel, true, t, t, t, size);
    return d;
}

static void test_scratch_that_cannot_be(void) {
    expect_trouble(call_of_size(INT64_MAX, 8), 1, TW_OUT_OF_MEMORY, -1);
    expect_trouble(call_of_size(INT64_MAX / 2, 8), 1, TW_OUT_OF_MEMORY, -1);
}

/* One without elements in its result needs nothing; any other one is not left out. */
static void test_calls_of_negative_size(void) {
    for (int64_t bytes = 0; bytes <= 8; bytes += 8) {
        tw_program *program = finish(call_of_size(-5, bytes), 1);
        tw_frame *frame = tw_frame_new(program);
        CHECK(tw_frame_enter(frame, 0));
        CHECK(tw_walk(frame) == (bytes == 0 ? TW_DONE : TW_BAD_READ));
        CHECK(bytes == 0 || (frame->trouble.which == 1 && frame->trouble.value == -5));
        tw_frame_free(frame);
        tw_program_free(program);
    }
}

int main(void) {
    RUN(test_expressions);
    RUN(test_expressions_notice_what_has_no_value);
    RUN(test_expressions_of_all_depths);
    RUN(test_plans_keep_what_lives_together_apart);
    RUN(test_plans_share_memory);
    RUN(test_sizes_that_cannot_be);
    RUN(test_scratch_that_cannot_be);
    RUN(test_calls_of_negative_size);
    tw_shutdown();
    return 0;
}
