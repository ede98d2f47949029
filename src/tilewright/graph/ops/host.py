"""`Host`: an operator that runs in Python, because nothing else can express it yet."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, NoReturn

import numpy as np

from tilewright.errors import CallError, Code
from tilewright.graph.ir import Array, TensorType
from tilewright.graph.ops.op import Op, SizeOf
from tilewright.tensor.build import Tensor

__all__ = ["FAIL", "Host", "failing"]

C302 = Code("C302", "the model cannot run with these inputs: {problem}")

FAIL: Final = "fail"
"""The kind of a function that ends the run with a message: its payload."""


@dataclass(frozen=True)
class Host(Op):
    """A Python function of arrays.

    `payload` says it in bytes, in a form of the given `kind` (an ONNX node, for example), so that
    it can be stored. Dimensions that only the results tell are size variables of their own in
    `results`.
    """

    folds = False  # what it costs, and whether it gives the same each time, nothing tells

    kind: str
    payload: bytes
    title: str
    results: tuple[TensorType, ...]
    function: Callable[..., Sequence[Array]] = field(compare=False, repr=False)

    @property
    def name(self) -> str:
        return "host"

    def infer(self, inputs: Sequence[TensorType]) -> Sequence[TensorType]:
        return self.results

    def evaluate(self, arrays: Sequence[Array], size_of: SizeOf) -> Sequence[Array]:
        found = self.function(*arrays)
        pairs = zip(found, self.results, strict=True)
        return [np.asarray(array, dtype=kind.dtype.numpy) for array, kind in pairs]

    def lower(self, inputs: Sequence[Tensor], names: Sequence[str]) -> NoReturn:
        raise NotImplementedError(f"`{self.title}` has no tensor program")

    def attributes(self) -> dict[str, object]:
        return {"function": self.title}


def failing(message: str) -> Callable[..., NoReturn]:
    """A function for what a model must not come to."""

    def fail(*_: object) -> NoReturn:
        raise CallError(C302, {"problem": message}, hint="the model was not made for such inputs")

    return fail
