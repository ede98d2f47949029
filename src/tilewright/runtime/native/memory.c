#if defined(__linux__) && !defined(_GNU_SOURCE)
#define _GNU_SOURCE
#endif
#include "memory.h"

#include <stdint.h>
#include <stdlib.h>
#if defined(__linux__)
#include <sys/mman.h>
#endif
#if defined(__GLIBC__)
#include <malloc.h>
#endif

#include "abi.h"
#include "guard.h"

#define HUGE_PAGE ((size_t)2 << 20)

void *tw_alloc(size_t bytes) {
    if (tw_is_guarded())
        return tw_guarded_alloc(bytes);
    bool large = bytes >= 2 * HUGE_PAGE;
    size_t alignment = large ? HUGE_PAGE : TW_ALIGNMENT;
    if (bytes > PTRDIFF_MAX - alignment)
        return NULL;
    size_t rounded = bytes == 0 ? alignment : (bytes + alignment - 1) / alignment * alignment;
    void *data = aligned_alloc(alignment, rounded);
#if defined(__linux__) && defined(MADV_HUGEPAGE)
    if (data != NULL && large)
        madvise(data, rounded, MADV_HUGEPAGE); /* a wish: failure changes nothing but speed */
#endif
    return data;
}

void tw_free(void *data) {
    if (!tw_guarded_free(data))
        free(data);
}

void tw_return_memory(void) {
#if defined(__GLIBC__)
    malloc_trim(0); /* also of the arenas of threads that ended: glibc keeps both for later */
#endif
}

bool tw_arena_reserve(tw_arena *arena, size_t bytes) {
    if (tw_is_guarded())
        bytes += (TW_ALIGNMENT - bytes % TW_ALIGNMENT) % TW_ALIGNMENT;
    if (bytes == arena->bytes || (bytes < arena->bytes && !tw_is_guarded()))
        return true;
    tw_arena_release(arena);
    arena->data = tw_alloc(bytes);
    if (arena->data == NULL)
        return false;
    arena->bytes = bytes;
    return true;
}

void tw_arena_release(tw_arena *arena) {
    tw_free(arena->data);
    *arena = (tw_arena){0};
}
