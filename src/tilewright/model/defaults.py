"""Inputs that have a default: weights that a model lists among its inputs, too.

Exporters list all weights there, and hardly anybody gives others: they are constants, folded and
packed, as all weights are. A run that gives some of them gets a version of the model in which these
are inputs. It is compiled when it is first asked for, from the source of the model, which must not
have changed since.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from tilewright.errors import CallError, Code
from tilewright.model.info import TensorInfo
from tilewright.model.origin import CHANGED, IN_FILE, Origin
from tilewright.model.versions import Versions
from tilewright.runtime.feeds import Feeds

if TYPE_CHECKING:
    import onnx

    from tilewright.model.module import Module

__all__ = ["KEPT", "Defaults", "defaults_of", "infos_of_defaults"]

C035 = Code("C035", "`{model}` cannot take another value of {inputs} than the default: {reason}")

KEPT: Final = 4
"""Versions of a model that are kept, the last ones used: one for each set of given inputs."""


class Defaults:
    """The inputs of one model that have a default; without an `origin` they keep it."""

    def __init__(self, model: str, infos: Sequence[TensorInfo]) -> None:
        self.model, self.infos = model, tuple(infos)
        self.names = frozenset(info.name for info in infos)
        self.origin: Origin | None = None
        self._versions: Versions[frozenset[str]] = Versions()

    def are_given(self, feeds: Feeds) -> bool:
        """Whether some of them are among the inputs of a run; only names say so."""
        return isinstance(feeds, Mapping) and not self.names.isdisjoint(feeds)

    def version(self, feeds: Feeds) -> Module:
        """The model that takes these inputs; raises `CallError` if there can be none."""
        given = self.names.intersection(feeds)
        made = self._versions.get(given, lambda: self._new(given), KEPT)
        assert made is not None
        return made

    def _new(self, given: frozenset[str]) -> Module:
        if self.origin is None:
            hint = "leave it out, or compile the ONNX model where it runs"
            raise self._refusal(given, IN_FILE, hint)
        origin = replace(self.origin, given=given)
        model = origin.read()
        if model is None:
            raise self._refusal(given, CHANGED, "compile it again")
        return origin.compiled(model)

    def _refusal(self, given: frozenset[str], reason: str, hint: str) -> CallError:
        names = " and ".join(f"`{name}`" for name in sorted(given))
        return CallError(C035, {"model": self.model, "inputs": names, "reason": reason}, hint=hint)


def defaults_of(model: onnx.ModelProto) -> Defaults | None:
    """Those of a model that is at hand; mostly none."""
    infos = infos_of_defaults(model)
    return Defaults(str(model.graph.name) or "model", infos) if infos else None


def infos_of_defaults(model: onnx.ModelProto) -> list[TensorInfo]:
    """The inputs of a model that have a default, as callers see them."""
    from tilewright.frontend.onnx.settled import defaulted_inputs
    from tilewright.model.whole import info_of

    return list(map(info_of, defaulted_inputs(model)))
