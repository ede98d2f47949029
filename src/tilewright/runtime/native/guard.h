/* For tests: memory between pages that nobody may touch, so that a stray access stops the process
 * where it happens. Off unless a test asks for it; then all memory of this library is guarded. */
#ifndef TILEWRIGHT_GUARD_H
#define TILEWRIGHT_GUARD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

/* Where memory touches a forbidden page: nowhere, behind its last byte, before its first one. */
typedef enum tw_guard { TW_UNGUARDED, TW_GUARD_END, TW_GUARD_START } tw_guard;

extern _Atomic int tw_guard_mode; /* a tw_guard */

static inline bool tw_is_guarded(void) {
    return atomic_load_explicit(&tw_guard_mode, memory_order_relaxed) != TW_UNGUARDED;
}

/* Bytes that are all 0xFF: NaN, -1. NULL: there is no memory. Its address is a multiple of what its
 * size is a multiple of, up to a page. */
void *tw_guarded_alloc(size_t bytes);

/* False: it is not guarded memory. Ends the process if something wrote into the rest of its pages. */
bool tw_guarded_free(void *data);

#endif
