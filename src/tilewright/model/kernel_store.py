"""Compiled kernels kept between compilations: a model that resembles an earlier one is soon done.

A kernel is found by the structure of its tensor program, the target, the threads and the compiler;
neither names nor weights matter, so that another training of a network compiles nothing at all.

    checksum of key and rest, length of the description, description (JSON), object code

The key is part of it: a kernel that came to lie in another one's place is damage like any other.

Layouts are stored as the texts of their steps. A kernel whose layouts these do not say in full
(steps with symbolic sizes) is not kept.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Sequence
from dataclasses import fields
from typing import Any, Final

from tilewright.model.kernels import Compiled, KernelTask
from tilewright.runtime.cache import Cache
from tilewright.runtime.keys import compile_key
from tilewright.target import Target
from tilewright.tensor.layout import parse_step
from tilewright.tensor.packing import Packing

__all__ = ["KernelStore"]

_HEAD: Final = struct.Struct("<16sI")
_FIELDS: Final = tuple(f.name for f in fields(Compiled) if f.name not in ("code", "packings"))

Described = tuple[list[str], list[int], list[int]]
"""The steps of a packing as text, the logical shape and the physical one."""


class KernelStore:
    """Kernels for one target in a cache; may be used from several threads."""

    def __init__(self, cache: Cache, target: Target) -> None:
        self.cache, self.target = cache, target

    def find(self, task: KernelTask) -> Compiled | None:
        """The kernel of a task, if it is known."""
        key = self._key(task)
        return self.cache.load(key, lambda file: decode(file.read(), key))

    def keep(self, task: KernelTask, kernel: Compiled) -> None:
        """Remember a kernel."""
        key = self._key(task)
        data = encode(kernel, key)
        if data is not None:
            self.cache.put(key, lambda file: file.write(data), is_final=False)

    def tidy(self) -> None:
        """Forget the kernels that were not used for longest, where there are too many."""
        self.cache.prune()

    def _key(self, task: KernelTask) -> str:
        return compile_key([task.key], self.target, {"kind": "kernel"})


def encode(kernel: Compiled, key: str = "") -> bytes | None:
    """A kernel as bytes, to be found by a key; None if they would not say all of it."""
    packings = {}
    for number, packing in kernel.packings.items():
        text = _describe(packing)
        if text is None:
            return None
        packings[number] = text
    facts = {name: getattr(kernel, name) for name in _FIELDS}
    description = json.dumps({**facts, "packings": packings}, separators=(",", ":")).encode()
    rest = struct.pack("<I", len(description)) + description + kernel.code
    return _checksum(rest, key) + rest


def decode(data: bytes, key: str = "") -> Compiled:
    """The kernel of bytes; ValueError if they are damaged, or those of another key."""
    if len(data) < _HEAD.size or _checksum(data[16:], key) != data[:16]:
        raise ValueError("a kernel that was kept is damaged")
    end = _HEAD.size + _HEAD.unpack_from(data)[1]
    try:
        return _described(json.loads(data[_HEAD.size : end]), data[end:])
    except (LookupError, TypeError, AttributeError, RecursionError):
        raise ValueError("a kernel that was kept does not say what it should") from None


def _described(facts: Any, code: bytes) -> Compiled:
    """The kernel of a description, whatever that is."""
    match facts:
        case {
            "symbol": str(),
            "scratch_symbol": str(),
            "size_order": [*order],
            "remarks": [*remarks],
            "in_place": [*pairs],
            "packings": dict() as packings,
            "shared_bytes": int() | None,
            "local_bytes": int() | None,
            "parallel": bool(),
        } if all(type(k) is int for k in order) and all(type(r) is str for r in remarks):
            facts["size_order"], facts["remarks"] = tuple(order), tuple(remarks)
            facts["in_place"] = tuple((int(x), int(y)) for x, y in pairs)
            facts["packings"] = {int(k): _packing(*entry) for k, entry in packings.items()}
            return Compiled(code=code, **facts)
    raise ValueError("a kernel that was kept does not say what it should")


def _describe(packing: Packing) -> Described | None:
    """A packing of known sizes as data; None if it cannot be made again from them."""
    logical, physical = list(packing.logical_shape), list(packing.physical_shape)
    if not all(isinstance(size, int) for size in (*logical, *physical)):
        return None
    steps = [str(step) for step in packing.steps]
    try:
        is_whole = _packing(steps, logical, physical) == packing
    except ValueError:
        return None
    return (steps, logical, physical) if is_whole else None


def _packing(steps: Sequence[str], logical: Sequence[int], physical: Sequence[int]) -> Packing:
    return Packing(tuple(map(parse_step, steps)), tuple(logical), tuple(physical))


def _checksum(data: bytes, key: str) -> bytes:
    return hashlib.blake2b(data, digest_size=16, key=key.encode()).digest()
