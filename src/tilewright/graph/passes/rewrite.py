"""The driver of the graph passes: a graph is built anew, node by node, through a rule.

A rule sees a node with its inputs in the new graph and gives values for its outputs, or None to
keep it as it is. It may look at what computes its inputs (`Rewriter.producer`). Building goes
through `Builder`, so constants fold and equal nodes are shared at every step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import TypeVar

from tilewright.graph.builder import Builder
from tilewright.graph.ir import Graph, Node, Value
from tilewright.graph.ops import Op, Reshape
from tilewright.tensor import ir as tir

__all__ = ["Rewriter", "Rule", "rewrite_graph"]

O = TypeVar("O", bound=Op)  # noqa: E741


class Rewriter(Builder):
    """A builder that knows what its values come from, and how often the old graph reads them.

    `before` is the old graph, `new` what its values have become so far.
    """

    def __init__(self, graph: Graph) -> None:
        super().__init__(graph.name, graph.purse)
        self.before = graph
        self.new: dict[Value, Value] = {}
        self.uses: dict[Value, int] = {}
        self.heavy: dict[Value, bool] = {}  # what maps of these values share a kernel with
        self._made: dict[Value, Node] = {}
        self._seen = 0

    def producer(self, value: Value) -> Node | None:
        """The node that computes a value; None for inputs and constants."""
        for node in self.nodes[self._seen :]:
            self._made.update(dict.fromkeys(node.outputs, node))
        self._seen = len(self.nodes)
        return self._made.get(value)

    def made_by(self, value: Value, kind: type[O]) -> tuple[O, Node] | None:
        """The producer and its operator if it is of this kind."""
        node = self.producer(value)
        return (node.op, node) if node is not None and isinstance(node.op, kind) else None

    def reshape(self, x: Value, shape: Iterable[int | tir.Expr]) -> Value:
        """The same elements in another shape; of several reshapes only the last one counts."""
        found = self.made_by(x, Reshape)
        return super().reshape(x if found is None else found[1].inputs[0], shape)

    @cached_property
    def readers(self) -> dict[Value, list[Node]]:
        """The nodes of the old graph that read each of its values."""
        return self.before.consumers()

    @cached_property
    def place(self) -> dict[Node, int]:
        """The place of each node in the old graph."""
        return {node: k for k, node in enumerate(self.before.nodes)}

    def is_read_once(self, value: Value) -> bool:
        """Whether one node alone reads it, and it is not an output."""
        return self.uses.get(value, 0) == 1


Rule = Callable[[Rewriter, Node, tuple[Value, ...]], Value | Sequence[Value] | None]


def rewrite_graph(graph: Graph, rule: Rule) -> Graph:
    """The graph after one walk with the rule."""
    b = Rewriter(graph)
    new = b.new
    for value in graph.inputs:
        new[value] = b.input(value.name, value.dtype, value.shape)
    for value, array in graph.constants.items():
        new[value] = b.constant(array, value.name)
    uses: dict[Value, int] = {}
    for node in graph.nodes:
        for value in dict.fromkeys(node.inputs):
            uses[value] = uses.get(value, 0) + 1
    for value in graph.outputs:
        uses[value] = uses.get(value, 0) + 2
    for old, made in new.items():
        b.uses[made] = uses.get(old, 0)
    for node in graph.nodes:
        inputs = tuple(new[value] for value in node.inputs)
        b.label = node.label
        found = rule(b, node, inputs)
        if found is None:
            found = b.add_all(node.op, *inputs)
        results = (found,) if isinstance(found, Value) else tuple(found)
        for old, made in zip(node.outputs, results, strict=True):
            new[old] = made
            b.uses[made] = b.uses.get(made, 0) + uses.get(old, 0)
    return b.graph([new[value] for value in graph.outputs], graph.output_names)
