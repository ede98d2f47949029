"""How much work a model is: operations of its products and convolutions, and the weights they read.

Counted on the ONNX graph with the shapes that onnx infers for given sizes of the inputs. Work by
elements is left out, as usual: the figure says what share of the machine's multiply-adds a run
uses. A product whose shape cannot be inferred is named in `unknown`, never guessed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import onnx
from numpy.typing import NDArray

from benchmarks.models.shapes import SMALL_ELEMENTS, constants_of, shapes_of, with_shapes

__all__ = ["Work", "count", "load_without_weights"]

Shapes = list[tuple[int, ...]]
"""Of the first result, then of the inputs."""
VIEWS: Final = frozenset(
    {"Cast", "DequantizeLinear", "Identity", "Reshape", "Squeeze", "Transpose", "Unsqueeze"}
)


@dataclass(frozen=True, slots=True)
class Work:
    """Multiply-adds count twice; `weight_bytes` are read at least once in every run."""

    flops: int
    weight_bytes: int
    unknown: tuple[str, ...] = ()


def load_without_weights(path: Path) -> Any:
    """The model with its large initializers emptied: their shapes are all that counting needs."""
    model = onnx.load(path)
    for item in model.graph.initializer:
        if math.prod(item.dims) > SMALL_ELEMENTS:
            item.ClearField("raw_data")
            item.ClearField("float_data")
    return model


def count(model: Any, arrays: Mapping[str, NDArray[Any]]) -> Work:
    """The work of a run with these inputs; the model is left as it is."""
    return _Counter(_Scope(with_shapes(model, arrays).graph)).work()


@dataclass
class _Scope:
    """The names of a graph and of the graphs around it."""

    graph: Any
    outer: _Scope | None = None
    shapes: dict[str, tuple[int, ...]] = field(default_factory=dict)
    producers: dict[str, Any] = field(default_factory=dict)
    constants: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.outer is not None:
            self.shapes |= self.outer.shapes
            self.producers |= self.outer.producers
            self.constants |= self.outer.constants
        self.constants |= dict(constants_of(self.graph))
        self.shapes |= shapes_of(self.graph)
        for node in self.graph.node:
            self.producers |= dict.fromkeys(node.output, node)

    def weight(self, name: str) -> str | None:
        """The constant that a name stands for, seen through other views of it."""
        while name not in self.constants:
            node = self.producers.get(name)
            if node is None or node.op_type not in VIEWS:
                return None
            name = node.input[0]
        return name


class _Counter:
    """Adds up one graph; of the branches of an undecided `If` the one with more work counts."""

    def __init__(self, scope: _Scope) -> None:
        self.scope = scope
        self.flops = 0
        self.weights: dict[str, int] = {}
        self.unknown: list[str] = []
        for node in scope.graph.node:
            self._add(node)

    def work(self) -> Work:
        return Work(self.flops, sum(self.weights.values()), tuple(self.unknown))

    def _add(self, node: Any) -> None:
        branches = [_Counter(_Scope(a.g, self.scope)) for a in node.attribute if a.HasField("g")]
        if branches:
            self._add_branches(node, branches)
        formula = FORMULAS.get(node.op_type)
        if formula is None:
            return
        try:
            self.flops += formula(node, [self._shape(n) for n in (node.output[0], *node.input)])
        except LookupError:
            self.unknown.append(node.name or node.output[0])
        for name in filter(None, map(self.scope.weight, node.input)):
            self.weights[name] = _size_bytes(self.scope.constants[name])

    def _shape(self, name: str) -> tuple[int, ...]:
        return self.scope.shapes[name] if name else ()  # optional inputs have no name

    def _add_branches(self, node: Any, branches: list[_Counter]) -> None:
        taken = max(branches, key=lambda branch: branch.flops)
        if node.op_type != "If" and (taken.flops or taken.unknown):
            self.unknown.append(node.name or node.output[0])  # how often it runs is not known
        self.flops += taken.flops
        self.weights |= taken.weights
        self.unknown += taken.unknown


def _size_bytes(tensor: Any) -> int:
    return int(math.prod(tensor.dims)) * int(
        onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type).itemsize
    )


def _matmul(_: Any, shapes: Shapes) -> int:
    result, a = shapes[:2]
    return 2 * math.prod(result) * a[-1]


def _gemm(node: Any, shapes: Shapes) -> int:
    result, a = shapes[:2]
    transposed = any(item.name == "transA" and item.i for item in node.attribute)
    return 2 * math.prod(result) * a[0 if transposed else 1]


def _conv(_: Any, shapes: Shapes) -> int:
    result, _data, weight = shapes[:3]
    return 2 * math.prod(result) * math.prod(weight[1:])


def _quantized_conv(_: Any, shapes: Shapes) -> int:
    return 2 * math.prod(shapes[0]) * math.prod(shapes[4][1:])


def _conv_transpose(_: Any, shapes: Shapes) -> int:
    _result, data, weight = shapes[:3]
    return 2 * math.prod(data) * math.prod(weight[1:])


def _recurrent(_: Any, shapes: Shapes) -> int:
    """Weights of all gates and directions, for every step of every sequence."""
    _result, data, weight, recurrence = shapes[:4]
    return 2 * math.prod(data[:2]) * (math.prod(weight) + math.prod(recurrence))


def _einsum(node: Any, shapes: Shapes) -> int:
    equation = next(a.s.decode() for a in node.attribute if a.name == "equation")
    terms = equation.replace(" ", "").partition("->")[0].split(",")
    if "..." in equation:
        raise LookupError(equation)
    pairs = [
        pair
        for term, s in zip(terms, shapes[1:], strict=True)
        for pair in zip(term, s, strict=True)
    ]
    return 2 * math.prod(dict(pairs).values())


FORMULAS: Final[dict[str, Callable[[Any, Shapes], int]]] = {
    "MatMul": _matmul,
    "MatMulInteger": _matmul,
    "QLinearMatMul": _matmul,
    "Gemm": _gemm,
    "Conv": _conv,
    "ConvInteger": _conv,
    "QLinearConv": _quantized_conv,
    "ConvTranspose": _conv_transpose,
    "LSTM": _recurrent,
    "GRU": _recurrent,
    "RNN": _recurrent,
    "Einsum": _einsum,
}
