"""A compilation that runs out of memory, numbers or depth ends as one of a large model."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from tilewright.errors import ModelError
from tilewright.shown import shown

__all__ = ["TooLarge", "told_as_too_large"]


class TooLarge(Exception):  # noqa: N818  (a signal, which becomes M005 with its model)
    """Something of a model exceeds what can be counted; the text says what."""


@contextmanager
def told_as_too_large(model: object) -> Iterator[None]:
    """Turn `TooLarge`, and the two errors of Python about exhaustion, into M005."""
    try:
        yield
    except (MemoryError, RecursionError, TooLarge) as problem:
        from tilewright.frontend.onnx.extent import M005

        name = shown(os.fspath(model)) if isinstance(model, str | os.PathLike) else "model"
        what = "there is not enough memory"
        if isinstance(problem, RecursionError):
            what = "its expressions are nested too deeply"
        elif isinstance(problem, TooLarge):
            what = str(problem)
        hint = "free memory, or export the model in smaller parts"
        raise ModelError(M005, {"model": name, "problem": what}, hint=hint) from None
