"""A compilation that runs out of memory, or nests too deeply, ends as one of a large model."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from tilewright.errors import ModelError
from tilewright.shown import shown

__all__ = ["told_as_too_large"]


@contextmanager
def told_as_too_large(model: object) -> Iterator[None]:
    """Turn the two errors of Python about exhaustion into M005."""
    try:
        yield
    except (MemoryError, RecursionError) as problem:
        from tilewright.frontend.onnx.extent import M005

        name = shown(os.fspath(model)) if isinstance(model, str | os.PathLike) else "model"
        nested = isinstance(problem, RecursionError)
        what = "its expressions are nested too deeply" if nested else "there is not enough memory"
        hint = "free memory, or export the model in smaller parts"
        raise ModelError(M005, {"model": name, "problem": what}, hint=hint) from None
