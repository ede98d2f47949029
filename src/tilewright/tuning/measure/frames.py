"""Messages between processes: JSON with bytes behind it, over pipes.

    magic, length of the JSON, length of the bytes, JSON, bytes

What comes from a process that ran a candidate may be anything: lengths are believed only up to a
limit, and what does not begin as a message does is none.
"""

from __future__ import annotations

import json
import struct
from typing import IO, Any, Final

__all__ = ["HEAD", "GarbageError", "lengths", "message", "opened", "received"]

HEAD: Final = struct.Struct("<4sIQ")
MAGIC: Final = b"tw-m"
MOST_JSON: Final = 1 << 28
MOST_BYTES: Final = 1 << 32


class GarbageError(Exception):
    """What came over a pipe is no message."""


def message(facts: dict[str, Any], data: bytes = b"") -> bytes:
    """A message as bytes."""
    text = json.dumps(facts, separators=(",", ":")).encode()
    return b"".join((HEAD.pack(MAGIC, len(text), len(data)), text, data))


def lengths(head: bytes) -> tuple[int, int]:
    """Lengths of the JSON and of the bytes that follow."""
    magic, text, data = HEAD.unpack(head)
    if magic != MAGIC or text > MOST_JSON or data > MOST_BYTES:
        raise GarbageError("it answered with something that is no answer")
    return text, data


def opened(text: bytes) -> dict[str, Any]:
    """The facts of a message."""
    try:
        facts = json.loads(text)
    except (ValueError, RecursionError):
        facts = None
    if not isinstance(facts, dict):
        raise GarbageError("it answered with something that is no answer")
    return facts


def received(stream: IO[bytes]) -> tuple[dict[str, Any], bytes] | None:
    """The next message of a stream; None at its end."""
    head = stream.read(HEAD.size)
    if len(head) < HEAD.size:
        return None
    text, data = lengths(head)
    return opened(stream.read(text)), stream.read(data)
