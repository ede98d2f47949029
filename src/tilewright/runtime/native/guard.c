#if defined(__linux__) && !defined(_GNU_SOURCE)
#define _GNU_SOURCE
#endif
#include "guard.h"

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define FRESH 0xFF

_Atomic int tw_guard_mode = TW_UNGUARDED;

/* What is mapped: a forbidden page, pages that hold the data, a forbidden page. */
typedef struct block {
    char *mapping, *data;
    size_t mapped, bytes;
    struct block *next;
} block;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static block *blocks;
static _Atomic size_t block_count; /* so that memory is freed without a look when there are none */

static size_t page_bytes(void) { return (size_t)sysconf(_SC_PAGESIZE); }

static bool map_pages(block *made, size_t bytes, bool at_end) {
    size_t page = page_bytes();
    if (bytes > PTRDIFF_MAX - 3 * page)
        return false;
    size_t inner = bytes == 0 ? page : (bytes + page - 1) / page * page;
    made->bytes = bytes;
    made->mapped = inner + 2 * page;
    made->mapping = mmap(NULL, made->mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (made->mapping == MAP_FAILED)
        return false;
    char *first = made->mapping + page;
    if (mprotect(first, inner, PROT_READ | PROT_WRITE) != 0) {
        munmap(made->mapping, made->mapped);
        return false;
    }
    memset(first, FRESH, inner);
    made->data = at_end ? first + inner - bytes : first;
    return true;
}

void *tw_guarded_alloc(size_t bytes) {
    block *made = calloc(1, sizeof *made);
    bool at_end = atomic_load(&tw_guard_mode) == TW_GUARD_END;
    if (made == NULL || !map_pages(made, bytes, at_end)) {
        free(made);
        return NULL;
    }
    pthread_mutex_lock(&lock);
    made->next = blocks;
    blocks = made;
    atomic_fetch_add(&block_count, 1);
    pthread_mutex_unlock(&lock);
    return made->data;
}

static block *take_out(const void *data) {
    pthread_mutex_lock(&lock);
    block **at = &blocks;
    while (*at != NULL && (*at)->data != data)
        at = &(*at)->next;
    block *found = *at;
    if (found != NULL) {
        *at = found->next;
        atomic_fetch_sub(&block_count, 1);
    }
    pthread_mutex_unlock(&lock);
    return found;
}

static void require_fresh(const char *begin, const char *end) {
    for (const char *at = begin; at < end; at++)
        if (*(const unsigned char *)at != FRESH) {
            fputs("tilewright: something was written beside a buffer\n", stderr);
            abort();
        }
}

bool tw_guarded_free(void *data) {
    if (data == NULL || atomic_load_explicit(&block_count, memory_order_relaxed) == 0)
        return false;
    block *found = take_out(data);
    if (found == NULL)
        return false;
    size_t page = page_bytes();
    require_fresh(found->mapping + page, found->data);
    require_fresh(found->data + found->bytes, found->mapping + found->mapped - page);
    munmap(found->mapping, found->mapped);
    free(found);
    return true;
}
