"""Inputs that have a default: weights that a model lists among its inputs, too.

Exporters list all weights there, and hardly anybody gives others: they are constants, folded and
packed, as all weights are. A run that gives some of them gets a version of the model in which these
are inputs. It is compiled when it is first asked for, from the source of the model, which must not
have changed since.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from tilewright.errors import CallError, Code
from tilewright.model.info import TensorInfo
from tilewright.model.sources import Source, Sources
from tilewright.runtime.keys import digest_of_bytes

if TYPE_CHECKING:
    import onnx

    from tilewright.frontend.onnx.settled import Settled
    from tilewright.model.compiler import Compiling
    from tilewright.model.module import Module

__all__ = ["KEPT", "Defaults", "Origin", "defaults_of", "infos_of_defaults"]

C035 = Code("C035", "`{model}` cannot take another value of {inputs} than the default: {reason}")

KEPT: Final = 4
"""Versions of a model that are kept, the last ones used: one for each set of given inputs."""


@dataclass(frozen=True)
class Origin:
    """Where a model came from, and how it was compiled; `digest` is that of a message in memory."""

    model: Source
    how: Compiling
    settled: Settled | None = None
    digest: str | None = None

    @classmethod
    def of(cls, model: Source, how: Compiling, settled: Settled | None = None) -> Origin:
        """The origin of a model that has just been compiled."""
        if isinstance(model, str | os.PathLike):
            return cls(os.path.abspath(model), how, settled)  # noqa: PTH100  (no link is followed)
        if isinstance(model, bytes):
            return cls(model, how, settled)
        return cls(model, how, settled, _digest(model))

    def is_unchanged(self) -> bool:
        """Whether the model is the one that was compiled."""
        if isinstance(self.model, str | bytes | os.PathLike):
            return self.how.sources.are_unchanged
        return _digest(self.model) == self.digest

    def read(self, given: frozenset[str]) -> onnx.ModelProto | None:
        """The model with these inputs instead of their defaults; None if it has changed."""
        from tilewright.frontend.onnx import read_model
        from tilewright.frontend.onnx.settled import without_defaults

        if not self.is_unchanged():
            return None
        model = without_defaults(read_model(self.model), given)
        return model if self.is_unchanged() else None

    def compiled(self, model: onnx.ModelProto, given: frozenset[str]) -> Module:
        """The version for a set of inputs, from the cache if it is there."""
        digests = *self.how.sources.digests, f"without the defaults of {sorted(given)}"
        how = replace(self.how, sources=Sources(digests))
        return how.module(model, lambda _: None, self.settled)


def _digest(model: onnx.ModelProto) -> str:
    """What a message says, as far as it can be written."""
    try:
        return digest_of_bytes(model.SerializeToString())
    except ValueError:  # more than a file can hold: whoever has it is trusted to leave it alone
        return ""


class Defaults:
    """The inputs of one model that have a default; without an `origin` they keep it."""

    def __init__(self, model: str, infos: Sequence[TensorInfo]) -> None:
        self.model, self.infos = model, tuple(infos)
        self.names = frozenset(info.name for info in infos)
        self.origin: Origin | None = None
        self._versions: OrderedDict[frozenset[str], Module] = OrderedDict()
        self.after_fork()
        _alive.add(self)

    def are_given(self, feeds: Mapping[str, object]) -> bool:
        """Whether some of them are among the inputs of a run."""
        return not self.names.isdisjoint(feeds)

    def version(self, feeds: Mapping[str, object]) -> Module:
        """The model that takes these inputs; raises `CallError` if there can be none."""
        given = self.names.intersection(feeds)
        found = self._known(given)
        if found is not None:
            return found
        with self._compiling:
            found = self._known(given)  # another thread may have been here
            return self._new(given) if found is None else found

    def _known(self, given: frozenset[str]) -> Module | None:
        with self._lock:
            if given in self._versions:
                self._versions.move_to_end(given)
            return self._versions.get(given)

    def _new(self, given: frozenset[str]) -> Module:
        if self.origin is None:
            hint = "leave it out, or compile the ONNX model where it runs"
            raise self._refusal(given, "there is no model in a compiled file", hint)
        model = self.origin.read(given)
        if model is None:
            reason = "the model has changed since it was compiled"
            raise self._refusal(given, reason, "compile it again")
        made = self.origin.compiled(model, given)
        with self._lock:
            self._versions[given] = made
            while len(self._versions) > KEPT:
                self._versions.popitem(last=False)
        return made

    def _refusal(self, given: frozenset[str], reason: str, hint: str) -> CallError:
        names = " and ".join(f"`{name}`" for name in sorted(given))
        return CallError(C035, {"model": self.model, "inputs": names, "reason": reason}, hint=hint)

    def after_fork(self) -> None:
        """In a new process no thread is left that could give back a lock."""
        self._lock, self._compiling = threading.Lock(), threading.Lock()


def defaults_of(model: onnx.ModelProto) -> Defaults | None:
    """Those of a model that is at hand; mostly none."""
    infos = infos_of_defaults(model)
    return Defaults(str(model.graph.name) or "model", infos) if infos else None


def infos_of_defaults(model: onnx.ModelProto) -> list[TensorInfo]:
    """The inputs of a model that have a default, as callers see them."""
    from tilewright.frontend.onnx.settled import defaulted_inputs
    from tilewright.model.whole import info_of

    return list(map(info_of, defaulted_inputs(model)))


_alive: weakref.WeakSet[Defaults] = weakref.WeakSet()


def _after_fork() -> None:
    for defaults in list(_alive):
        defaults.after_fork()


os.register_at_fork(after_in_child=_after_fork)
