"""`compile`: a model in, a module out, along the stages of `pipeline/model.py`."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tilewright.calibration import with_machine_model
from tilewright.errors import TilewrightError
from tilewright.model.compilation import (
    Chosen,
    Compilation,
    NotCompiled,
    Unsettled,
    warn_of_reference,
)
from tilewright.model.compile_arguments import (
    ACCURACIES,
    AUTO,
    K020,
    require_accuracy,
    require_layouts,
    schedules_of,
    source_of,
    with_dims,
)
from tilewright.model.module import Module, load_kept, to_keep
from tilewright.model.origin import Origin
from tilewright.model.sources import Source, Sources
from tilewright.pipeline import ModelPipeline, Progress, Tell
from tilewright.runtime import return_memory
from tilewright.runtime.artefact import write
from tilewright.runtime.cache import Caches, default_caches
from tilewright.runtime.keys import compile_key
from tilewright.runtime.pool import most_threads, require_threads
from tilewright.schedule.source import DRAFT, ScheduleSource
from tilewright.target import Target

if TYPE_CHECKING:
    import onnx

    from tilewright.frontend.onnx.beginnings import Halves
    from tilewright.frontend.onnx.settled import Settled
    from tilewright.layouts.forms import Form

__all__ = ["ACCURACIES", "AUTO", "K020", "WRITER", "Compiling", "Progress", "choose_layouts"]
__all__ += ["compile_model", "compile_parts"]
__all__ += ["require_accuracy", "require_layouts"]

WRITER: Final = "tilewright-cache-writer"
"""The name of a thread that brings a compiled model to the disk."""


def compile_model(
    model: Source | bytearray | memoryview,
    target: str | Target = "host",
    threads: int | None = None,
    accuracy: str = "default",
    database: object = None,
    cache: bool | os.PathLike[str] = True,  # noqa: FBT001, FBT002  (reads well as a keyword)
    progress: Tell | None = None,
    layouts: str = AUTO,
    settled: Mapping[str, object] | None = None,
    *,
    small: bool = False,
    dims: Mapping[str, int] | None = None,
) -> Module:
    """Compile an ONNX model: a path, the bytes of a file, or a `ModelProto`.

    Symbolic dimensions stay symbolic: one module serves every size. `threads` is the number that
    each run uses (default: what this process may use). `accuracy="strict"` keeps to algorithms
    without extra rounding error. `cache=False` neither reads nor writes the compile cache; a path
    names another folder for it. `layouts="auto"` chooses how feature maps are stored together with
    the algorithms of convolutions; `"nhwc"`, `"nchw"` or `"nchw8c"` (any size of a block) stores
    them all alike, wherever a kernel can. `settled` are values of inputs that are known now: they
    become constants, and the module has no such inputs. `small=True` is for the file that `save`
    writes: it stores what large weights are made of, and they are made when it is loaded.
    `dims={"batch": 1}` fixes symbolic dimensions; the module then serves these sizes alone.
    A module for a `target` that this machine is not can be saved and looked into, and runs there.
    `progress` is called with a `Progress` at every step. `database` has records of measurements
    (docs/tuning.md), by which kernels are scheduled: a path or a `Database`, False for none, and by
    default what TILEWRIGHT_DATABASE names, or `records.sqlite` in the data folder if it is there.
    """
    model = source_of(model)
    machine = Target.named(target) if isinstance(target, str) else target
    require_accuracy(accuracy)
    require_layouts(layouts)
    if threads is not None:
        require_threads(threads, most_threads())
    if dims:
        model = with_dims(model, dims)
    tell = progress or (lambda _: None)
    measuring = (lambda: tell(Progress("measure this machine, once"))) if progress else None
    machine = with_machine_model(machine, measuring)
    caches = None if cache is False else default_caches(None if cache is True else Path(cache))
    if machine.missing_on(Target.host()):
        caches = None  # what it keeps is loaded, which code for others cannot be
    schedules = schedules_of(database, machine, threads)
    compiling = Compiling(
        machine, threads, accuracy, layouts, caches, small=small, schedules=schedules
    )
    if caches is not None:
        tell(Progress("look into the cache"))
    compiling = replace(compiling, sources=Sources.of(model, caches))
    proto, values = model, None
    if settled:
        from tilewright.model.settled import settled_values

        proto, values = settled_values(model, settled)
    made = compiling.module(proto, tell, values)
    made.remember(lambda: Origin.of(model, compiling, values), Origin.held_bytes(model))
    return made


@dataclass(frozen=True)
class Compiling:
    """How models are compiled; `sources` says which model, for its key in the cache.

    `threads` is how many each run uses, None for what the process may use. It changes no code: a
    model that is found was perhaps compiled for another number. `schedules` is where kernels get
    their schedules from.
    """

    target: Target
    threads: int | None
    accuracy: str
    layouts: str
    caches: Caches | None = None
    sources: Sources = field(default_factory=Sources)
    small: bool = False
    schedules: ScheduleSource = DRAFT

    def module(
        self, model: Source, tell: Tell, settled: Settled | None = None, *, final: bool = False
    ) -> Module:
        """The module of a model, from the cache if it is there."""
        caches = self.caches
        if caches is None:
            return _module_of(self.parts(model, tell, settled, final=final))
        options: dict[str, object] = {"accuracy": self.accuracy, "layouts": self.layouts}
        if settled is not None:
            options["settled"] = settled.digest()
        if self.small:
            options["small"] = True
        if self.schedules.digest:
            options["schedules"] = self.schedules.digest
        if final:  # the same values may be asked for where others are still open
            options["final"] = True
        key = compile_key(self.sources.digests, self.target, options)
        with caches.models.turn(key):
            found = caches.models.load(key, lambda file: load_kept(file, self.threads, key))
            if found is not None:
                if not final:
                    warn_of_reference(found.by_reference)
                return found
            caches.models.tell_if_unusable()
            made = self.parts(model, tell, settled, final=final)
            if isinstance(made, Compilation) and self.sources.are_unchanged:
                # In the background: bringing a large model to the disk takes longer than
                # compiling it.
                about = {"file": self.sources.name, **options}
                put, parts = caches.models.put, to_keep(made.parts, key, about)
                work = (key, lambda file: write(file, parts))
                threading.Thread(target=put, args=work, name=WRITER).start()
        return _module_of(made)

    def parts(
        self, model: Source, tell: Tell, settled: Settled | None = None, *, final: bool = False
    ) -> Compilation | NotCompiled | Unsettled:
        """The same without a look into the cache of models."""
        made = self.compiled(model, tell, settled, final=final)
        if not isinstance(made, Unsettled):
            return made
        if not self.sources.are_unchanged:  # versions are of a model that nobody has hashed
            return replace(made, how=replace(self, caches=None))
        known = () if settled is None else (settled.digest(),)
        digests = (*self.sources.digests, *known)
        sources = Sources(digests, name=self.sources.name)  # what was read: files do not matter now
        return replace(made, how=replace(self, sources=sources))

    def compiled(
        self, model: Source, tell: Tell, settled: Settled | None = None, *, final: bool = False
    ) -> Compilation | NotCompiled | Unsettled:
        """What a model becomes along all stages but the last, which loads it."""
        path = ModelPipeline(self, tell, settled, final=final)
        made = path.run(model, until="link").value
        assert isinstance(made, Compilation | NotCompiled | Unsettled)
        if isinstance(made, NotCompiled) and made.halves is not None:
            return _begun(made, made.halves, lambda rest: self.compiled(rest, tell, final=True))
        if isinstance(made, Compilation) and not final:
            warn_of_reference(made.chosen.about.by_reference)
        return made

    def bare(self) -> Compiling:
        """The same for another model, without caches."""
        return replace(self, caches=None, sources=Sources(), small=False)

    @property
    def is_strict(self) -> bool:
        """Whether no algorithm may round more than a plain sum does."""
        return self.accuracy == "strict"

    @property
    def form(self) -> Form | None:
        """The layout of all feature maps; None to choose."""
        return require_layouts(self.layouts)


def _module_of(made: Compilation | NotCompiled | Unsettled) -> Module:
    """The module, and the memory that only compiling took back to the system."""
    module = made.module()
    del made
    return_memory()
    return module


def compile_parts(
    model: Source,
    target: Target,
    threads: int | None,
    caches: Caches | None,
    tell: Tell,
    accuracy: str = "default",
    layouts: str = AUTO,
    settled: Settled | None = None,
    *,
    final: bool = False,
    small: bool = False,
    schedules: ScheduleSource = DRAFT,
) -> Compilation | NotCompiled | Unsettled:
    """Compile, without a look into the cache of models; the machine need not be this one."""
    about = target, threads, accuracy, layouts, caches
    how = Compiling(*about, small=small, schedules=schedules)
    return how.compiled(model, tell, settled, final=final)


def _begun(
    whole: NotCompiled,
    halves: Halves,
    compiled: Callable[[onnx.ModelProto], Compilation | NotCompiled | Unsettled],
) -> NotCompiled:
    """A model that begins with texts, with the rest of it compiled if that is possible."""
    from tilewright.model.whole import reason_of

    names = [output.name for output in halves.rest.graph.output]
    try:
        made = compiled(halves.rest)
    except TilewrightError:  # what is wrong with it is said when it runs
        made = None
    if not isinstance(made, Compilation) or list(made.graph.output_names) != names:
        warn_of_reference(reason_of(whole.model.reason, whole.model.nodes))
        return replace(whole, halves=None)
    warn_of_reference((*halves.nodes, *made.chosen.about.by_reference))
    return replace(whole, compiled=made)


def choose_layouts(
    model: Source,
    target: Target,
    threads: int | None,
    tell: Tell,
    accuracy: str = "default",
    layouts: str = AUTO,
    settled: Settled | None = None,
    *,
    final: bool = False,
) -> Chosen | NotCompiled | Unsettled:
    """The first half of a compilation: everything before the first kernel."""
    how = Compiling(target, threads, accuracy, layouts)
    made = ModelPipeline(how, tell, settled, final=final).run(model, until="choose").value
    assert isinstance(made, Chosen | NotCompiled | Unsettled)
    return made
