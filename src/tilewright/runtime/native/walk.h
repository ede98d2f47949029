/* Runs the steps of a program on the arrays of a frame.
 *
 * Thread 0 leads: it follows jumps, enters segments and runs kernels that are not parallel, alone
 * as long as nothing else comes. The team joins it for batches with a parallel call, and waits at
 * the barrier from one such batch to the next: a batch costs one barrier, whatever is between. */
#ifndef TILEWRIGHT_WALK_H
#define TILEWRIGHT_WALK_H

#include "frame.h"

/* Go on from step `at` until the end, or a step of Python, or a failure (then see `trouble`).
 * Segment 0 has been entered before. */
tw_outcome tw_walk(tw_frame *frame);

/* Note that a step has just ended; nothing if nobody wants to know. */
void tw_note(tw_frame *frame, int64_t step, int64_t begin_ns);

#endif
