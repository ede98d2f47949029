#include "digest.h"

#include <string.h>

#define LANES 8
#define STRIDE (LANES * sizeof(uint64_t))

/* The fraction of the golden ratio in 64 bits: odd, and its bits are in no order (Knuth, The Art of
 * Computer Programming, volume 3, 6.4). */
#define FACTOR UINT64_C(0x9E3779B97F4A7C15)
#define TURN 27

/* Blocks that are worth another thread: it takes as long to wake one. */
#define BLOCKS_EACH 4

static inline uint64_t mixed(uint64_t lane, uint64_t word) {
    lane ^= word;
    return ((lane << TURN) | (lane >> (64 - TURN))) * FACTOR;
}

/* Lanes are independent: their products overlap, if they are kept in registers. */
static inline void mix_stride(uint64_t lanes[LANES], const char *data) {
#pragma GCC unroll 8
    for (size_t k = 0; k < LANES; k++) {
        uint64_t word;
        memcpy(&word, data + k * sizeof word, sizeof word);
        lanes[k] = mixed(lanes[k], word);
    }
}

uint64_t tw_digest(const void *data, size_t bytes) {
    const char *at = data;
    uint64_t lanes[LANES], digest = bytes;
    for (size_t k = 0; k < LANES; k++)
        lanes[k] = k;
    size_t left = bytes;
    for (; left >= STRIDE; left -= STRIDE, at += STRIDE)
        mix_stride(lanes, at);
    if (left > 0) {
        char last[STRIDE] = {0}; /* the number of bytes tells zeros from nothing */
        memcpy(last, at, left);
        mix_stride(lanes, last);
    }
    for (size_t k = 0; k < LANES; k++)
        digest = mixed(digest, lanes[k]);
    return digest ^ (digest >> 32);
}

typedef struct job {
    const char *data;
    size_t bytes, blocks;
    uint64_t *digests;
} job;

static int32_t digest_share(void *const *buffers, const int64_t *sizes, tw_context *context) {
    (void)sizes;
    const job *all = buffers[0];
    size_t thread = (size_t)context->thread, threads = (size_t)context->threads;
    size_t end = all->blocks * (thread + 1) / threads;
    for (size_t block = all->blocks * thread / threads; block < end; block++) {
        size_t begin = block * TW_BLOCK_BYTES, left = all->bytes - begin;
        size_t bytes = left < TW_BLOCK_BYTES ? left : TW_BLOCK_BYTES;
        all->digests[block] = tw_digest(all->data + begin, bytes);
    }
    return 0;
}

tw_status tw_digest_blocks(const void *data, size_t bytes, int32_t threads, uint64_t *digests) {
    size_t blocks = bytes / TW_BLOCK_BYTES + (bytes % TW_BLOCK_BYTES > 0);
    size_t useful = 1 + blocks / BLOCKS_EACH;
    job all = {.data = data, .bytes = bytes, .blocks = blocks, .digests = digests};
    void *buffers[] = {&all};
    tw_launch launch = {.kernel = digest_share, .buffers = buffers, .threads = threads};
    if (launch.threads > 0 && (size_t)launch.threads > useful)
        launch.threads = (int32_t)useful;
    int32_t result = 0;
    tw_status status = tw_run(&launch, &result);
    if (status == TW_NO_THREADS) { /* it is work for one, too */
        launch.threads = 1;
        status = tw_run(&launch, &result);
    }
    return status;
}
