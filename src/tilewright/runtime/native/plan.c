#include "plan.h"

#include <string.h>

#include "abi.h"

static bool goes_before(const tw_item *a, const tw_item *b) {
    return a->bytes != b->bytes ? a->bytes > b->bytes : a->buffer < b->buffer;
}

/* By insertion: the order of the plan before is nearly right for the next one. */
static void sort(tw_item *items, int64_t count) {
    for (int64_t i = 1; i < count; i++) {
        tw_item item = items[i];
        int64_t j = i;
        for (; j > 0 && goes_before(&item, &items[j - 1]); j--)
            items[j] = items[j - 1];
        items[j] = item;
    }
}

static bool live_together(const tw_item *a, const tw_item *b) {
    return a->first <= b->last && b->first <= a->last;
}

/* The lowest offset; `placed` is in order of offsets. */
static int64_t first_fit(const tw_item *item, tw_item *const *placed, int64_t count) {
    int64_t offset = 0;
    for (int64_t i = 0; i < count; i++) {
        if (!live_together(item, placed[i]))
            continue;
        if (placed[i]->offset - offset >= item->bytes)
            break;
        int64_t end = placed[i]->offset + placed[i]->bytes;
        if (end > offset)
            offset = end;
    }
    return offset;
}

static void insert(tw_item *item, tw_item **placed, int64_t count) {
    int64_t at = count;
    while (at > 0 && placed[at - 1]->offset > item->offset)
        at--;
    memmove(placed + at + 1, placed + at, (size_t)(count - at) * sizeof *placed);
    placed[at] = item;
}

/* Rounded up, every end is a boundary. False: all of them together are beyond 64 bits, and only
 * then could an offset be. */
static bool round_up(tw_item *items, int64_t count) {
    int64_t sum = 0;
    for (int64_t i = 0; i < count; i++) {
        if (__builtin_add_overflow(items[i].wanted_bytes, TW_ALIGNMENT - 1, &items[i].bytes))
            return false;
        items[i].bytes -= items[i].bytes % TW_ALIGNMENT;
        if (__builtin_add_overflow(sum, items[i].bytes, &sum))
            return false;
    }
    return true;
}

bool tw_plan(tw_item *items, int64_t count, tw_item **placed, int64_t *total) {
    *total = 0;
    if (!round_up(items, count))
        return false;
    sort(items, count);
    for (int64_t i = 0; i < count; i++) {
        items[i].offset = first_fit(&items[i], placed, i);
        insert(&items[i], placed, i);
        int64_t end = items[i].offset + items[i].bytes;
        if (end > *total)
            *total = end;
    }
    return true;
}
