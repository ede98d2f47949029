"""Jobs and points as bytes for another process of the same version, on any machine.

It is pickling with three differences. A variable has identity: within what is sent at once, it
stays one variable. Dataclasses go by their fields alone, without what they have computed and kept:
a hash of one process is wrong in every other. Nodes do so by themselves.

Only a cluster reads these bytes, whose members run each other's code anyway: they are no format for
files, and nothing of a stranger's.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from typing import Any

from tilewright.tensor import ir as tir

__all__ = ["from_bytes", "to_bytes"]


def to_bytes(value: object) -> bytes:
    """The inverse of `from_bytes`."""
    stream = io.BytesIO()
    _Pickler(stream, pickle.HIGHEST_PROTOCOL).dump(value)
    return stream.getvalue()


def from_bytes(data: bytes) -> Any:
    """What was sent, with variables of its own."""
    return pickle.loads(data)  # noqa: S301 (see the module: members of a cluster only)


class _Pickler(pickle.Pickler):
    def reducer_override(self, obj: object) -> Any:
        if isinstance(obj, tir.Var):
            return tir.Var, (obj.name, obj.dtype)  # once: pickling remembers what it has seen
        if is_dataclass(obj) and not isinstance(obj, type):
            own = {field.name: getattr(obj, field.name) for field in fields(obj) if field.init}
            return _remade, (type(obj), own)
        return NotImplemented


def _remade(kind: Callable[..., object], own: dict[str, Any]) -> object:
    return kind(**own)
