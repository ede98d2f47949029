/* A whole model as tables: what `tilewright/runtime/program.py` says, in rows of 64-bit numbers.
 *
 * Tables are checked in Python before they come here (`verify.py`): every number is in range
 * and every expression is well formed. What depends on sizes is checked when the sizes are known. */
#ifndef TILEWRIGHT_PROGRAM_H
#define TILEWRIGHT_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi.h"
#include "expression.h"

typedef enum tw_place { TW_INPUT, TW_OUTPUT, TW_WEIGHTS, TW_ARENA, TW_HOST_MADE, TW_PART } tw_place;
typedef enum tw_kind { TW_CALL, TW_JUMP, TW_ENTER, TW_HOST, TW_ASSIGN } tw_kind;

typedef struct tw_size {
    tw_expression value; /* count 0: told by the caller, or by a step */
    int64_t segment;
} tw_size;

typedef struct tw_buffer {
    int64_t place; /* a tw_place */
    tw_expression bytes;
    int64_t segment, first, last;
    int64_t parent;       /* of a part */
    tw_expression offset; /* of weights and parts */
} tw_buffer;

typedef struct tw_code {
    int64_t entry;   /* address of a tw_kernel */
    int64_t scratch; /* address of a tw_scratch, or 0 */
    int64_t is_parallel;
    int64_t shared_bytes, local_bytes;
} tw_code;

/* Numbers `start` … `start + count` of the table of numbers. */
typedef struct tw_span {
    int64_t start, count;
} tw_span;

typedef struct tw_step {
    int64_t kind;   /* a tw_kind */
    int64_t what;   /* call: kernel; jump: step; enter: segment; host: function; assign: size */
    int64_t flag;   /* call: wait; jump: the buffer that is looked at, or -1 */
    tw_span first;  /* call, host: buffers that are passed; enter: (size, buffer, element) …;
                     * jump, assign: an expression, or nothing */
    tw_span second; /* call: sizes; host: buffers that are returned */
    tw_span third;  /* host: sizes that are returned; call: its work as an expression, or nothing */
} tw_step;

typedef struct tw_tables {
    const tw_operation *operations;
    const tw_size *sizes;
    const tw_buffer *buffers;
    const tw_code *kernels;
    const tw_step *steps;
    const int64_t *numbers;
    int64_t operation_count, size_count, buffer_count, kernel_count, step_count, number_count;
    int64_t segment_count;
} tw_tables;

/* The calls from a step on between which nobody waits. */
typedef struct tw_batch {
    int64_t end;
    bool is_parallel; /* some call in it is */
    bool is_final;    /* no parallel call can come after it */
} tw_batch;

/* What belongs to a segment. Its facts are the sizes that it depends on without computing them:
 * own ones that something else tells, and all of earlier segments. */
typedef struct tw_scope {
    const int64_t *facts, *sizes, *buffers, *calls;
    int64_t fact_count, size_count, buffer_count, call_count;
} tw_scope;

typedef struct tw_program {
    tw_tables tables; /* copies */
    int32_t threads;
    const char *weights;
    int64_t weights_bytes;
    tw_batch *batches;    /* by the step with which it begins; a jump may lead into any */
    int64_t *epochs;      /* by step: equal for calls that may run at the same time */
    int64_t *call_scopes; /* by step: the segment whose sizes a call takes */
    tw_scope *scopes;     /* by segment */
    int64_t *members;     /* of all scopes */
    int64_t *roots;       /* by buffer: what a part is inside of in the end; itself otherwise */
    int64_t *parts;       /* all parts, each after its parent */
    int64_t part_count;
    int64_t *guests;      /* buffers whose memory is new in every inference: inputs, outputs, … */
    int64_t guest_count;
    int64_t max_arguments, max_sizes; /* of one call */
} tw_program;

/* NULL: out of memory. The weights stay the caller's. */
tw_program *tw_program_new(
    const tw_tables *tables, int32_t threads, const void *weights, int64_t weights_bytes
);
void tw_program_free(tw_program *program);

#endif
