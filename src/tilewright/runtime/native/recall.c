#include "recall.h"

#include <stdlib.h>
#include <string.h>

#define NONE -1

/* Numbers of a segment one after another, read or written in one order only. */
typedef struct cursor {
    int64_t *next;
    bool is_writing;
} cursor;

static void pass(cursor *at, int64_t *value) {
    if (at->is_writing)
        *at->next = *value;
    else
        *value = *at->next;
    at->next++;
}

/* Everything behind the facts. */
static void pass_all(tw_frame *frame, int64_t number, cursor at) {
    const tw_scope *scope = &frame->program->scopes[number];
    tw_segment *segment = &frame->segments[number];
    for (int64_t k = 0; k < scope->size_count; k++)
        pass(&at, &frame->sizes[scope->sizes[k]]);
    for (int64_t k = 0; k < scope->buffer_count; k++) {
        pass(&at, &frame->bytes[scope->buffers[k]]);
        pass(&at, &frame->offsets[scope->buffers[k]]);
    }
    for (int64_t k = 0; k < scope->call_count; k++) {
        int64_t is_small = frame->is_small[scope->calls[k]];
        pass(&at, &is_small);
        frame->is_small[scope->calls[k]] = is_small != 0;
    }
    pass(&at, &segment->shared_bytes);
    pass(&at, &segment->local_bytes);
    pass(&at, &segment->arena_bytes);
}

static bool fits(const tw_frame *frame, const tw_scope *scope, const tw_memo *memo) {
    if (memo->used == 0)
        return false;
    for (int64_t k = 0; k < scope->fact_count; k++)
        if (frame->sizes[scope->facts[k]] != memo->values[k])
            return false;
    return true;
}

tw_recalled tw_recall(tw_frame *frame, int64_t number) {
    const tw_scope *scope = &frame->program->scopes[number];
    tw_segment *segment = &frame->segments[number];
    if (segment->current != NONE && fits(frame, scope, &segment->memos[segment->current])) {
        segment->memos[segment->current].used = ++segment->clock;
        return TW_UNCHANGED;
    }
    for (int k = 0; k < TW_MEMOS; k++) {
        tw_memo *memo = &segment->memos[k];
        if (k == segment->current || !fits(frame, scope, memo))
            continue;
        memo->used = ++segment->clock;
        segment->current = k;
        pass_all(frame, number, (cursor){memo->values + scope->fact_count, false});
        return TW_RECALLED;
    }
    return TW_UNKNOWN;
}

void tw_remember(tw_frame *frame, int64_t number) {
    const tw_scope *scope = &frame->program->scopes[number];
    tw_segment *segment = &frame->segments[number];
    int oldest = 0;
    for (int k = 1; k < TW_MEMOS; k++)
        if (segment->memos[k].used < segment->memos[oldest].used)
            oldest = k;
    tw_memo *memo = &segment->memos[oldest];
    if (memo->values == NULL) {
        int64_t count = scope->fact_count + scope->size_count + 2 * scope->buffer_count
            + scope->call_count + 3;
        memo->values = calloc((size_t)count, sizeof *memo->values);
        if (memo->values == NULL)
            return;
    }
    for (int64_t k = 0; k < scope->fact_count; k++)
        memo->values[k] = frame->sizes[scope->facts[k]];
    pass_all(frame, number, (cursor){memo->values + scope->fact_count, true});
    memo->used = ++segment->clock;
    segment->current = oldest;
}

void tw_unsettle(tw_frame *frame, int64_t number) { frame->segments[number].current = NONE; }

void tw_forget(tw_segment *segment) {
    for (int k = 0; k < TW_MEMOS; k++)
        free(segment->memos[k].values);
}
