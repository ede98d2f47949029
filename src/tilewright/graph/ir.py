"""The graph IR: values, nodes, graphs. Data only.

A value is a tensor with an element type and a shape; dimensions are index expressions of the tensor
IR over size variables, so that a model with symbolic dimensions is compiled once for all of them.
Operators and passes see these dimensions; a layout says how the elements lie in memory between two
kernels. A node applies an operator of the small core set (`ops/`) to values. Nodes are in an order
in which every value is computed before it is used. Passes build new graphs; nothing is changed in
place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tilewright.dtypes import DType
from tilewright.graph.folding import Purse
from tilewright.shown import shown
from tilewright.tensor import ir as tir
from tilewright.tensor.printer import print_node
from tilewright.tensor.stored import Layout, stored_shape

if TYPE_CHECKING:
    from tilewright.graph.ops.op import Op

__all__ = ["Array", "Graph", "Meeting", "Node", "Shape", "TensorType", "Value"]

Array = NDArray[Any]
Shape = tuple[tir.Expr, ...]
Meeting = frozenset[tir.Expr]
"""Two dimensions of which nobody knows whether they are equal before a run."""


@dataclass(frozen=True, slots=True)
class TensorType:
    """Element type, dimensions, and the steps from these to what is stored (none: as it is)."""

    dtype: DType
    shape: Shape
    layout: Layout = ()

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def stored_shape(self) -> Shape:
        """The dimensions in memory."""
        return stored_shape(self.shape, self.layout) if self.layout else self.shape

    def __str__(self) -> str:
        text = f"{self.dtype.name}[{', '.join(print_node(d) for d in self.shape)}]"
        return f"{text} as {' '.join(map(str, self.layout))}" if self.layout else text


@dataclass(frozen=True, slots=True, eq=False)
class Value:
    """A tensor that an input, a constant or a node gives. Identity is meaning."""

    name: str
    type: TensorType

    @property
    def dtype(self) -> DType:
        return self.type.dtype

    @property
    def shape(self) -> Shape:
        return self.type.shape

    @property
    def layout(self) -> Layout:
        return self.type.layout

    @property
    def stored_shape(self) -> Shape:
        """The dimensions in memory."""
        return self.type.stored_shape

    @property
    def rank(self) -> int:
        return len(self.type.shape)

    def __str__(self) -> str:
        return f"{shown(self.name)}: {self.type}"


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """`outputs = op(inputs)`; `label` says which operators of the model it stands for.

    `loops` are parameters for the kernel's schedule that were chosen together with layouts; they
    mean nothing here.
    """

    op: Op
    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]
    label: str = ""
    loops: object = None

    @property
    def output(self) -> Value:
        """The only output."""
        (value,) = self.outputs
        return value


@dataclass(frozen=True, slots=True, eq=False)
class Graph:
    """A model: `outputs` as functions of `inputs`. `output_names` are the names callers know."""

    name: str
    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]
    nodes: tuple[Node, ...]
    constants: Mapping[Value, Array] = field(default_factory=dict)
    output_names: tuple[str, ...] = ()
    purse: Purse = field(default_factory=Purse)
    """What may still be folded."""

    def __post_init__(self) -> None:
        if not self.output_names:
            names = tuple(value.name for value in self.outputs)
            object.__setattr__(self, "output_names", names)

    def producers(self) -> dict[Value, Node]:
        """The node that computes each value that a node computes."""
        return {value: node for node in self.nodes for value in node.outputs}

    def consumers(self) -> dict[Value, list[Node]]:
        """The nodes that read each value, once for each node; none for those that nobody reads."""
        found: dict[Value, list[Node]] = {}
        for node in self.nodes:
            for value in dict.fromkeys(node.inputs):
                found.setdefault(value, []).append(node)
        return found

    def with_nodes(self, nodes: Sequence[Node], outputs: Sequence[Value] | None = None) -> Graph:
        """The same interface over other nodes; constants that nobody reads any more are dropped."""
        kept = tuple(outputs) if outputs is not None else self.outputs
        read = {value for node in nodes for value in node.inputs} | set(kept)
        constants = {value: array for value, array in self.constants.items() if value in read}
        made = tuple(nodes)
        names = self.output_names
        return Graph(self.name, self.inputs, kept, made, constants, names, self.purse)

    def __str__(self) -> str:
        from tilewright.graph.printer import print_graph

        return print_graph(self)


def array_type(array: Array) -> TensorType:
    """The type of a constant."""
    from tilewright.dtypes import dtype_of

    return TensorType(dtype_of(array.dtype), tuple(tir.Const(int(d)) for d in np.shape(array)))
