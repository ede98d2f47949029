/* Digests of blocks of bytes, by which damage is found: fast, and no obstacle to malice.
 *
 * Bytes are words of 64 bits, eight lanes of them side by side. A word goes into its lane by steps
 * that are one-to-one (exclusive or, rotation, product with an odd number), and the lanes into the
 * digest likewise, together with the number of bytes. So a change within one word always changes
 * the digest, and others do but for one of 2^64. Rotations keep flips of the highest bits, which
 * products alone would leave where they are, from cancelling each other. */
#ifndef TILEWRIGHT_DIGEST_H
#define TILEWRIGHT_DIGEST_H

#include <stddef.h>
#include <stdint.h>

#include "pool.h"

#define TW_BLOCK_BYTES ((size_t)1 << 20)

uint64_t tw_digest(const void *data, size_t bytes);

/* The digest of each block, of which the last may be shorter, on at most so many threads. */
tw_status tw_digest_blocks(const void *data, size_t bytes, int32_t threads, uint64_t *digests);

#endif
