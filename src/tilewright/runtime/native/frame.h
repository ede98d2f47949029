/* What one inference needs besides the program: sizes, memory, and the plan that fits the sizes.
 *
 * A frame serves one inference at a time and is kept for the next: for sizes that were there
 * lately, entering a segment compares a few numbers and allocates nothing but outputs. */
#ifndef TILEWRIGHT_FRAME_H
#define TILEWRIGHT_FRAME_H

#include <stdatomic.h>

#include "memory.h"
#include "plan.h"
#include "program.h"

typedef enum tw_outcome {
    TW_DONE,
    TW_AT_HOST,       /* `at` is a step of Python */
    TW_BAD_SIZE,      /* size `which` cannot be computed */
    TW_BAD_READ,      /* size `which` is `value`, which is negative: read from memory, or needed */
    TW_BAD_BYTES,     /* buffer `which` has `value` bytes, or more than can be counted */
    TW_BAD_BOUNDS,    /* buffer `which` is not inside of what it is a part of, or is smaller than
                       * the program says: it would need `value` bytes */
    TW_OUT_OF_MEMORY, /* `value` bytes; buffer `which` is the largest of them, -1: scratch */
    TW_NO_BUFFER,     /* step `which` (-1: the end) needs buffer `value`, which has no memory */
    TW_FAILED_CALL,   /* the kernel of step `which` returned `value` */
    TW_BAD_OUTPUT,    /* the array that the caller gave for output `which` differs in axis `value` */
    TW_FAILED_RUN,    /* the pool cannot run anything: `value` is a tw_status */
    TW_BAD_STEP,      /* the number that step `which` computes cannot be told */
} tw_outcome;

typedef struct tw_trouble {
    tw_outcome outcome;
    int64_t which, value;
} tw_trouble;

#define TW_MEMOS 8 /* sizes for which a segment keeps its plan */

/* The facts that a segment depends on, and what follows from them; see recall.c. */
typedef struct tw_memo {
    int64_t used; /* grows with time; 0: nothing is in it */
    int64_t *values;
} tw_memo;

typedef struct tw_segment {
    tw_memo memos[TW_MEMOS];
    int current; /* the memo that the frame is in accordance with; -1: none */
    int64_t clock;
    tw_item *items; /* buffers of the arena, as they were placed last */
    int64_t item_count, items_bytes;
    tw_arena arena;
    int64_t arena_bytes;               /* of the arena that are in use */
    int64_t shared_bytes, local_bytes; /* scratch of calls that take sizes of this segment */
} tw_segment;

typedef struct tw_event {
    int64_t step, begin_ns, end_ns;
} tw_event;

/* What the team does next. Two of them are used in turn: while one is read, the next is written. */
typedef struct tw_turn {
    int64_t begin, end; /* steps */
    bool is_last;       /* go home after it */
} tw_turn;

typedef struct tw_frame {
    const tw_program *program;
    int64_t *sizes;      /* by size */
    int64_t *bytes;      /* by buffer: as the program says; -1 until its segment is entered */
    int64_t *given;      /* by buffer: bytes that the caller or Python gave, -1: none */
    int64_t *offsets;    /* by buffer: in the arena, in the weights, or of a part in its root */
    void **pointers;     /* by buffer */
    void **made;         /* by buffer: outputs that nobody gave, until somebody takes them */
    tw_item **placed;    /* for planning */
    bool *is_small;      /* by step: a parallel call with too little to do for a team */
    tw_segment *segments;
    tw_arena scratch;
    size_t shared_bytes; /* of scratch, before the parts of the threads */
    size_t local_bytes;
    char *arguments;     /* of the current call, for each thread */
    size_t arguments_bytes;
    int64_t at; /* the step to go on with */
    tw_trouble trouble;
    atomic_bool is_broken; /* some thread has failed and written, or will write, `trouble` */
    tw_turn turns[2];      /* of the team, in turn */
    tw_event *events; /* what was run when; NULL: nobody wants to know */
    int64_t event_count, event_room;
    int64_t plan_count; /* how often a segment was entered with sizes that it did not know */
    struct tw_frame *next; /* for lists of frames */
} tw_frame;

/* NULL: out of memory. */
tw_frame *tw_frame_new(const tw_program *program);
void tw_frame_free(tw_frame *frame);

/* Forget the arrays of the inference before. */
void tw_frame_reset(tw_frame *frame);

/* Give the memory of an input, of an output, or of what a step of Python has made. Memory of Python
 * is looked at when the sizes of its segment are known: now, unless `is_early`. */
bool tw_frame_give(tw_frame *frame, int64_t buffer, void *memory, int64_t bytes, bool is_early);

/* Compute the sizes of a segment and place its buffers; false: see `trouble`. */
bool tw_frame_enter(tw_frame *frame, int64_t segment);

/* The memory of an output that the frame has made; the caller's from now on. NULL: it made none. */
void *tw_frame_take(tw_frame *frame, int64_t buffer);

/* Bytes of arenas and of scratch that the frame holds. */
size_t tw_frame_arena_bytes(const tw_frame *frame);

bool tw_fail(tw_frame *frame, tw_outcome outcome, int64_t which, int64_t value); /* false */

#endif
