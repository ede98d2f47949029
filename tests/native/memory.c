/* Alignment, growth and reuse of scratch memory. */
#include "memory.h"

#include <stdint.h>
#include <string.h>

#include "abi.h"
#include "check.h"

static void test_memory_is_aligned_and_usable(void) {
    size_t sizes[] = {0, 1, 63, 64, 65, 4096, 1000003, (size_t)9 << 20};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        unsigned char *data = tw_alloc(sizes[i]);
        CHECK(data != NULL);
        CHECK((uintptr_t)data % TW_ALIGNMENT == 0);
        memset(data, 0xA5, sizes[i]);
        tw_free(data);
    }
}

static void test_impossible_sizes_give_null(void) {
    CHECK(tw_alloc(SIZE_MAX) == NULL);
    CHECK(tw_alloc(PTRDIFF_MAX) == NULL);
}

static void test_arena_grows_and_is_reused(void) {
    tw_arena arena = {0};
    CHECK(tw_arena_reserve(&arena, 0));
    CHECK(tw_arena_reserve(&arena, 1000));
    void *first = arena.data;
    memset(first, 1, 1000);
    CHECK(tw_arena_reserve(&arena, 10));
    CHECK(tw_arena_reserve(&arena, 1000));
    CHECK(arena.data == first);
    CHECK(tw_arena_reserve(&arena, 100000));
    memset(arena.data, 2, 100000);
    CHECK((uintptr_t)arena.data % TW_ALIGNMENT == 0);
    tw_arena_release(&arena);
    CHECK(arena.data == NULL && arena.bytes == 0);
}

static void test_arena_that_cannot_grow_is_empty(void) {
    tw_arena arena = {0};
    CHECK(tw_arena_reserve(&arena, 100));
    CHECK(!tw_arena_reserve(&arena, SIZE_MAX));
    CHECK(arena.data == NULL && arena.bytes == 0);
    CHECK(tw_arena_reserve(&arena, 100));
    tw_arena_release(&arena);
}

int main(void) {
    RUN(test_memory_is_aligned_and_usable);
    RUN(test_impossible_sizes_give_null);
    RUN(test_arena_grows_and_is_reused);
    RUN(test_arena_that_cannot_grow_is_empty);
    return 0;
}
