"""Runs in which a size of one meets another one, though a model was compiled for equal ones.

`x[n] + z[m]` is broadcast where n or m is one. Hardly a model that has two names for a size means
that, and kernels are better for knowing that they are equal: so they are taken to be, and a run in
which one of them is one gets a version of the model that knows it. What is one there, and no size
of an input, is left to a version that looks everything up (`graph/spread.py`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from tilewright.errors import CallError, ModelError
from tilewright.model.origin import CHANGED, IN_FILE, Origin
from tilewright.model.versions import Versions
from tilewright.runtime.meetings import MeetsOneError

if TYPE_CHECKING:
    from tilewright.frontend.onnx.settled import Settled
    from tilewright.model.module import Module

__all__ = ["KEPT", "Spreading"]

KEPT: Final = 16
"""Versions of a model that are kept, the last ones used: one for each set of sizes of one."""


class Spreading:
    """The versions of one model in which sizes are one; without an `origin` there are none."""

    def __init__(self) -> None:
        self.origin: Origin | None = None
        self._versions: Versions[frozenset[str]] = Versions()

    def version(self, met: MeetsOneError) -> Module:
        """The model for sizes as a run had them that ended so; raises `met` if there is none."""
        made = self._versions.get(met.ones, lambda: self._new(met), KEPT)
        if made is None:
            raise met
        return made

    def _new(self, met: MeetsOneError) -> Module | None:
        """A version; None if sizes that are known to be one do not fit, whatever others are."""
        origin = self.origin
        if origin is None:
            hint = "pass arrays in which they are equal, or compile the ONNX model where it runs"
            raise _refusal(met, IN_FILE, hint)
        settled = _settled(origin.settled, met.ones)
        if settled is None:
            return None
        model = origin.read()
        if model is None:
            raise _refusal(met, CHANGED, "compile it again")
        try:
            return replace(origin, settled=settled).compiled(model, final=True)
        except ModelError:
            return None


def _settled(known: Settled | None, ones: frozenset[str]) -> Settled | None:
    """What is known of a version, in which more is one than before; None if that is no help."""
    from tilewright.frontend.onnx.settled import Settled

    known = known or Settled()
    if ones <= known.ones:
        return None if known.spreads else replace(known, spreads=True)
    return replace(known, ones=known.ones | ones)


def _refusal(met: MeetsOneError, reason: str, hint: str) -> CallError:
    facts = {**met.facts, "broadcast": f"not possible, because {reason}"}
    return CallError(met.code, facts, hint=hint)
