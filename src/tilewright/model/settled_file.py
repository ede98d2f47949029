"""Files of models that are compiled for the values of some inputs: the model, and for whom.

The model itself lies where other files have weights. Whoever loads it has the compiler, which looks
into the cache first, and compiles for the machine that it is on.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from tilewright.errors import ArtefactError, Code, UserError
from tilewright.model.info import ModelMeta
from tilewright.model.module import Module, tool
from tilewright.model.origin import Origin
from tilewright.model.sources import Sources
from tilewright.model.whole import A121
from tilewright.runtime.artefact import Artefact, Parts, save
from tilewright.runtime.cache import default_caches
from tilewright.runtime.codec import to_json
from tilewright.runtime.keys import digest_of_bytes
from tilewright.runtime.pool import most_threads, require_threads
from tilewright.runtime.program import Program
from tilewright.target import Target

if TYPE_CHECKING:
    from tilewright.model.compilation import Unsettled

__all__ = ["load_settled", "save_settled"]

A122 = Code("A122", "`{file}` does not say how its model is to be compiled: {problem}")


def save_settled(path: str | os.PathLike[str], source: Unsettled) -> None:
    """Write a model with how it is compiled."""
    name = str(source.model.graph.name) or "model"
    try:
        content = source.model.SerializeToString()
    except ValueError as problem:  # more than a message can hold
        hint = "keep the ONNX file, or give its values now: `compile(…, settled=…)`"
        raise ArtefactError(A121, {"model": name, "reason": problem}, hint=hint) from None
    how, needs = source.how, source.needs
    extra: dict[str, Any] = {
        "functions": [],
        "by_reference": [],
        "meta": ModelMeta.of(source.model).to_dict(),
        "settled": {
            "values": list(needs.values),
            "forms": list(needs.forms),
            "accuracy": how.accuracy,
            "layouts": how.layouts,
        },
    }
    empty = to_json(Program(name, (), (), (), (), (), ()))
    save(path, Parts(empty, b"", [content], how.target, tool(), extra))


def load_settled(artefact: Artefact, threads: int | None) -> Module:
    """The module of a file that `save_settled` wrote; all of it is read and checked."""
    from tilewright.frontend.onnx import read_model
    from tilewright.frontend.onnx.settled import Needs, open_inputs
    from tilewright.model.compilation import Unsettled
    from tilewright.model.compile_arguments import schedules_of
    from tilewright.model.compiler import Compiling, require_accuracy, require_layouts

    artefact.verify()
    extra, content = artefact.metadata["extra"], bytes(artefact.weights)
    match extra:
        case {
            "settled": {
                "values": list() as values,
                "forms": list() as forms,
                "accuracy": str() as accuracy,
                "layouts": str() as layouts,
            },
        }:
            pass
        case _:
            raise _unclear(artefact, "a part of it is missing")
    model = read_model(content)
    names = [info.name for info in open_inputs(model)]
    if not all(name in names for name in (*values, *forms)):
        raise _unclear(artefact, "it names inputs that the model does not have")
    if threads is not None:
        require_threads(threads, most_threads())
    try:
        require_accuracy(accuracy)
        require_layouts(layouts)
    except UserError as problem:
        raise _unclear(artefact, str(problem)) from None
    sources = Sources((digest_of_bytes(content),))
    target = Target.host()
    how = Compiling(
        target,
        threads,
        accuracy,
        layouts,
        default_caches(),
        sources,
        schedules=schedules_of(None, target, threads),
    )
    module = Unsettled(model, Needs(tuple(values), tuple(forms)), how).module()
    module.remember(lambda: Origin.of(content, how))
    return module


def _unclear(artefact: Artefact, problem: str) -> ArtefactError:
    facts = {"file": artefact.path.name, "problem": problem}
    return ArtefactError(A122, facts, hint="compile the model again")
