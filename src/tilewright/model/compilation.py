"""What a compilation ends in: a program for a machine, or what stands for it.

`GraphModel` is a model as a graph, `Chosen` one up to its kernels, `Compilation` one with them. A
model that cannot be compiled before some of its inputs are known is `Unsettled`, one whose values
are not all tensors is `NotCompiled`. The last three have the `module` that users hold.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from tilewright.errors import TilewrightWarning
from tilewright.model.exhaustion import told_as_too_large
from tilewright.model.info import ModelMeta, TensorInfo
from tilewright.model.module import Module
from tilewright.model.origin import Origin
from tilewright.runtime.artefact import Parts
from tilewright.target import Target
from tilewright.unsupported import Unsupported, listing

if TYPE_CHECKING:
    import onnx

    from tilewright.frontend.onnx.beginnings import Halves
    from tilewright.frontend.onnx.reference.whole import WholeModel
    from tilewright.frontend.onnx.settled import Needs, Settled
    from tilewright.graph.guards import Guard
    from tilewright.graph.ir import Graph, Meeting
    from tilewright.layouts.choose import Choice
    from tilewright.layouts.sites import Settings
    from tilewright.model.assemble import Assembled
    from tilewright.model.compiler import Compiling
    from tilewright.model.endings import Ending

__all__ = ["About", "Chosen", "Compilation", "GraphModel", "NotCompiled", "Unsettled"]
__all__ += ["warn_of_reference"]


@dataclass(frozen=True)
class About:
    """What is known of a model besides its graph, and goes along with it.

    `by_reference` are nodes that run on the reference implementation. `equal` are sizes that are
    never broadcast where they meet, `guards` what the graph relies on.
    """

    by_reference: Sequence[Unsupported]
    meta: ModelMeta
    lengths: Sequence[int | None] | None = None
    endings: Mapping[str, Ending] = field(default_factory=dict)
    defaults: Sequence[TensorInfo] = ()
    equal: frozenset[Meeting] = frozenset()
    guards: tuple[Guard, ...] = ()


@dataclass(frozen=True)
class GraphModel:
    """A model as a graph of core operators."""

    graph: Graph
    about: About

    def __str__(self) -> str:
        return str(self.graph)


@dataclass(frozen=True)
class Chosen:
    """A model up to its kernels: the graph after all passes, and the choice of its layouts."""

    graph: Graph
    settings: Settings
    choice: Choice
    about: About

    def outline(self) -> Chosen:
        """The same without what constants hold."""
        from tilewright.graph.outline import outline

        choice = replace(self.choice, graph=outline(self.choice.graph))
        return replace(self, graph=outline(self.graph), choice=choice)

    def __str__(self) -> str:
        return str(self.choice.graph)


@dataclass(frozen=True)
class Compilation:
    """All that is known of a model that was just compiled, for whatever target."""

    chosen: Chosen
    made: Assembled
    parts: Parts
    threads: int | None

    @property
    def target(self) -> Target:
        return self.chosen.settings.machine.target

    @property
    def graph(self) -> Graph:
        """What was compiled: layouts and conversions included."""
        return self.chosen.choice.graph

    def module(self) -> Module:
        """The model, ready to run; on a machine of its kind, if that is not this one."""
        if self.target.missing_on(Target.host()):
            from tilewright.model.foreign import ForeignModule

            return ForeignModule(self.made, self.parts, self.target, self.threads, self.graph)
        with told_as_too_large(self.graph.name):  # a program is verified when it is loaded
            return Module.of(self.made, self.parts, self.threads, self.graph)

    def __str__(self) -> str:
        return str(self.made)


@dataclass(frozen=True)
class NotCompiled:
    """A model that runs by reference, since its values are not all tensors.

    One that begins with texts has `halves`, of which the second may be `compiled` all the same.
    """

    model: WholeModel
    halves: Halves | None = None
    compiled: Compilation | None = None

    def module(self) -> Module:
        """The model with the face of a module."""
        from tilewright.frontend.onnx.reference.whole import WholeModel
        from tilewright.model.begun import BegunModule
        from tilewright.model.whole import WholeModule

        if self.halves is None or self.compiled is None:
            return WholeModule(self.model)
        front = WholeModel(self.halves.front, self.model.reason, self.halves.nodes)
        return BegunModule(self.model, front, self.compiled.module(), self.halves.rest)


@dataclass(frozen=True)
class Unsettled:
    """A model that can be compiled when some of its inputs are known."""

    model: onnx.ModelProto
    needs: Needs
    how: Compiling

    def module(self) -> Module:
        """The model, which compiles itself for what it is given."""
        from tilewright.model.settled import SettledModule

        return SettledModule(self)

    def compiled(self, settled: Settled | None) -> Module:
        """The model for some values, or as it is: parts run by reference then."""
        made = self.how.module(self.model, lambda _: None, settled, final=True)
        if made.spreading is not None:
            made.spreading.origin = Origin.of(self.model, self.how, settled)
        return made


def warn_of_reference(nodes: Sequence[Unsupported]) -> None:
    """Say once which nodes run slowly, and why; the warning has all of them."""
    if not nodes:
        return
    single = "1 node runs" if len(nodes) == 1 else f"{len(nodes)} nodes run"
    what = single if all(node.op for node in nodes) else "the model runs"
    lines = "".join(f"\n  {line}" for line in listing(nodes))
    text = f"{what} on the ONNX reference implementation, which is slow:{lines}"
    warnings.warn(TilewrightWarning(text, nodes), stacklevel=3)
