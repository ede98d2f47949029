"""A compilation that runs out of memory, numbers or depth ends as one of a large model."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from tilewright.errors import ArtefactError, ModelError, ProgramError, UserError
from tilewright.graph.folding import TooLarge
from tilewright.runtime.verify import A201
from tilewright.shown import shown
from tilewright.tensor.verify_expr import V023

__all__ = ["TooLarge", "told_as_too_large"]


@contextmanager
def told_as_too_large(model: object) -> Iterator[None]:
    """Turn `TooLarge`, and the two errors of Python about exhaustion, into M005.

    So are literals of kernels and numbers of programs that do not fit their types: what a model
    asks for is refused where its values are made, but kernels multiply strides and sizes again.
    """
    try:
        yield
    except (MemoryError, RecursionError, TooLarge, ProgramError, ArtefactError) as problem:
        from tilewright.frontend.onnx.extent import M005

        name = shown(os.fspath(model)) if isinstance(model, str | os.PathLike) else "model"
        what = "there is not enough memory"
        if isinstance(problem, RecursionError):
            what = "its expressions are nested too deeply"
        elif isinstance(problem, TooLarge):
            what = str(problem)
        elif isinstance(problem, UserError):
            if problem.code not in (V023, A201):
                raise
            what = "numbers that it computes places with do not fit 64 bits"
        hint = "free memory, or export the model in smaller parts"
        raise ModelError(M005, {"model": name, "problem": what}, hint=hint) from None
