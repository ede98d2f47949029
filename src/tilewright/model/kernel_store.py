"""Compiled kernels kept between compilations: a model that resembles an earlier one is soon done.

A kernel is found by the structure of its tensor program, the target, the threads, the compiler and
what the source of schedules knows of it; neither names nor weights matter, so that another training
of a network compiles nothing at all.

    checksum of key and rest, length of the description, description (JSON), object code

The key is part of it: a kernel that came to lie in another one's place is damage like any other.

The description is the kernel's interface. A kernel that it does not say in full (layouts of
constants with symbolic sizes) is not kept.
"""

from __future__ import annotations

import hashlib
import json
import struct
from typing import Any, Final

from tilewright.llvm.interface import Interface
from tilewright.model.kernels import KernelTask
from tilewright.pipeline import Compiled
from tilewright.runtime.cache import Cache
from tilewright.runtime.keys import compile_key
from tilewright.schedule.source import DRAFT, ScheduleSource
from tilewright.target import Target

__all__ = ["KernelStore"]

_HEAD: Final = struct.Struct("<16sI")


class KernelStore:
    """Kernels for one target, scheduled by one source, in a cache.

    It may be used from several threads.
    """

    def __init__(self, cache: Cache, target: Target, schedules: ScheduleSource = DRAFT) -> None:
        self.cache, self.target, self.schedules = cache, target, schedules

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
        known = self.schedules.digest_of(task.workload(self.target))
        options = {"kind": "kernel", **({"schedule": known} if known else {})}
        return compile_key([task.key], self.target, options)


def encode(kernel: Compiled, key: str = "") -> bytes | None:
    """A kernel as bytes, to be found by a key; None if they would not say all of it."""
    facts = {**kernel.interface.to_dict(), "remarks": list(kernel.remarks)}
    description = json.dumps(facts, separators=(",", ":")).encode()
    if _described(json.loads(description), kernel.code) != kernel:
        return None
    rest = struct.pack("<I", len(description)) + description + kernel.code
    return _checksum(rest, key) + rest


def decode(data: bytes, key: str = "") -> Compiled:
    """The kernel of bytes; ValueError if they are damaged, or those of another key."""
    if len(data) < _HEAD.size or _checksum(data[16:], key) != data[:16]:
        raise ValueError("a kernel that was kept is damaged")
    end = _HEAD.size + _HEAD.unpack_from(data)[1]
    return _described(json.loads(data[_HEAD.size : end]), data[end:])


def _described(facts: Any, code: bytes) -> Compiled:
    """The kernel of a description, whatever that is."""
    try:
        return Compiled(code, Interface.from_dict(facts), tuple(map(str, facts["remarks"])))
    except (LookupError, TypeError, AttributeError, RecursionError):
        raise ValueError("a kernel that was kept does not say what it should") from None


def _checksum(data: bytes, key: str) -> bytes:
    return hashlib.blake2b(data, digest_size=16, key=key.encode()).digest()
