/* Aligned memory, and scratch arenas that grow to the largest demand and are kept between calls. */
#ifndef TILEWRIGHT_MEMORY_H
#define TILEWRIGHT_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

/* Memory on a 64-byte boundary, on huge pages where that pays; NULL if there is none. */
void *tw_alloc(size_t bytes);
void tw_free(void *data);

/* Give what the heap keeps of freed memory back to the system, where the heap does not by itself. */
void tw_return_memory(void);

typedef struct tw_arena {
    void *data;
    size_t bytes;
} tw_arena;

/* Make room for `bytes`; earlier contents are lost when it has to grow. False: out of memory. */
bool tw_arena_reserve(tw_arena *arena, size_t bytes);
void tw_arena_release(tw_arena *arena);

#endif
