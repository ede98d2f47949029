"""Keys of the compile cache: everything that decides what is compiled, and nothing else.

That is the model's content, the target, the options, and the compiler. The compiler is known by the
state of its own source files, so that a changed one never finds what the old one made. Content is
known by its hash; that of a file is remembered by the file's identity and times, because hashing
a large model takes longer than loading what was compiled of it.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any, BinaryIO, Final

from tilewright.runtime.cache import Cache
from tilewright.target import Target

__all__ = ["compile_key", "compiler_state", "digest_of_bytes", "digest_of_open"]
__all__ += ["identity_of_open", "llvm_version"]

PACKAGE: Final = Path(__file__).parents[1]
SETTLED_NS: Final = 2_000_000_000
"""A file that changed later than this before now may change again without a new time."""

PIECE: Final = 1 << 20
"""Bytes of a file that are read at once."""

_NOT_IN_CODE: Final = ("name", "frequency_ghz")
"""What may differ between two runs on one machine, and changes no more than a choice."""


def compile_key(model: Iterable[str], target: Target, options: Mapping[str, Any]) -> str:
    """The key of a compilation; `model` are the digests of its files, `options` data of JSON."""
    machine = {k: v for k, v in target.to_dict().items() if k not in _NOT_IN_CODE}
    facts = [list(model), machine, dict(options), compiler_state()]
    text = json.dumps(facts, sort_keys=True, separators=(",", ":"))
    return digest_of_bytes(text.encode())


def digest_of_bytes(data: bytes | memoryview) -> str:
    """Content as 64 hexadecimal digits."""
    return hashlib.blake2b(data, digest_size=32).hexdigest()


def digest_of_open(file: BinaryIO, memory: Cache | None = None) -> str:
    """The digest of a file's content; `memory` knows those of files that have not changed since.

    What is remembered are device, number, size and times of the file. The times of a file that was
    written just now say little, since it can be written again at the same time: it is not
    remembered yet.
    """
    identity = identity_of_open(file)
    if memory is not None:
        found = memory.load(identity, lambda file: _read_digest(file, identity))
        if found is not None:
            return found
    state = hashlib.blake2b(digest_size=32)
    while piece := file.read(PIECE):
        state.update(piece)
    digest = state.hexdigest()
    is_settled = _is_settled(os.fstat(file.fileno()))
    if memory is not None and identity == identity_of_open(file) and is_settled:
        text = f"{digest} {identity}".encode()
        memory.put(identity, lambda draft: draft.write(text))
    return digest


def identity_of_open(file: BinaryIO) -> str:
    """What becomes another one whenever a file is written or exchanged."""
    state = os.fstat(file.fileno())
    facts = (state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns, state.st_ctime_ns)
    return digest_of_bytes(repr(facts).encode())


def _is_settled(state: os.stat_result) -> bool:
    return max(state.st_mtime_ns, state.st_ctime_ns) + SETTLED_NS < time.time_ns()


def _read_digest(file: BinaryIO, identity: str) -> str:
    digest, _, found = file.read().decode("ascii").partition(" ")
    if len(bytes.fromhex(digest)) != 32 or found != identity:
        raise ValueError("not a digest, or that of another file")
    return digest


@functools.cache
def compiler_state() -> str:
    """A digest of the compiler: its source files by name, size and times, and LLVM's version."""
    facts = sorted(_files(PACKAGE, ""))
    return digest_of_bytes(repr((facts, llvm_version())).encode())


def _files(folder: Path, prefix: str) -> Iterator[tuple[str, int, int, int]]:
    with os.scandir(folder) as found:
        for item in found:
            if item.is_dir() and item.name != "__pycache__":
                yield from _files(folder / item.name, f"{prefix}{item.name}/")
            elif item.name.endswith(".py"):
                state = item.stat()
                times = state.st_mtime_ns, state.st_ctime_ns
                yield f"{prefix}{item.name}", state.st_size, *times


def llvm_version() -> str:
    """The version of llvmlite, which is that of LLVM; nothing where it is not installed."""
    try:
        return metadata.version("llvmlite")
    except metadata.PackageNotFoundError:
        return ""
