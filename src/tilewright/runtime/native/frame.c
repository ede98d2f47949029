#include "frame.h"

#include <stdlib.h>
#include <string.h>

#include "guard.h"
#include "platform.h"
#include "recall.h"

bool tw_fail(tw_frame *frame, tw_outcome outcome, int64_t which, int64_t value) {
    frame->trouble = (tw_trouble){outcome, which, value};
    return false;
}

static size_t rounded(size_t bytes) {
    return (bytes + TW_CACHE_LINE - 1) / TW_CACHE_LINE * TW_CACHE_LINE;
}

static bool allocate_segment(tw_frame *frame, int64_t number) {
    const tw_tables *tables = &frame->program->tables;
    tw_segment *segment = &frame->segments[number];
    for (int64_t i = 0; i < tables->buffer_count; i++)
        if (tables->buffers[i].place == TW_ARENA && tables->buffers[i].segment == number)
            segment->item_count++;
    segment->current = -1;
    segment->items = calloc((size_t)segment->item_count + 1, sizeof *segment->items);
    if (segment->items == NULL)
        return false;
    for (int64_t i = 0, next = 0; i < tables->buffer_count; i++)
        if (tables->buffers[i].place == TW_ARENA && tables->buffers[i].segment == number)
            segment->items[next++].buffer = i;
    return true;
}

static bool allocate(tw_frame *frame) {
    const tw_program *program = frame->program;
    const tw_tables *tables = &program->tables;
    size_t buffers = (size_t)tables->buffer_count + 1, sizes = (size_t)tables->size_count + 1;
    frame->arguments_bytes = rounded((size_t)(program->max_arguments + program->max_sizes) * 8);
    frame->sizes = calloc(sizes, sizeof *frame->sizes);
    frame->bytes = calloc(buffers, sizeof *frame->bytes);
    frame->given = calloc(buffers, sizeof *frame->given);
    frame->offsets = calloc(buffers, sizeof *frame->offsets);
    frame->pointers = calloc(buffers, sizeof *frame->pointers);
    frame->made = calloc(buffers, sizeof *frame->made);
    frame->placed = calloc(buffers, sizeof *frame->placed);
    frame->is_small = calloc((size_t)tables->step_count + 1, sizeof *frame->is_small);
    frame->segments = calloc((size_t)tables->segment_count, sizeof *frame->segments);
    frame->arguments = tw_alloc((size_t)program->threads * frame->arguments_bytes);
    bool good = frame->sizes && frame->bytes && frame->given && frame->offsets && frame->pointers
        && frame->made && frame->placed && frame->is_small && frame->segments && frame->arguments;
    for (int64_t i = 0; good && i < tables->segment_count; i++)
        good = allocate_segment(frame, i);
    return good;
}

tw_frame *tw_frame_new(const tw_program *program) {
    tw_frame *frame = calloc(1, sizeof *frame);
    if (frame == NULL)
        return NULL;
    frame->program = program;
    if (!allocate(frame)) {
        tw_frame_free(frame);
        return NULL;
    }
    for (int64_t i = 0; i < program->tables.buffer_count; i++)
        frame->bytes[i] = frame->given[i] = -1;
    return frame;
}

void tw_frame_free(tw_frame *frame) {
    if (frame == NULL)
        return;
    if (frame->made != NULL)
        for (int64_t i = 0; i < frame->program->tables.buffer_count; i++)
            tw_free(frame->made[i]);
    for (int64_t i = 0; frame->segments != NULL && i < frame->program->tables.segment_count; i++) {
        tw_forget(&frame->segments[i]);
        free(frame->segments[i].items);
        tw_arena_release(&frame->segments[i].arena);
    }
    tw_arena_release(&frame->scratch);
    tw_free(frame->arguments);
    void *owned[] = {frame->sizes, frame->bytes, frame->given, frame->offsets, frame->pointers,
                     frame->made, frame->placed, frame->is_small, frame->segments, frame->events,
                     frame};
    for (size_t i = 0; i < sizeof owned / sizeof *owned; i++)
        free(owned[i]);
}

static void point_part(tw_frame *frame, int64_t part) {
    char *base = frame->pointers[frame->program->roots[part]];
    frame->pointers[part] = base == NULL ? NULL : base + frame->offsets[part];
}

void tw_frame_reset(tw_frame *frame) {
    const tw_program *program = frame->program;
    for (int64_t k = 0; k < program->guest_count; k++) {
        int64_t i = program->guests[k];
        tw_free(frame->made[i]);
        frame->made[i] = frame->pointers[i] = NULL;
        frame->given[i] = -1;
    }
    for (int64_t k = 0; k < program->part_count; k++)
        point_part(frame, program->parts[k]);
    frame->at = 0;
    frame->trouble = (tw_trouble){0};
    frame->event_count = 0;
    atomic_store_explicit(&frame->is_broken, false, memory_order_relaxed);
}

static bool compute_sizes(tw_frame *frame, const tw_scope *scope) {
    const tw_tables *tables = &frame->program->tables;
    for (int64_t k = 0; k < scope->size_count; k++) {
        int64_t i = scope->sizes[k];
        if (!tw_evaluate(tables->operations, tables->sizes[i].value, frame->sizes, &frame->sizes[i]))
            return tw_fail(frame, TW_BAD_SIZE, i, 0);
    }
    return true;
}

static bool compute_bytes(tw_frame *frame, const tw_scope *scope) {
    const tw_tables *tables = &frame->program->tables;
    for (int64_t k = 0; k < scope->buffer_count; k++) {
        int64_t i = scope->buffers[k], bytes = -1;
        if (!tw_evaluate(tables->operations, tables->buffers[i].bytes, frame->sizes, &bytes)
            || bytes > PTRDIFF_MAX)
            return tw_fail(frame, TW_BAD_BYTES, i, INT64_MAX);
        if (bytes < 0)
            return tw_fail(frame, TW_BAD_BYTES, i, bytes);
        frame->bytes[i] = bytes;
    }
    return true;
}

/* Whether every buffer of the arena is as large as it was when they were placed. */
static bool has_same_items(const tw_frame *frame, const tw_segment *segment) {
    for (int64_t i = 0; i < segment->item_count; i++)
        if (segment->items[i].wanted_bytes != frame->bytes[segment->items[i].buffer])
            return false;
    return segment->items_bytes > 0;
}

/* Offsets in the arena, and how much of it is needed. */
static bool place_items(tw_frame *frame, tw_segment *segment) {
    const tw_program *program = frame->program;
    int64_t largest = -1, total = 0;
    if (!has_same_items(frame, segment)) {
        for (int64_t i = 0; i < segment->item_count; i++) {
            tw_item *item = &segment->items[i];
            const tw_buffer *buffer = &program->tables.buffers[item->buffer];
            bool alone = program->threads == 1;
            item->wanted_bytes = frame->bytes[item->buffer];
            item->first = alone ? buffer->first : program->epochs[buffer->first];
            item->last = alone ? buffer->last : program->epochs[buffer->last];
            if (largest < 0 || item->wanted_bytes > frame->bytes[largest])
                largest = item->buffer;
        }
        bool good = tw_plan(segment->items, segment->item_count, frame->placed, &total);
        if (!good || total > PTRDIFF_MAX - TW_ALIGNMENT) {
            segment->items_bytes = 0;
            return tw_fail(frame, TW_BAD_BYTES, largest, INT64_MAX);
        }
        segment->items_bytes = total + TW_ALIGNMENT;
    }
    segment->arena_bytes = segment->items_bytes;
    for (int64_t i = 0; i < segment->item_count; i++)
        frame->offsets[segment->items[i].buffer] = segment->items[i].offset;
    return true;
}

static bool place_weights(tw_frame *frame, const tw_scope *scope) {
    const tw_program *program = frame->program;
    for (int64_t k = 0; k < scope->buffer_count; k++) {
        int64_t i = scope->buffers[k], offset, bytes = frame->bytes[i];
        const tw_buffer *buffer = &program->tables.buffers[i];
        if (buffer->place != TW_WEIGHTS)
            continue;
        if (!tw_evaluate(program->tables.operations, buffer->offset, frame->sizes, &offset)
            || offset < 0 || bytes > program->weights_bytes
            || offset > program->weights_bytes - bytes)
            return tw_fail(frame, TW_BAD_BOUNDS, i, bytes);
        frame->offsets[i] = offset;
    }
    return true;
}

/* For tests: every buffer, and a copy of weights, in pages of its own. `made` owns them. */
static bool point_apart(tw_frame *frame, const tw_scope *scope) {
    for (int64_t k = 0; k < scope->buffer_count; k++) {
        int64_t i = scope->buffers[k], place = frame->program->tables.buffers[i].place;
        if (place != TW_ARENA && place != TW_WEIGHTS)
            continue;
        tw_free(frame->made[i]);
        frame->made[i] = frame->pointers[i] = tw_alloc((size_t)frame->bytes[i]);
        if (frame->made[i] == NULL)
            return tw_fail(frame, TW_OUT_OF_MEMORY, i, frame->bytes[i]);
        if (place == TW_WEIGHTS)
            memcpy(frame->made[i], frame->program->weights + frame->offsets[i],
                   (size_t)frame->bytes[i]);
    }
    return true;
}

/* The buffers of a segment are where their offsets say. */
static bool point_buffers(tw_frame *frame, int64_t number) {
    const tw_program *program = frame->program;
    const tw_scope *scope = &program->scopes[number];
    tw_segment *segment = &frame->segments[number];
    if (tw_is_guarded())
        return point_apart(frame, scope);
    if (!tw_arena_reserve(&segment->arena, (size_t)segment->arena_bytes)) {
        int64_t largest = -1;
        for (int64_t i = 0; i < segment->item_count; i++)
            if (largest < 0 || frame->bytes[segment->items[i].buffer] > frame->bytes[largest])
                largest = segment->items[i].buffer;
        return tw_fail(frame, TW_OUT_OF_MEMORY, largest, segment->arena_bytes);
    }
    for (int64_t k = 0; k < scope->buffer_count; k++) {
        int64_t i = scope->buffers[k], place = program->tables.buffers[i].place;
        if (place == TW_ARENA)
            frame->pointers[i] = (char *)segment->arena.data + frame->offsets[i];
        else if (place == TW_WEIGHTS)
            frame->pointers[i] = (void *)(uintptr_t)(program->weights + frame->offsets[i]);
    }
    return true;
}

/* Offsets of parts from their roots; a parent's segment is entered before. */
static bool measure_parts(tw_frame *frame, int64_t segment) {
    const tw_program *program = frame->program;
    for (int64_t k = 0; k < program->part_count; k++) {
        int64_t i = program->parts[k];
        const tw_buffer *buffer = &program->tables.buffers[i];
        if (buffer->segment != segment)
            continue;
        int64_t offset, room = frame->bytes[buffer->parent];
        if (!tw_evaluate(program->tables.operations, buffer->offset, frame->sizes, &offset)
            || offset < 0 || frame->bytes[i] > room || offset > room - frame->bytes[i])
            return tw_fail(frame, TW_BAD_BOUNDS, i, frame->bytes[i]);
        bool nested = program->tables.buffers[buffer->parent].place == TW_PART;
        frame->offsets[i] = offset + (nested ? frame->offsets[buffer->parent] : 0);
    }
    return true;
}

static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }

/* About ten microseconds: below that a team, whose threads may be late, gains nothing. */
#define SMALL_WORK (INT64_C(1) << 20)

static bool has_little_to_do(const tw_frame *frame, const tw_step *step) {
    const tw_expression work = {step->third.start, step->third.count};
    int64_t value;
    return work.count > 0
        && tw_evaluate(frame->program->tables.operations, work, frame->sizes, &value)
        && value < SMALL_WORK;
}

/* Scratch of the calls that take sizes of this segment; 0 also has those that take none. */
static bool measure_scratch(tw_frame *frame, int64_t number) {
    const tw_program *program = frame->program;
    const tw_tables *tables = &program->tables;
    tw_segment *segment = &frame->segments[number];
    const tw_scope *scope = &program->scopes[number];
    segment->shared_bytes = segment->local_bytes = 0;
    for (int64_t k = 0; k < scope->call_count; k++) {
        int64_t at = scope->calls[k];
        const tw_step *step = &tables->steps[at];
        frame->is_small[at] = has_little_to_do(frame, step);
        const tw_code *kernel = &tables->kernels[step->what];
        int64_t bytes[2] = {kernel->shared_bytes, kernel->local_bytes};
        if (kernel->scratch != 0) {
            int64_t *sizes = (int64_t *)(void *)frame->arguments;
            bool empty = false;
            for (int64_t i = 0; i < step->second.count; i++) {
                sizes[i] = frame->sizes[tables->numbers[step->second.start + i]];
                empty = empty || sizes[i] < 0;
            }
            if (empty)
                continue;
            ((tw_scratch)(uintptr_t)kernel->scratch)(sizes, bytes);
        }
        if (bytes[0] < 0 || bytes[1] < 0)
            return tw_fail(frame, TW_OUT_OF_MEMORY, -1, INT64_MAX);
        segment->shared_bytes = larger(segment->shared_bytes, bytes[0]);
        segment->local_bytes = larger(segment->local_bytes, bytes[1]);
    }
    return true;
}

/* Nothing in scratch outlives a call, so it may move whenever no kernel runs. */
static bool reserve_scratch(tw_frame *frame) {
    int64_t shared = 0, local = 0, total;
    for (int64_t i = 0; i < frame->program->tables.segment_count; i++) {
        shared = larger(shared, frame->segments[i].shared_bytes);
        local = larger(local, frame->segments[i].local_bytes);
    }
    int64_t most = PTRDIFF_MAX / 2 - TW_CACHE_LINE;
    if (shared > most || local > most)
        return tw_fail(frame, TW_OUT_OF_MEMORY, -1, INT64_MAX);
    frame->shared_bytes = rounded((size_t)shared);
    frame->local_bytes = rounded((size_t)local);
    if (__builtin_mul_overflow((int64_t)frame->local_bytes, frame->program->threads, &total)
        || __builtin_add_overflow(total, (int64_t)frame->shared_bytes, &total))
        return tw_fail(frame, TW_OUT_OF_MEMORY, -1, INT64_MAX);
    if (total > 0 && !tw_arena_reserve(&frame->scratch, (size_t)total))
        return tw_fail(frame, TW_OUT_OF_MEMORY, -1, total);
    return true;
}

/* Memory that was given is as large as the program says; an output that nobody gave, or gave too
 * little for, is made. What Python makes has exactly the bytes of its array. */
static bool settle(tw_frame *frame, int64_t i) {
    int64_t place = frame->program->tables.buffers[i].place;
    int64_t bytes = frame->bytes[i], given = frame->given[i];
    if (place == TW_INPUT)
        return given >= bytes || tw_fail(frame, TW_BAD_BOUNDS, i, bytes);
    if (place == TW_HOST_MADE)
        return given < 0 || given == bytes || tw_fail(frame, TW_BAD_BOUNDS, i, bytes);
    if (given >= bytes)
        return true;
    tw_free(frame->made[i]);
    frame->made[i] = frame->pointers[i] = tw_alloc((size_t)bytes);
    return frame->made[i] != NULL || tw_fail(frame, TW_OUT_OF_MEMORY, i, bytes);
}

bool tw_frame_give(tw_frame *frame, int64_t buffer, void *memory, int64_t bytes, bool is_early) {
    const tw_program *program = frame->program;
    static char nothing; /* libraries may say NULL for arrays without elements */
    frame->pointers[buffer] = memory == NULL && bytes == 0 ? &nothing : memory;
    frame->given[buffer] = bytes;
    if (program->tables.buffers[buffer].place != TW_HOST_MADE || is_early)
        return true;
    for (int64_t k = 0; k < program->part_count; k++)
        if (program->roots[program->parts[k]] == buffer)
            point_part(frame, program->parts[k]);
    return settle(frame, buffer);
}

/* Everything that follows from the sizes that a segment is entered with. */
static bool plan_segment(tw_frame *frame, int64_t number) {
    const tw_scope *scope = &frame->program->scopes[number];
    tw_unsettle(frame, number);
    frame->plan_count++;
    if (!compute_sizes(frame, scope) || !compute_bytes(frame, scope)
        || !place_items(frame, &frame->segments[number]) || !place_weights(frame, scope)
        || !measure_parts(frame, number) || !measure_scratch(frame, number)
        || !point_buffers(frame, number) || !reserve_scratch(frame))
        return false;
    tw_remember(frame, number);
    return true;
}

bool tw_frame_enter(tw_frame *frame, int64_t number) {
    const tw_program *program = frame->program;
    const tw_tables *tables = &program->tables;
    tw_recalled found = tw_recall(frame, number);
    if (found == TW_UNKNOWN && !plan_segment(frame, number))
        return false;
    bool moves = found == TW_RECALLED || (found == TW_UNCHANGED && tw_is_guarded());
    if (moves && (!point_buffers(frame, number) || !reserve_scratch(frame))) {
        tw_unsettle(frame, number);
        return false;
    }
    for (int64_t k = 0; k < program->guest_count; k++) {
        int64_t i = program->guests[k];
        if (tables->buffers[i].segment == number && !settle(frame, i))
            return false;
    }
    for (int64_t k = 0; k < program->part_count; k++)
        if (tables->buffers[program->parts[k]].segment == number)
            point_part(frame, program->parts[k]);
    return true;
}

void *tw_frame_take(tw_frame *frame, int64_t buffer) {
    void *memory = frame->made[buffer];
    frame->made[buffer] = NULL;
    return memory;
}

size_t tw_frame_arena_bytes(const tw_frame *frame) {
    size_t bytes = 0;
    for (int64_t i = 0; i < frame->program->tables.segment_count; i++)
        bytes += frame->segments[i].arena.bytes;
    return bytes;
}
