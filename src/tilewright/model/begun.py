"""`BegunModule`: texts become numbers by reference, and what follows is native.

Like a model that runs by reference as a whole it cannot be saved.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn

from tilewright.errors import ArtefactError
from tilewright.model.info import ModelMeta, TensorInfo
from tilewright.model.module import Module
from tilewright.model.origin import Origin
from tilewright.model.sources import Sources
from tilewright.model.whole import A121, info_of, inputs_of
from tilewright.runtime.executable import MemoryUse
from tilewright.runtime.feeds import Feeds, by_name
from tilewright.runtime.profile import Event, Profile

if TYPE_CHECKING:
    import onnx

    from tilewright.frontend.onnx.reference.whole import WholeModel
    from tilewright.unsupported import Unsupported

__all__ = ["BegunModule"]


class BegunModule(Module):
    """A module whose inputs go through a model by reference first; `whole` is what both are of."""

    defaults = None

    def __init__(
        self, whole: WholeModel, front: WholeModel, rest: Module, source: onnx.ModelProto
    ) -> None:
        self.whole, self.front, self.rest = whole, front, rest
        self._source = source if rest.spreading is not None else None
        self.graph = rest.graph
        nodes: tuple[Unsupported, ...] = front.nodes
        self.by_reference = (*nodes, *rest.by_reference)
        self._wanted = {info.name for info in rest.inputs}

    @property
    def name(self) -> str:
        return self.whole.name

    @property
    def threads(self) -> int:
        return self.rest.threads

    @property
    def kernels(self) -> int:
        return self.rest.kernels

    @property
    def lengths(self) -> None:
        return None

    @property
    def inputs(self) -> tuple[TensorInfo, ...]:
        return tuple(map(info_of, inputs_of(self.whole.model)))

    @property
    def outputs(self) -> tuple[TensorInfo, ...]:
        return self.rest.outputs

    @property
    def meta(self) -> ModelMeta:
        return ModelMeta.of(self.whole.model)

    def remember(self, origin: Callable[[], Origin], held_bytes: int = 0) -> None:
        """Keep where the rest came from, if there may be other versions of it."""
        if self._source is not None:
            how = origin().how
            sources = Sources((*how.sources.digests, "behind its texts"), name=how.sources.name)
            own = Origin.of(self._source, replace(how, sources=sources))
            self.rest.remember(lambda: own, held_bytes)

    def run(self, feeds: Feeds) -> list[Any]:
        """The outputs for these inputs, in order."""
        return self.rest.run(self._begun(feeds))

    def run_into(self, feeds: Feeds, outputs: Mapping[str, object]) -> None:
        """Run and leave results in these arrays, by output name; others are not kept."""
        self.rest.run_into(self._begun(feeds), outputs)

    def profile(self, feeds: Feeds) -> Profile:
        """Run once and note how long each kernel takes."""
        return self.run_profiled(feeds)[1]

    def run_profiled(self, feeds: Feeds) -> tuple[list[Any], Profile]:
        """`run` and `profile` in one; what runs by reference is one step."""
        import time

        start = time.perf_counter_ns()
        given = self._begun(feeds)
        first = Event(0, self.front.name, "host", 0, time.perf_counter_ns() - start)
        results, profile = self.rest.run_profiled(given)
        return results, replace(profile, events=(first, *profile.events))

    def _begun(self, inputs: Feeds) -> dict[str, object]:
        """What the rest takes; names that nobody knows are left for it to refuse."""
        front = self.front
        feeds = by_name(self.name, [info.name for info in self.inputs], inputs)
        made = front.run({name: feeds[name] for name in front.inputs if name in feeds})
        given = {n: v for n, v in feeds.items() if n in self._wanted or n not in front.inputs}
        return {**given, **dict(zip(front.outputs, made, strict=True))}

    def memory(self) -> MemoryUse:
        """The bytes of the rest; what the reference implementation takes is not known."""
        return self.rest.memory()

    def save(self, path: str | os.PathLike[str]) -> NoReturn:  # noqa: ARG002
        """Refused: a file holds tensors only."""
        facts = {"model": self.name, "reason": self.whole.reason}
        raise ArtefactError(A121, facts, hint="keep the ONNX file, and compile it where it runs")
