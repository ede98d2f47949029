"""`Host`: an operator that runs in Python, because nothing else can express it yet."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NoReturn

import numpy as np

from tilewright.graph.ir import Array, TensorType
from tilewright.graph.ops.op import Op, SizeOf
from tilewright.tensor.build import Tensor

__all__ = ["Host"]


@dataclass(frozen=True)
class Host(Op):
    """A Python function of arrays.

    `payload` says it in bytes, in a form of the given `kind` (an ONNX node, for example), so that
    it can be stored. Dimensions that only the results tell are size variables of their own in
    `results`.
    """

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
