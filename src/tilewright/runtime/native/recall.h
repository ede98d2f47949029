/* A segment remembers what it came to for the sizes of the latest inferences: callers that take
 * turns with a few batch sizes have each of them planned once. */
#ifndef TILEWRIGHT_RECALL_H
#define TILEWRIGHT_RECALL_H

#include "frame.h"

typedef enum tw_recalled {
    TW_UNKNOWN,   /* sizes are new: all is to be computed */
    TW_UNCHANGED, /* all is as it was left */
    TW_RECALLED,  /* numbers are back; memory is where the offsets say */
} tw_recalled;

/* Compare the facts of a segment with those that it has seen. */
tw_recalled tw_recall(tw_frame *frame, int64_t segment);

/* Keep what was computed, in place of what was not asked for for longest. Without memory for that
 * it is computed again the next time. */
void tw_remember(tw_frame *frame, int64_t segment);

/* What is in the frame belongs to none of the sizes that the segment has seen. */
void tw_unsettle(tw_frame *frame, int64_t segment);

void tw_forget(tw_segment *segment); /* frees everything */

#endif
