"""Runs for which a model was not compiled, though another version of it would do.

`x[n] + z[m]` is broadcast where n or m is one. Hardly a model that has two names for a size means
that, and kernels are better for knowing that they are equal: so they are taken to be, and a run in
which one of them is one gets a version of the model that knows it. What is one there, and no size
of an input, is left to a version that looks everything up (`graph/spread.py`).

`Squeeze(x[n, 4])` has another rank where n is one: a graph relies on a guard (`graph/guards.py`),
and a run in which it fails gets a version with that guard flipped. Where one version would need
both answers, as in the iterations of a loop, the model runs on the reference implementation; so it
does if a part that runs there gives a result of another rank than the model declares.

Sizes of one name are one size. A run in which they differ gets a version that tells them apart.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Final, TypeVar

from tilewright.errors import CallError, ModelError, TilewrightWarning
from tilewright.model.origin import CHANGED, IN_FILE, Origin
from tilewright.model.versions import Versions
from tilewright.runtime.failures import C025
from tilewright.runtime.meetings import GuardError, Wanted
from tilewright.shown import listed, quoted

if TYPE_CHECKING:
    from tilewright.frontend.onnx.settled import Settled
    from tilewright.model.module import Module

__all__ = ["KEPT", "MAX_HELD", "NOT_HELD", "Spreading"]

KEPT: Final = 16
"""Versions of a model that are kept, the last ones used: one for all that a run may want."""

MAX_HELD: Final = 64 << 20
"""Bytes of a model in memory that are kept only because sizes of one name might differ."""
NOT_HELD: Final = "the model was not given as a file, and is too large to be kept"

T = TypeVar("T")


class Spreading:
    """The versions of one model for other sizes; without an `origin` there are none."""

    def __init__(self) -> None:
        self.origin: Origin | None = None
        self.reason = IN_FILE  # if there is no origin
        self._versions: Versions[Wanted] = Versions()
        self.is_silent = False

    def call(self, met: GuardError, run: Callable[[Module], T]) -> T:
        """Run the version for sizes as a run had them that ended so; raises `met` if it has none.

        Sizes that differ though they have one name, and do not fit, are refused for that name.
        """
        version = self.version(met)
        if not met.wanted.apart:
            return run(version)
        try:
            found = run(version)
        except CallError as problem:
            if problem.code is C025:
                raise met from None
            raise
        self._warn(met)
        return found

    def version(self, met: GuardError) -> Module:
        """The model for sizes as a run had them that ended so; raises `met` if there is none."""
        made = self._versions.get(met.wanted, lambda: self._new(met), KEPT)
        if made is None:
            raise met
        return made

    def _new(self, met: GuardError) -> Module | None:
        """A version; None if sizes that are known to be one do not fit, whatever others are."""
        from tilewright.model.compilation import warn_of_reference

        origin = self.origin
        if origin is None:
            raise _refusal(met, self.reason, _remedy(met.wanted))
        settled = _settled(origin.settled, met.wanted)
        if settled is None:
            return None
        model = origin.read()
        if model is None:
            raise _refusal(met, CHANGED, "compile it again")
        try:
            made = replace(origin, settled=settled).compiled(model, final=True)
        except ModelError:
            if not met.wanted.flipped or settled.whole:
                return None
            settled = replace(settled, whole=True)
            made = replace(origin, settled=settled).compiled(model, final=True)
        if settled.whole:
            warn_of_reference(made.by_reference)
        return made

    def _warn(self, met: GuardError) -> None:
        if not self.is_silent:
            self.is_silent = True  # once is enough
            names = listed(sorted(met.wanted.apart))
            text = (
                f"sizes of one name differ in {quoted(met.facts['kernel'])}: {names}. It runs with "
                "a version of the model that tells them apart; give them names of their own"
            )
            warnings.warn(TilewrightWarning(text), stacklevel=5)


def _settled(known: Settled | None, wanted: Wanted) -> Settled | None:
    """What is known of a version, which knows more than before; None if that is no help."""
    from tilewright.frontend.onnx.settled import Settled

    known = known or Settled()
    if wanted.whole or wanted.flipped & known.flipped:
        return None if known.whole else replace(known, whole=True)
    more = replace(
        known,
        ones=known.ones | wanted.ones,
        flipped=known.flipped | wanted.flipped,
        apart=known.apart | wanted.apart,
    )
    names = more.ones, more.flipped, more.apart
    if names != (known.ones, known.flipped, known.apart):
        return more
    return None if known.spreads else replace(known, spreads=True)


def _remedy(wanted: Wanted) -> str:
    if wanted.apart:
        return "make sizes of one name equal, or compile the ONNX model where it runs"
    fixed = "or make a file for it: `tilewright compile --size NAME=N`"
    return f"pass arrays of other sizes, or compile the ONNX model where it runs, {fixed}"


def _refusal(met: GuardError, reason: str, hint: str) -> CallError:
    facts = {**met.facts, "another version": f"not possible, because {reason}"}
    return CallError(met.code, facts, hint=hint)
