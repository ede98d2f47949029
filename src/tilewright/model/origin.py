"""Where a module came from: what other versions of its model are compiled from, when a run asks.

A file may have changed since, and a message in memory as well: nothing is compiled of another model
than the one that a module is of.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tilewright.model.sources import Source, Sources
from tilewright.runtime.keys import digest_of_bytes

if TYPE_CHECKING:
    import onnx

    from tilewright.frontend.onnx.settled import Settled
    from tilewright.model.compiler import Compiling
    from tilewright.model.module import Module

__all__ = ["CHANGED", "IN_FILE", "Origin"]

CHANGED = "the model has changed since it was compiled"
IN_FILE = "there is no model in a compiled file"


@dataclass(frozen=True)
class Origin:
    """A model, and how it was compiled; `digest` is that of a message in memory.

    `given` are inputs that have a default, and take what a run gives instead.
    """

    model: Source
    how: Compiling
    settled: Settled | None = None
    digest: str | None = None
    given: frozenset[str] = frozenset()

    @classmethod
    def of(cls, model: Source, how: Compiling, settled: Settled | None = None) -> Origin:
        """The origin of a model that has just been compiled."""
        if isinstance(model, str | os.PathLike):
            return cls(os.path.abspath(model), how, settled)  # noqa: PTH100  (no link is followed)
        if isinstance(model, bytes):
            return cls(model, how, settled)
        return cls(model, how, settled, _digest(model))

    @staticmethod
    def held_bytes(model: Source) -> int:
        """How much memory is not free as long as a model is remembered."""
        if isinstance(model, str | os.PathLike):
            return 0
        return len(model) if isinstance(model, bytes) else model.ByteSize()

    def is_unchanged(self) -> bool:
        """Whether the model is the one that was compiled."""
        if isinstance(self.model, str | bytes | os.PathLike):
            return self.how.sources.are_unchanged
        return _digest(self.model) == self.digest

    def read(self) -> onnx.ModelProto | None:
        """The model, with what is given instead of defaults; None if it has changed."""
        from tilewright.frontend.onnx import read_model
        from tilewright.frontend.onnx.settled import without_defaults

        if not self.is_unchanged():
            return None
        model = read_model(self.model)
        if self.given:
            model = without_defaults(model, self.given)
        return model if self.is_unchanged() else None

    def compiled(self, model: onnx.ModelProto, *, final: bool = False) -> Module:
        """The version that was read, from the cache if it is there."""
        how = self.how
        if self.given:
            digests = *how.sources.digests, f"without the defaults of {sorted(self.given)}"
            how = replace(how, sources=Sources(digests, name=how.sources.name))
        made = how.module(model, lambda _: None, self.settled, final=final)
        if made.spreading is not None:
            made.spreading.origin = self
        return made


def _digest(model: onnx.ModelProto) -> str:
    """What a message says, as far as it can be written."""
    try:
        return digest_of_bytes(model.SerializeToString())
    except ValueError:  # more than a file can hold: whoever has it is trusted to leave it alone
        return ""
