"""Weights are checked block by block when a file is opened: no run computes with damaged ones.

A file has a digest of eight bytes for each mebibyte of its weights (`native/digest.h`). Computing
them takes as long as reading the memory, threads share it, and the pages that it touches are those
that the first run needs. A cryptographic checksum, which is ten times slower, is compared where
somebody asks for it (`verify=True`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tilewright.runtime import _native

__all__ = ["BLOCK_BYTES", "DIGEST_BYTES", "damaged_range", "digests_of", "table_bytes"]

BLOCK_BYTES: Final = 1 << 20
DIGEST_BYTES: Final = 8


def table_bytes(size_bytes: int) -> int:
    """Bytes of the digests of so many bytes of weights."""
    return -(-size_bytes // BLOCK_BYTES) * DIGEST_BYTES


def digests_of(pieces: Sequence[memoryview]) -> bytes:
    """The digests of bytes that follow each other without a gap, however they are cut."""
    table, held = bytearray(), bytearray()
    for piece in pieces:
        filled = min(len(piece), -len(held) % BLOCK_BYTES)  # of a block that was begun before
        held += piece[:filled]
        if len(held) == BLOCK_BYTES:
            table += _native.digest_blocks(held, 1)
            held = bytearray()
        whole = filled + (len(piece) - filled) // BLOCK_BYTES * BLOCK_BYTES
        table += _native.digest_blocks(piece[filled:whole], 1)
        held += piece[whole:]
    return bytes(table + _native.digest_blocks(held, 1))


def damaged_range(weights: memoryview, table: bytes, threads: int) -> tuple[int, int] | None:
    """Where the first block begins and ends that does not fit its digest; None if all do."""
    found = _native.digest_blocks(weights, threads)
    if found == table:
        return None
    for at in range(0, len(table), DIGEST_BYTES):
        if found[at : at + DIGEST_BYTES] != table[at : at + DIGEST_BYTES]:
            start = at // DIGEST_BYTES * BLOCK_BYTES
            return start, min(start + BLOCK_BYTES, len(weights))
    raise AssertionError("as many digests as the table has")
