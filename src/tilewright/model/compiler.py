"""`compile`: a model in, a module out."""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

from tilewright.errors import Code, TilewrightWarning, UserError
from tilewright.model.info import ModelMeta
from tilewright.model.module import Module, load_module, parts_of
from tilewright.runtime import default_threads
from tilewright.runtime.artefact import Parts, write
from tilewright.runtime.cache import Caches, default_caches
from tilewright.runtime.keys import compile_key, digest_of_bytes, digest_of_file
from tilewright.target import Target
from tilewright.unsupported import Unsupported, listing

if TYPE_CHECKING:
    import onnx

    from tilewright.frontend.onnx.whole import WholeModel
    from tilewright.graph.ir import Graph
    from tilewright.layouts.choose import Choice
    from tilewright.layouts.forms import Form
    from tilewright.layouts.sites import Settings
    from tilewright.model.assemble import Assembled

__all__ = ["ACCURACIES", "AUTO", "Chosen", "Compilation", "NotCompiled", "Progress"]
__all__ += ["choose_layouts", "compile_model", "compile_parts", "require_layouts"]

K020 = Code("K020", "`compile` cannot use {found} as {argument}")

ACCURACIES: Final = ("default", "strict")

AUTO: Final = "auto"
"""Layouts that are chosen for all kernels together."""

Source: TypeAlias = "str | os.PathLike[str] | bytes | onnx.ModelProto"


@dataclass(frozen=True)
class Progress:
    """How far a compilation is: a stage, and how many of its parts are done."""

    stage: str
    done: int = 0
    total: int = 0


Tell: TypeAlias = Callable[[Progress], None]


def compile_model(
    model: Source,
    target: str | Target = "host",
    threads: int | None = None,
    accuracy: str = "default",
    database: object = None,
    cache: bool | os.PathLike[str] = True,  # noqa: FBT001, FBT002  (reads well as a keyword)
    progress: Tell | None = None,
    layouts: str = AUTO,
) -> Module:
    """Compile an ONNX model: a path, the bytes of a file, or a `ModelProto`.

    Symbolic dimensions stay symbolic: one module serves every size. `threads` is the number that
    each run uses (default: what this process may use). `accuracy="strict"` keeps to algorithms
    without extra rounding error. `cache=False` neither reads nor writes the compile cache; a path
    names another folder for it. `layouts="auto"` chooses how feature maps are stored together with
    the algorithms of convolutions; `"nhwc"`, `"nchw"` or `"nchw8c"` (any size of a block) stores
    them all alike, wherever a kernel can.
    """
    machine = Target.named(target) if isinstance(target, str) else target
    count = default_threads() if threads is None else threads
    _require_accuracy(accuracy)
    require_layouts(layouts)
    _require_no_database(database)
    tell = progress or (lambda _: None)
    caches = None if cache is False else default_caches(None if cache is True else Path(cache))
    machine.require_runs_on(Target.host())
    if caches is None:
        return compile_parts(model, machine, count, None, tell, accuracy, layouts).module()
    tell(Progress("look into the cache"))
    options = {"accuracy": accuracy, "layouts": layouts}
    key = compile_key(_digests(model, caches), machine, count, options)
    with caches.models.turn(key):
        found = caches.models.load(key, lambda path: load_module(path, threads=count))
        if found is not None:
            warn_of_reference(found.by_reference)
            return found
        made = compile_parts(model, machine, count, caches, tell, accuracy, layouts)
        if isinstance(made, Compilation):
            # In the background: bringing a large model to the disk takes longer than compiling it.
            put, parts = caches.models.put, made.parts
            threading.Thread(target=put, args=(key, lambda path: write(path, parts))).start()
    return made.module()


@dataclass(frozen=True)
class Chosen:
    """A model up to its kernels: the graph after all passes, and the choice of its layouts."""

    graph: Graph
    settings: Settings
    choice: Choice
    by_reference: Sequence[Unsupported]
    meta: ModelMeta


@dataclass(frozen=True)
class Compilation:
    """All that is known of a model that was just compiled, for whatever target."""

    chosen: Chosen
    made: Assembled
    parts: Parts
    threads: int

    @property
    def graph(self) -> Graph:
        """What was compiled: layouts and conversions included."""
        return self.chosen.choice.graph

    def module(self) -> Module:
        """The model, ready to run on this machine."""
        return Module.of(self.made, self.parts, self.threads, self.graph)


@dataclass(frozen=True)
class NotCompiled:
    """A model that runs by reference, since its values are not all tensors."""

    model: WholeModel

    def module(self) -> Module:
        """The model with the face of a module."""
        from tilewright.model.whole import WholeModule

        return WholeModule(self.model)


def compile_parts(
    model: Source,
    target: Target,
    threads: int,
    caches: Caches | None,
    tell: Tell,
    accuracy: str = "default",
    layouts: str = AUTO,
) -> Compilation | NotCompiled:
    """Compile, without a look into the cache of models; the machine need not be this one."""
    from tilewright.model.assemble import assemble
    from tilewright.model.kernel_store import KernelStore

    chosen = choose_layouts(model, target, threads, tell, accuracy, layouts)
    if isinstance(chosen, NotCompiled):
        return chosen
    store = KernelStore(caches.kernels, target) if caches is not None else None
    made = assemble(
        chosen.choice.graph,
        target,
        threads,
        store,
        lambda done, all_: tell(Progress("kernels", done, all_)),
    )
    warn_of_reference(chosen.by_reference)
    parts = parts_of(made, target, threads, chosen.by_reference, chosen.meta)
    return Compilation(chosen, made, parts, threads)


def choose_layouts(
    model: Source,
    target: Target,
    threads: int,
    tell: Tell,
    accuracy: str = "default",
    layouts: str = AUTO,
) -> Chosen | NotCompiled:
    """The first half of a compilation: everything before the first kernel."""
    from tilewright.frontend.onnx import import_model, read_model
    from tilewright.frontend.onnx.notes import require_reference
    from tilewright.frontend.onnx.registry import Unknown
    from tilewright.frontend.onnx.whole import WholeModel
    from tilewright.graph.passes.pipeline import optimise
    from tilewright.layouts.choose import choose
    from tilewright.layouts.costs import Machine
    from tilewright.layouts.sites import Settings
    from tilewright.model.plan import can_plan
    from tilewright.model.whole import host_graph, reason_of

    form = require_layouts(layouts)
    tell(Progress("read"))
    proto = read_model(model)
    tell(Progress("import"))
    try:
        imported = import_model(proto)
        graph, by_reference = imported.graph, imported.by_reference
        for problem in can_plan(graph):
            raise Unknown(problem)
    except Unknown as unknown:
        require_reference(proto)
        whole = host_graph(proto)
        by_reference = reason_of(unknown, unknown.nodes)
        if whole is None:
            warn_of_reference(by_reference)
            return NotCompiled(WholeModel(proto, str(unknown), unknown.nodes))
        graph = whole
    tell(Progress("optimise"))
    graph = optimise(graph)
    tell(Progress("choose"))
    settings = Settings(Machine(target, threads), strict=accuracy == "strict", fixed=form)
    return Chosen(graph, settings, choose(graph, settings), by_reference, ModelMeta.of(proto))


def _digests(model: Source, caches: Caches) -> list[str]:
    """The content of a model, external data included."""
    from tilewright.frontend.onnx import external_files

    if isinstance(model, bytes):
        return [digest_of_bytes(model)]
    if isinstance(model, str | os.PathLike):
        path = Path(model)
        if not path.is_file():
            return []  # reading it says what is wrong
        files = [path, *external_files(path)]
        return [digest_of_file(file, caches.digests) for file in files if file.is_file()]
    return [digest_of_bytes(model.SerializeToString())]


def warn_of_reference(nodes: Sequence[Unsupported]) -> None:
    """Say once which nodes run slowly, and why; the warning has all of them."""
    if not nodes:
        return
    single = "1 node runs" if len(nodes) == 1 else f"{len(nodes)} nodes run"
    what = single if all(node.op for node in nodes) else "the model runs"
    lines = "".join(f"\n  {line}" for line in listing(nodes))
    text = f"{what} on the ONNX reference implementation, which is slow:{lines}"
    warnings.warn(TilewrightWarning(text, nodes), stacklevel=3)


def _require_accuracy(accuracy: str) -> None:
    if accuracy not in ACCURACIES:
        facts = {"argument": "accuracy", "found": repr(accuracy)}
        raise UserError(K020, facts, hint=f"one of: {', '.join(ACCURACIES)}")


def require_layouts(layouts: str) -> Form | None:
    """The layout for everything; None to choose. A name that is none ends in an error."""
    if layouts == AUTO:
        return None
    from tilewright.layouts.forms import Form

    return Form.named(str(layouts))


def _require_no_database(database: object) -> None:
    if database is not None:
        facts = {"argument": "database", "found": repr(database)}
        raise UserError(K020, facts, hint="there is no tuner yet: leave it out")
