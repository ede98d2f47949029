"""The path of a model to a module, as an ordered table of named stages.

    read → import → optimise → choose → plan → kernels → link → module
                                          └──→ each kernel: the stages of `pipeline/kernel.py`

Every stage leaves an artefact with a text. `tw.compile`, the command line and whatever compiles a
model otherwise walk this table. A model that has no graph (yet) ends at `import`, with what stands
for it (`model/compilation.py`). Weights are in memory once: each artefact is let go as soon as the
next one is there, unless an observer keeps it.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from tilewright.pipeline.stage import (
    Artefact,
    Observer,
    Progress,
    Reached,
    Report,
    Stage,
    Tell,
    stage_named,
)

if TYPE_CHECKING:
    import onnx

    from tilewright.frontend.onnx.settled import Settled
    from tilewright.graph.ir import Graph
    from tilewright.model.compilation import Chosen, Compilation, GraphModel, NotCompiled, Unsettled
    from tilewright.model.compile_kernels import Kernels
    from tilewright.model.compiler import Compiling
    from tilewright.model.kernel_plan import Planned
    from tilewright.model.kernel_store import KernelStore
    from tilewright.model.kernel_workers import KernelWorker
    from tilewright.model.module import Module
    from tilewright.model.sources import Source
    from tilewright.schedule.source import ScheduleSource

__all__ = ["MODEL_STAGES", "CompiledModel", "ModelPipeline", "PlannedModel", "ReadModel"]

MODEL_STAGES: Final = (
    Stage("read", "", ".txt", "ONNX model as it was read and checked"),
    Stage("import", "read", ".graph", "graph of core operators"),
    Stage("optimise", "import", ".graph", "graph after all passes"),
    Stage("choose", "optimise", ".graph", "graph with chosen algorithms, layouts and conversions"),
    Stage("plan", "choose", ".txt", "steps of a run, with the groups that are kernels"),
    Stage("kernels", "plan", ".txt", "interfaces of the compiled kernels"),
    Stage("link", "kernels", ".txt", "program: image of machine code, weights, buffers, steps"),
    Stage("module", "link", "", "a callable on arrays, in this process"),
)
"""All stages in order."""

NODES_OF_A_KERNEL: Final = 3
"""Distinct nodes of a graph by the distinct kernels that it has, about."""


@dataclass(frozen=True)
class ReadModel:
    """A model that was read from wherever it was."""

    proto: onnx.ModelProto

    def __str__(self) -> str:
        from tilewright.frontend.onnx.printer import print_model

        return print_model(self.proto)


@dataclass(frozen=True)
class PlannedModel:
    """A model with the steps of its program."""

    chosen: Chosen
    planned: Planned

    def __str__(self) -> str:
        return str(self.planned)


@dataclass(frozen=True)
class CompiledModel:
    """A model with its compiled kernels."""

    chosen: Chosen
    kernels: Kernels

    def __str__(self) -> str:
        return str(self.kernels)


class ModelPipeline:
    """Runs models along the path; `how` says for which target, with which accuracy and so on.

    `settled` are values of inputs that are known now. With `final`, nothing more will be known: a
    model is taken as it is, and nothing is warned of. `tell` is called when a stage begins, and for
    every kernel.
    """

    def __init__(
        self,
        how: Compiling,
        tell: Tell = lambda _: None,
        settled: Settled | None = None,
        observers: Sequence[Observer] = (),
        *,
        final: bool = False,
    ) -> None:
        self.how, self.tell, self.settled, self.final = how, tell, settled, final
        self.observers = tuple(observers)
        self.report = Report()
        self._schedules = how.schedules
        self._form = how.form  # refused at once if there is no such layout
        self._has_kernels = False
        self._begun: list[KernelWorker] = []

    def run(self, model: Source, until: str = "module") -> Artefact:
        """The artefact of stage `until`, or of `import` if a model ends there."""
        from tilewright.model.exhaustion import told_as_too_large

        stages = [stage.name for stage in MODEL_STAGES]
        stage_named(until, MODEL_STAGES)
        self.report = Report()
        self._has_kernels = stages.index(until) >= stages.index("kernels")
        try:
            with told_as_too_large(model):
                self._walk(model, until)
        except Reached as reached:
            return reached.artefact
        finally:
            for worker in self._begun:
                worker.close()
        raise AssertionError("a path ends at the stage that was asked for")

    def _walk(self, model: Source, until: str) -> None:
        """Make artefacts from the first one on; `_made` ends it."""
        held: list[Any] = [model]
        for stage in MODEL_STAGES:
            self.tell(Progress(stage.name))
            begin = time.perf_counter()
            # A stage is handed the only reference, and can let go what it needs no more.
            held.append(getattr(self, f"_{stage.name}")(held.pop()))
            self.report.seconds[stage.name] = time.perf_counter() - begin
            self._made(Artefact(stage.name, held[0]), until)

    def _made(self, artefact: Artefact, until: str) -> None:
        from tilewright.model.compilation import NotCompiled, Unsettled

        for observer in self.observers:
            observer(artefact)
        if artefact.stage == until or isinstance(artefact.value, NotCompiled | Unsettled):
            raise Reached(artefact)

    def _read(self, model: Source) -> ReadModel:
        from tilewright.frontend.onnx import read_model

        return ReadModel(read_model(model))

    def _import(self, model: ReadModel) -> GraphModel | NotCompiled | Unsettled:
        from tilewright.model.importing import graph_of

        return graph_of(model.proto, self.how.bare(), self.settled, final=self.final)

    def _optimise(self, model: GraphModel) -> GraphModel:
        from tilewright.graph.passes.pipeline import SmallIntegers, optimise
        from tilewright.intrin.products import integer_gain, integer_pairs

        target = self.how.target
        small = SmallIntegers(integer_pairs(target), integer_gain(target))
        return replace(model, graph=optimise(model.graph, strict=self.how.is_strict, small=small))

    def _choose(self, model: GraphModel) -> Chosen:
        from tilewright.layouts.choose import choose
        from tilewright.layouts.costs import Machine
        from tilewright.layouts.sites import Settings
        from tilewright.model.compilation import Chosen
        from tilewright.schedule.measured import measured_by
        from tilewright.schedule.recipes.context import PLANNED_THREADS

        distinct = {(str(n.op), *(str(v.type) for v in n.inputs)) for n in model.graph.nodes}
        self._schedules = self._source_for(model.graph)
        self._expect(len(distinct) // NODES_OF_A_KERNEL)
        machine = Machine(self.how.target, PLANNED_THREADS)
        times = measured_by(self._schedules)
        settings = Settings(machine, strict=self.how.is_strict, fixed=self._form, times=times)
        return Chosen(model.graph, settings, choose(model.graph, settings), model.about)

    def _source_for(self, graph: Graph) -> ScheduleSource:
        """Where kernels get their schedules from: the draft, if that is faster for this graph."""
        from tilewright.graph.structure import graph_key
        from tilewright.schedule.measured import source_for
        from tilewright.schedule.source import DRAFT

        schedules = self.how.schedules
        return DRAFT if schedules is DRAFT else source_for(schedules, graph_key(graph))

    def _plan(self, chosen: Chosen) -> PlannedModel:
        from tilewright.model.kernel_plan import plan_kernels
        from tilewright.schedule.recipes.context import NOMINAL_THREADS

        choice = chosen.choice
        self._expect(len({site.workload for site, _ in choice.sites}))
        return PlannedModel(chosen, plan_kernels(choice.graph, NOMINAL_THREADS, choice.groups))

    def _kernels(self, model: PlannedModel) -> CompiledModel:
        from tilewright.model.compile_kernels import compile_kernels

        how, begun = self.how, list(self._begun)
        about = how.target, self._store(), self._count, self._schedules, begun
        return CompiledModel(model.chosen, compile_kernels(model.planned, *about))

    def _link(self, model: CompiledModel) -> Compilation:
        from tilewright.graph.sizes import forget_sizes
        from tilewright.model.assemble import link_program
        from tilewright.model.compilation import Compilation
        from tilewright.model.module import parts_of
        from tilewright.model.small import with_small_weights
        from tilewright.schedule.recipes.context import NOMINAL_THREADS

        how, chosen, kernels = self.how, model.chosen, model.kernels
        about = chosen.about
        made = link_program(kernels, equal=about.equal, guards=about.guards)
        if how.small:
            store = self._store()
            made = with_small_weights(made, how.target, NOMINAL_THREADS, store, self._schedules)
        forget_sizes()
        chosen = chosen.outline()
        del model, kernels  # whatever is still needed of the weights, `made` has: they are packed
        facts = about.by_reference, about.meta, about.lengths, about.endings, about.defaults
        return Compilation(chosen, made, parts_of(made, how.target, *facts), how.threads)

    def _expect(self, kernels: int) -> None:
        """Begin a helper if there will be about so many kernels to compile."""
        from tilewright.model.kernel_workers import first_worker
        from tilewright.schedule.source import is_by_points

        if self._has_kernels and not self._begun and is_by_points(self._schedules):
            self._begun = first_worker(self.how.target, kernels)

    def _module(self, made: Compilation) -> Module:
        return made.module()

    def _store(self) -> KernelStore | None:
        from tilewright.model.kernel_store import KernelStore

        how = self.how
        if how.caches is None:
            return None
        return KernelStore(how.caches.kernels, how.target, self._schedules)

    def _count(self, done: int, total: int) -> None:
        self.tell(Progress("kernels", done, total))
