/* Where arrays go that live for a part of the steps only: those that are never alive together share
 * memory. The largest are placed first, each at the lowest address that is free all its life. */
#ifndef TILEWRIGHT_PLAN_H
#define TILEWRIGHT_PLAN_H

#include <stdbool.h>
#include <stdint.h>

typedef struct tw_item {
    int64_t wanted_bytes; /* not negative */
    int64_t first, last;  /* alive from … to, both included */
    int64_t buffer;       /* whose memory it is */
    int64_t bytes;        /* the answer: where it is, and with how much room; both are multiples of */
    int64_t offset;       /* TW_ALIGNMENT */
} tw_item;

/* Set all offsets and the bytes needed in all. Items are reordered; the result does not depend on
 * their order before. `placed` has room for `count` pointers. False: the total is beyond 64 bits. */
bool tw_plan(tw_item *items, int64_t count, tw_item **placed, int64_t *total);

#endif
