"""Digests of blocks: what they are, that every change counts, and that pieces do not matter."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from tilewright.runtime import _native
from tilewright.runtime.blocks import BLOCK_BYTES, damaged_range, digests_of, table_bytes

MASK = (1 << 64) - 1


def digest(data):
    """The definition, word by word: files of other machines and versions are compared with it."""

    def mixed(lane, word):
        lane ^= word
        return (lane << 27 | lane >> 37) * 0x9E3779B97F4A7C15 & MASK

    lanes, found = list(range(8)), len(data)
    words = np.frombuffer(data + bytes(-len(data) % 64), "<u8").tolist()
    for number, word in enumerate(words):
        lanes[number % 8] = mixed(lanes[number % 8], word)
    for lane in lanes:
        found = mixed(found, lane)
    return (found ^ found >> 32).to_bytes(8, "little")


@pytest.mark.parametrize("size", [0, 1, 7, 8, 63, 64, 65, 1000])
def test_a_digest_is_what_it_is_defined_to_be(size, rng):
    data = rng.bytes(size)
    assert _native.digest_blocks(data, 1) == (digest(data) if data else b"")


@pytest.mark.parametrize(
    "size", [1, BLOCK_BYTES - 1, BLOCK_BYTES, BLOCK_BYTES + 1, 3 * BLOCK_BYTES]
)
def test_each_block_has_its_digest(size, rng):
    data = rng.bytes(size)
    found = _native.digest_blocks(data, 2)
    assert len(found) == table_bytes(size)
    alone = [
        _native.digest_blocks(data[at : at + BLOCK_BYTES], 1) for at in range(0, size, BLOCK_BYTES)
    ]
    assert found == b"".join(alone)


def test_it_does_not_matter_how_weights_are_cut(rng):
    data = memoryview(rng.bytes(3 * BLOCK_BYTES + 17))
    whole = _native.digest_blocks(data, 1)
    for _ in range(20):
        inner = sorted(map(int, rng.integers(0, len(data), 6)))
        cuts = [0, *inner, BLOCK_BYTES, 2 * BLOCK_BYTES, len(data)]
        pieces = [data[a:b] for a, b in itertools.pairwise(sorted(cuts))]
        assert digests_of(pieces) == whole
    assert digests_of([]) == b""


def test_the_first_block_that_differs_is_told(rng):
    data = bytearray(rng.bytes(2 * BLOCK_BYTES + 30))
    table = digests_of([memoryview(data)])
    assert damaged_range(memoryview(data), table, 2) is None
    data[-1] ^= 1
    assert damaged_range(memoryview(data), table, 2) == (2 * BLOCK_BYTES, 2 * BLOCK_BYTES + 30)
    data[BLOCK_BYTES] ^= 128
    assert damaged_range(memoryview(data), table, 1) == (BLOCK_BYTES, 2 * BLOCK_BYTES)
