"""`compile`: a model in, a module out."""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

from tilewright.errors import Code, TilewrightWarning, UserError
from tilewright.model.module import Module, load_module, parts_of
from tilewright.runtime import default_threads
from tilewright.runtime.artefact import Parts, write
from tilewright.runtime.cache import Caches, default_caches
from tilewright.runtime.keys import compile_key, digest_of_bytes, digest_of_file
from tilewright.target import Target

if TYPE_CHECKING:
    import onnx

__all__ = ["ACCURACIES", "Progress", "compile_model"]

K020 = Code("K020", "`compile` cannot use {found} as {argument}")

ACCURACIES: Final = ("default", "strict")

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
) -> Module:
    """Compile an ONNX model: a path, the bytes of a file, or a `ModelProto`.

    Symbolic dimensions stay symbolic: one module serves every size. `threads` is the number that each
    run uses (default: what this process may use). `accuracy="strict"` keeps to algorithms without
    extra rounding error. `cache=False` neither reads nor writes the compile cache; a path names another
    folder for it.
    """
    machine = Target.named(target) if isinstance(target, str) else target
    count = default_threads() if threads is None else threads
    _require_accuracy(accuracy)
    _require_no_database(database)
    tell = progress or (lambda _: None)
    caches = None if cache is False else default_caches(None if cache is True else Path(cache))
    if caches is None:
        return _compiled(model, machine, count, None, tell)[0]
    tell(Progress("look into the cache"))
    key = compile_key(_digests(model, caches), machine, count, {"accuracy": accuracy})
    with caches.models.turn(key):
        found = caches.models.load(key, lambda path: load_module(path, threads=count))
        if found is not None:
            warn_of_reference(found.by_reference)
            return found
        module, parts = _compiled(model, machine, count, caches, tell)
        # In the background: bringing hundreds of megabytes to the disk takes longer than compiling.
        keep = threading.Thread(target=caches.models.put, args=(key, lambda p: write(p, parts)))
        keep.start()
    return module


def _compiled(
    model: Source, target: Target, threads: int, caches: Caches | None, tell: Tell
) -> tuple[Module, Parts]:
    from tilewright.frontend.onnx import import_model, read_model
    from tilewright.graph.passes.pipeline import optimise
    from tilewright.model.assemble import assemble
    from tilewright.model.kernel_store import KernelStore

    tell(Progress("read"))
    proto = read_model(model)
    tell(Progress("import"))
    imported = import_model(proto)
    tell(Progress("optimise"))
    graph = optimise(imported.graph)
    store = KernelStore(caches.kernels, target) if caches is not None else None
    made = assemble(
        graph, target, threads, store, lambda done, all_: tell(Progress("kernels", done, all_))
    )
    warn_of_reference(imported.by_reference)
    parts = parts_of(made, target, threads, imported.by_reference)
    return Module.of(made, parts, threads, graph), parts


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


def warn_of_reference(nodes: Mapping[str, str]) -> None:
    """Say once which operators run slowly, and why."""
    if not nodes:
        return
    reasons: dict[str, int] = {}
    for why in nodes.values():
        reasons[why] = reasons.get(why, 0) + 1
    shown = "; ".join(f"{why} ({n}×)" if n > 1 else why for why, n in reasons.items())
    text = f"these operators run on the ONNX reference implementation, which is slow: {shown}"
    warnings.warn(TilewrightWarning(text), stacklevel=3)


def _require_accuracy(accuracy: str) -> None:
    if accuracy not in ACCURACIES:
        facts = {"argument": "accuracy", "found": repr(accuracy)}
        raise UserError(K020, facts, hint=f"one of: {', '.join(ACCURACIES)}")


def _require_no_database(database: object) -> None:
    if database is not None:
        facts = {"argument": "database", "found": repr(database)}
        raise UserError(K020, facts, hint="there is no tuner yet: leave it out")
