"""`compile`: a model in, a module out."""

from __future__ import annotations

import hashlib
import os
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tilewright.errors import Code, TilewrightWarning, UserError
from tilewright.model.module import Module
from tilewright.runtime import default_threads
from tilewright.target import Target

if TYPE_CHECKING:
    import onnx

__all__ = ["ACCURACIES", "Progress", "compile_model"]

K010 = Code("K010", "`compile` cannot use {found} as {argument}")

ACCURACIES: Final = ("default", "strict")

Source = "str | os.PathLike[str] | bytes | onnx.ModelProto"


@dataclass(frozen=True)
class Progress:
    """How far a compilation is: a stage, and how many of its parts are done."""

    stage: str
    done: int = 0
    total: int = 0


def compile_model(
    model: str | os.PathLike[str] | bytes | onnx.ModelProto,
    target: str | Target = "host",
    threads: int | None = None,
    accuracy: str = "default",
    database: object = None,
    cache: bool | os.PathLike[str] = True,  # noqa: FBT001, FBT002  (reads well as a keyword)
    progress: Callable[[Progress], None] | None = None,
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
    from tilewright.frontend.onnx import import_model, read_model
    from tilewright.graph.passes.pipeline import optimise
    from tilewright.model.assemble import assemble

    tell(Progress("read"))
    proto = read_model(Path(model) if isinstance(model, os.PathLike) else model)
    tell(Progress("import"))
    imported = import_model(proto)
    tell(Progress("optimise"))
    graph = optimise(imported.graph)
    parts = assemble(
        graph, machine, count, os.cpu_count() or 1, lambda k, n: tell(Progress("kernels", k, n))
    )
    warn_of_reference(imported.by_reference)
    return Module.of(parts, machine, count, graph)


def warn_of_reference(nodes: dict[str, str]) -> None:
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
        raise UserError(K010, facts, hint=f"one of: {', '.join(ACCURACIES)}")


def _require_no_database(database: object) -> None:
    if database is not None:
        facts = {"argument": "database", "found": repr(database)}
        raise UserError(K010, facts, hint="there is no tuner yet: leave it out")


def digest(content: bytes) -> str:
    """The name of some bytes."""
    return hashlib.blake2b(content, digest_size=16).hexdigest()
