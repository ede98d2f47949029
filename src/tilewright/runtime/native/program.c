#include "program.h"

#include <stdlib.h>
#include <string.h>

static void *copy_of(const void *rows, int64_t count, size_t row_bytes) {
    void *copy = calloc((size_t)count + 1, row_bytes);
    if (copy != NULL && count > 0)
        memcpy(copy, rows, (size_t)count * row_bytes);
    return copy;
}

static bool copy_tables(tw_tables *to, const tw_tables *from) {
    *to = *from;
    to->operations = copy_of(from->operations, from->operation_count, sizeof *to->operations);
    to->sizes = copy_of(from->sizes, from->size_count, sizeof *to->sizes);
    to->buffers = copy_of(from->buffers, from->buffer_count, sizeof *to->buffers);
    to->kernels = copy_of(from->kernels, from->kernel_count, sizeof *to->kernels);
    to->steps = copy_of(from->steps, from->step_count, sizeof *to->steps);
    to->numbers = copy_of(from->numbers, from->number_count, sizeof *to->numbers);
    return to->operations && to->sizes && to->buffers && to->kernels && to->steps && to->numbers;
}

static bool shares_scratch(const tw_code *kernel) {
    return kernel->shared_bytes > 0 || kernel->scratch != 0;
}

/* Whether all threads meet before this step. Kernels that use the one shared scratch must not run
 * at the same time, whatever the compiler says about their arrays. */
static bool starts_batch(const tw_tables *tables, int64_t at) {
    const tw_step *step = &tables->steps[at];
    if (step->kind != TW_CALL || at == 0 || tables->steps[at - 1].kind != TW_CALL)
        return true;
    return step->flag != 0 || shares_scratch(&tables->kernels[step->what]);
}

static void find_batches(tw_program *program) {
    const tw_tables *tables = &program->tables;
    for (int64_t at = tables->step_count - 1; at >= 0; at--) {
        const tw_step *step = &tables->steps[at];
        tw_batch *batch = &program->batches[at];
        batch->end = at + 1;
        if (step->kind != TW_CALL)
            continue;
        batch->is_parallel = tables->kernels[step->what].is_parallel != 0;
        if (at + 1 < tables->step_count && !starts_batch(tables, at + 1)) {
            batch->end = batch[1].end;
            batch->is_parallel = batch->is_parallel || batch[1].is_parallel;
        }
    }
    int64_t epoch = 0;
    for (int64_t at = 0; at < tables->step_count; at++)
        program->epochs[at] = starts_batch(tables, at) ? ++epoch : epoch;
}

/* A batch is final if no parallel call may come behind it, by way of whatever jumps. From the end to
 * the begin what may come only grows: steps from `low` on, of which those from `seen` on are known. */
static void find_final_batches(tw_program *program) {
    const tw_tables *tables = &program->tables;
    int64_t low = tables->step_count, seen = low;
    bool is_final = true;
    for (int64_t at = tables->step_count - 1; at >= 0; at--) {
        tw_batch *batch = &program->batches[at];
        if (batch->end < low)
            low = batch->end;
        while (seen > low) {
            const tw_step *step = &tables->steps[--seen];
            if (step->kind == TW_CALL && tables->kernels[step->what].is_parallel)
                is_final = false;
            if (step->kind == TW_JUMP && step->what < low)
                low = step->what;
        }
        batch->is_final = is_final;
    }
}

static void find_scopes(tw_program *program) {
    const tw_tables *tables = &program->tables;
    for (int64_t at = 0; at < tables->step_count; at++) {
        const tw_step *step = &tables->steps[at];
        program->call_scopes[at] = 0;
        if (step->kind != TW_CALL)
            continue;
        if (step->first.count > program->max_arguments)
            program->max_arguments = step->first.count;
        if (step->second.count > program->max_sizes)
            program->max_sizes = step->second.count;
        for (int64_t i = 0; i < step->second.count; i++) {
            int64_t size = tables->numbers[step->second.start + i];
            if (tables->sizes[size].segment > program->call_scopes[at])
                program->call_scopes[at] = tables->sizes[size].segment;
        }
    }
}

static bool is_own_fact(const tw_size *size, int64_t segment) {
    return size->segment == segment && size->value.count == 0;
}

/* Lists of what belongs to each segment. What tells most about a segment comes first: a comparison
 * of facts ends at the first that differs, and the number of an iteration always does. */
static bool list_members(tw_program *program) {
    const tw_tables *tables = &program->tables;
    int64_t count = tables->size_count + tables->buffer_count + tables->step_count;
    for (int64_t s = 0; s < tables->segment_count; s++)
        for (int64_t i = 0; i < tables->size_count; i++)
            count += tables->sizes[i].segment < s;
    program->scopes = calloc((size_t)tables->segment_count, sizeof *program->scopes);
    program->members = calloc((size_t)count + 1, sizeof *program->members);
    if (program->scopes == NULL || program->members == NULL)
        return false;
    int64_t *next = program->members;
    for (int64_t s = 0; s < tables->segment_count; s++) {
        tw_scope *scope = &program->scopes[s];
        scope->facts = next;
        for (int64_t i = 0; i < tables->size_count; i++)
            if (is_own_fact(&tables->sizes[i], s))
                *next++ = i;
        for (int64_t i = 0; i < tables->size_count; i++)
            if (tables->sizes[i].segment < s)
                *next++ = i;
        scope->fact_count = next - scope->facts;
        scope->sizes = next;
        for (int64_t i = 0; i < tables->size_count; i++)
            if (tables->sizes[i].segment == s && tables->sizes[i].value.count > 0)
                *next++ = i;
        scope->size_count = next - scope->sizes;
        scope->buffers = next;
        for (int64_t i = 0; i < tables->buffer_count; i++)
            if (tables->buffers[i].segment == s)
                *next++ = i;
        scope->buffer_count = next - scope->buffers;
        scope->calls = next;
        for (int64_t at = 0; at < tables->step_count; at++)
            if (tables->steps[at].kind == TW_CALL && program->call_scopes[at] == s)
                *next++ = at;
        scope->call_count = next - scope->calls;
    }
    return true;
}

/* Parents first; the number of a parent says nothing about the order, so parts are taken by how
 * deep they are nested. */
static void order_parts(tw_program *program) {
    const tw_buffer *buffers = program->tables.buffers;
    int64_t count = program->tables.buffer_count, deepest = 0;
    for (int64_t depth = 0; depth <= deepest; depth++) {
        for (int64_t i = 0; i < count; i++) {
            int64_t root = i, levels = 0;
            for (; buffers[root].place == TW_PART; levels++)
                root = buffers[root].parent;
            program->roots[i] = root;
            if (levels > deepest)
                deepest = levels;
            if (levels == depth && levels > 0)
                program->parts[program->part_count++] = i;
        }
    }
}

static void find_guests(tw_program *program) {
    for (int64_t i = 0; i < program->tables.buffer_count; i++) {
        int64_t place = program->tables.buffers[i].place;
        if (place == TW_INPUT || place == TW_OUTPUT || place == TW_HOST_MADE)
            program->guests[program->guest_count++] = i;
    }
}

tw_program *tw_program_new(
    const tw_tables *tables, int32_t threads, const void *weights, int64_t weights_bytes
) {
    tw_program *program = calloc(1, sizeof *program);
    if (program == NULL)
        return NULL;
    size_t steps = (size_t)tables->step_count + 1, buffers = (size_t)tables->buffer_count + 1;
    bool good = copy_tables(&program->tables, tables);
    program->threads = threads;
    program->weights = weights;
    program->weights_bytes = weights_bytes;
    program->batches = calloc(steps, sizeof *program->batches);
    program->epochs = calloc(steps, sizeof *program->epochs);
    program->call_scopes = calloc(steps, sizeof *program->call_scopes);
    program->roots = calloc(buffers, sizeof *program->roots);
    program->parts = calloc(buffers, sizeof *program->parts);
    program->guests = calloc(buffers, sizeof *program->guests);
    if (!good || !program->batches || !program->epochs || !program->call_scopes || !program->roots
        || !program->parts || !program->guests) {
        tw_program_free(program);
        return NULL;
    }
    find_batches(program);
    find_final_batches(program);
    find_scopes(program);
    order_parts(program);
    find_guests(program);
    if (!list_members(program)) {
        tw_program_free(program);
        return NULL;
    }
    return program;
}

void tw_program_free(tw_program *program) {
    if (program == NULL)
        return;
    const tw_tables *tables = &program->tables;
    const void *owned[] = {
        tables->operations, tables->sizes, tables->buffers, tables->kernels, tables->steps,
        tables->numbers, program->batches, program->epochs, program->call_scopes, program->roots,
        program->parts, program->guests, program->scopes, program->members, program,
    };
    for (size_t i = 0; i < sizeof owned / sizeof *owned; i++)
        free((void *)(uintptr_t)owned[i]);
}
