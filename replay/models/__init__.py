"""The models of the corpus, by name: small ONNX models, each a function that builds one."""

from __future__ import annotations

from collections.abc import Callable

import onnx

from replay.models import blocks, images, operators, quantised, recurrent, sequences

__all__ = ["models"]


def models() -> dict[str, Callable[[], onnx.ModelProto]]:
    """All models, in a stable order. None of them is built before it is called."""
    found: dict[str, Callable[[], onnx.ModelProto]] = {}
    for family in (images, blocks, sequences, recurrent, quantised, operators):
        for function in family.MODELS:
            if function.__name__ in found:
                raise ValueError(f"two models are called {function.__name__}")
            found[function.__name__] = function
    return found
