"""Damage to bytes, as disks, networks and careless tools do it: no knowledge of what they mean."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Final

__all__ = ["DAMAGES", "damaged"]

Damage = Callable[[random.Random, bytearray], None]


def _truncate(rng: random.Random, data: bytearray) -> None:
    del data[rng.randrange(len(data)) :]


def _flip(rng: random.Random, data: bytearray) -> None:
    for _ in range(rng.choice((1, 1, 1, 2, 4, 16))):
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)


def _overwrite(rng: random.Random, data: bytearray) -> None:
    at = rng.randrange(len(data))
    pieces = (b"\xff" * 10, b"\0" * 8, rng.randbytes(4), b"\x80" * 9 + b"\x01", b"\x7f")
    piece = rng.choice(pieces)
    data[at : at + len(piece)] = piece


def _remove(rng: random.Random, data: bytearray) -> None:
    at = rng.randrange(len(data))
    del data[at : at + rng.choice((1, 2, 7, 64))]


def _insert(rng: random.Random, data: bytearray) -> None:
    at = rng.randrange(len(data))
    data[at:at] = rng.randbytes(rng.choice((1, 2, 7, 64)))


def _repeat(rng: random.Random, data: bytearray) -> None:
    at = rng.randrange(len(data))
    piece = data[at : at + rng.choice((4, 16, 200))]
    data[at:at] = piece * rng.choice((1, 2, 20))


def _exchange(rng: random.Random, data: bytearray) -> None:
    size = min(rng.choice((1, 8, 40)), len(data) // 2) or 1
    p, q = sorted(rng.randrange(len(data) - size + 1) for _ in range(2))
    data[p : p + size], data[q : q + size] = data[q : q + size], data[p : p + size]


DAMAGES: Final[dict[str, Damage]] = {
    "truncated": _truncate,
    "flipped": _flip,
    "overwritten": _overwrite,
    "removed": _remove,
    "inserted": _insert,
    "repeated": _repeat,
    "exchanged": _exchange,
}


def damaged(rng: random.Random, content: bytes) -> tuple[str, bytes]:
    """One kind of damage, and the content after it."""
    name = rng.choice(list(DAMAGES))
    data = bytearray(content)
    DAMAGES[name](rng, data)
    return name, bytes(data)
