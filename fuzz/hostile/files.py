"""Damaged artefacts and cache entries, also such whose checksums were made to fit."""

from __future__ import annotations

import json
import random
import struct
from typing import Any, Final

from fuzz.hostile.damage import damaged
from tilewright.abi import ABI_VERSION
from tilewright.model.module import EXPANSION
from tilewright.runtime import artefact

__all__ = ["mutated_artefact", "mutated_kernel"]

VALUES: Final[tuple[Any, ...]] = (0, 1, -1, 2**31, 2**63 - 1, -(2**63), 2**70, "", "x", None, True)
VALUES_MORE: Final[tuple[Any, ...]] = ([], {}, [0], 1.5, "\x1b[31m", ["call"], "f32", {"a": 1})


def mutated_artefact(rng: random.Random, content: bytes) -> tuple[str, bytes]:
    """A kind of mutant and its bytes: damage, or other metadata with checksums that fit.

    Loading a small file runs a program of it: what that does is not promised of the latter.
    """
    head = artefact._START
    rows = [list(row) for row in artefact._SECTION.iter_unpack(_sections(content))]
    offset, size, _ = rows[0]
    data = json.loads(content[offset : offset + size])
    if rng.random() < 0.5 or EXPANSION in data["extra"]:
        kind, mutant = damaged(rng, content)
        return f"artefact {kind}", mutant
    _change(rng, data)
    metadata = json.dumps(data).encode()
    parts = [metadata, *(content[o : o + s] for o, s, _ in rows[1:])]
    offsets, end = artefact._layout([len(part) for part in parts])
    file = bytearray(end)
    for at, part in zip(offsets, parts, strict=True):
        file[at : at + len(part)] = part
    table = artefact._HEADER.pack(artefact.MAGIC, artefact.FORMAT, ABI_VERSION, end)
    for at, part in zip(offsets, parts, strict=True):
        table += artefact._SECTION.pack(at, len(part), artefact._checksum([part]))
    file[:head] = table + artefact._checksum([table])
    return "artefact signed", bytes(file)


def _sections(content: bytes) -> bytes:
    return content[artefact._HEADER.size : artefact._CHECKSUM_AT]


def _change(rng: random.Random, data: Any) -> None:
    """Another value somewhere in data of JSON, or something added or taken away."""
    places: list[tuple[Any, Any]] = []
    waiting = [data]
    while waiting:
        part = waiting.pop()
        items = part.items() if isinstance(part, dict) else enumerate(part)
        for key, value in items:
            places.append((part, key))
            if isinstance(value, dict | list):
                waiting.append(value)
    for _ in range(rng.choice((1, 1, 2, 5))):
        part, key = rng.choice(places)
        try:
            match rng.randrange(4):
                case 0:
                    del part[key]
                case 1 if isinstance(part, list):
                    part.insert(key, part[key])
                case _:
                    part[key] = rng.choice(VALUES + VALUES_MORE)
        except (IndexError, KeyError):
            continue


def mutated_kernel(rng: random.Random, key: str, content: bytes) -> tuple[str, bytes]:
    """The same for a kernel that was kept under a key."""
    from tilewright.model import kernel_store

    if rng.random() < 0.5:
        kind, data = damaged(rng, content)
        return f"kernel {kind}", data
    (length,) = struct.unpack_from("<I", content, 16)
    facts = json.loads(content[20 : 20 + length])
    _change(rng, facts)
    description = json.dumps(facts).encode()
    rest = struct.pack("<I", len(description)) + description + content[20 + length :]
    return "kernel signed", kernel_store._checksum(rest, key) + rest
