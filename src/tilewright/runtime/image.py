"""Machine code that is mapped into this process, from bytes or from a file.

No memory is writable and executable at once: bytes are written first and made executable then, and
a file is mapped as it is. Where the system forbids one way (a file system without execution, a
policy against executable data), the other one is tried before giving up.
"""

from __future__ import annotations

import errno
import os

from tilewright.errors import ArtefactError, Code
from tilewright.runtime import _native

__all__ = ["Image"]

A101 = Code("A101", "this system does not let machine code be mapped: {problem}")

FORBIDDEN = (errno.EPERM, errno.EACCES)


class Image:
    """Machine code in memory, which lives as long as this object: who has an address keeps it."""

    __slots__ = ("__weakref__", "_mapped", "address", "bytes")

    def __init__(self, mapped: _native.Image | None) -> None:
        self._mapped = mapped
        self.address = mapped.address if mapped is not None else 0
        self.bytes = memoryview(mapped) if mapped is not None else memoryview(b"")

    @classmethod
    def from_bytes(cls, code: bytes | memoryview) -> Image:
        """A copy of `code`, which may be empty."""
        if not len(code):
            return cls(None)
        try:
            return cls(_native.Image(code))
        except OSError as problem:
            raise _refused(problem) from None

    @classmethod
    def from_file(cls, file: int, offset: int, size_bytes: int) -> Image:
        """A part of an open file (a descriptor); `offset` is a multiple of the page."""
        if not size_bytes:
            return cls(None)
        try:
            return cls(_native.Image.map(file, offset, size_bytes))
        except OSError as problem:
            if problem.errno in FORBIDDEN:
                return cls.from_bytes(os.pread(file, size_bytes, offset))
            raise _refused(problem) from None

    def __repr__(self) -> str:
        return f"Image({len(self.bytes)} bytes at {self.address:#x})"


def _refused(problem: OSError) -> ArtefactError:
    if problem.errno in FORBIDDEN:
        hint = (
            "allow this process executable memory: `execmem` of SELinux, or "
            "`MemoryDenyWriteExecute=no` of systemd"
        )
    elif problem.errno == errno.ENOMEM:
        hint = "free memory, or raise the limit of this process (`ulimit -v`)"
    else:
        hint = "keep the file on a local disk"
    return ArtefactError(A101, {"problem": problem.strerror or str(problem)}, hint=hint)
