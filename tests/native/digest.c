/* Digests: every bit counts, and threads give what one gives. */
#include "digest.h"

#include <string.h>

#include "check.h"

#define BLOCKS 9

static unsigned char bytes[200];

static void fill(void) {
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)(i * 37 + 11);
}

static void test_every_bit_counts(void) {
    fill();
    for (size_t length = 0; length <= sizeof bytes; length++) {
        uint64_t whole = tw_digest(bytes, length);
        for (size_t bit = 0; bit < 8 * length; bit++) {
            bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
            CHECK(tw_digest(bytes, length) != whole);
            bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
        }
        CHECK(tw_digest(bytes, length) == whole);
    }
}

/* Nothing is read beside the bytes: address sanitizers would notice. */
static void test_zeros_at_the_end_count(void) {
    uint64_t seen[65];
    for (size_t length = 0; length < 65; length++) {
        char *zeros = calloc(length + (length == 0), 1);
        CHECK(zeros != NULL);
        seen[length] = tw_digest(zeros, length);
        free(zeros);
        for (size_t other = 0; other < length; other++)
            CHECK(seen[other] != seen[length]);
    }
}

static void test_pairs_of_highest_bits_do_not_cancel(void) {
    fill();
    uint64_t whole = tw_digest(bytes, 192);
    for (size_t word = 0; word < 24; word++)
        for (size_t other = 0; other < word; other++) {
            bytes[8 * word + 7] ^= 128, bytes[8 * other + 7] ^= 128;
            CHECK(tw_digest(bytes, 192) != whole);
            bytes[8 * word + 7] ^= 128, bytes[8 * other + 7] ^= 128;
        }
}

static void test_threads_give_what_one_gives(void) {
    size_t size = (BLOCKS - 1) * TW_BLOCK_BYTES + 5;
    char *data = malloc(size);
    CHECK(data != NULL);
    for (size_t i = 0; i < size; i++)
        data[i] = (char)(i * 7 + i / 4096);
    uint64_t alone[BLOCKS], shared[BLOCKS];
    CHECK(tw_digest_blocks(data, size, 1, alone) == TW_OK);
    CHECK(alone[BLOCKS - 1] == tw_digest(data + size - 5, 5));
    for (int32_t threads = 2; threads < 40; threads += 9) {
        memset(shared, 0, sizeof shared);
        CHECK(tw_digest_blocks(data, size, threads, shared) == TW_OK);
        CHECK(memcmp(alone, shared, sizeof alone) == 0);
    }
    CHECK(tw_digest_blocks(data, size, 0, shared) == TW_BAD_THREADS);
    CHECK(tw_digest_blocks(data, 0, 3, shared) == TW_OK);
    free(data);
}

int main(void) {
    RUN(test_every_bit_counts);
    RUN(test_zeros_at_the_end_count);
    RUN(test_pairs_of_highest_bits_do_not_cancel);
    RUN(test_threads_give_what_one_gives);
    tw_shutdown();
    return 0;
}
