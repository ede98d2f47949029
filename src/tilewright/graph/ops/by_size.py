"""Two ways to compute the same, one for large arrays and one for small ones.

Which one is faster is not known before sizes are: both are compiled, and a run takes one of them.

    y = conv(x, w)   becomes   if places of y >= 196: y = winogradconv(x, w')
                               else:                  y = conv(x, w)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.graph.ir import Array, Node, TensorType
from tilewright.graph.ops.op import Op, Role, SizeOf
from tilewright.graph.sizes import product
from tilewright.tensor import ir as tir
from tilewright.tensor.build import Tensor

__all__ = ["BySize"]


@dataclass(frozen=True)
class BySize(Op):
    """A window over data with two kinds of weights: data, weights of `large`, weights of `small`.

    `places` is how many results each filter has where `large` begins, the batch counted.
    """

    role = Role.ANCHOR

    large: Op
    small: Op
    places: int

    def infer(self, inputs: Sequence[TensorType]) -> Sequence[TensorType]:
        x, transformed, weights = inputs
        self.small.infer([x, weights])
        return self.large.infer([x, transformed])

    def evaluate(self, arrays: Sequence[Array], size_of: SizeOf) -> Sequence[Array]:
        x, transformed, _ = arrays
        return self.large.evaluate([x, transformed], size_of)

    def lower(self, inputs: Sequence[Tensor], names: Sequence[str]) -> Sequence[Tensor]:
        raise NotImplementedError("each of the two is a kernel of its own: see `versions`")

    def versions(self, node: Node) -> tuple[Node, Node]:
        """The node as it is for large arrays, and for small ones."""
        x, transformed, weights = node.inputs
        large = Node(self.large, (x, transformed), node.outputs, node.label, node.loops)
        return large, Node(self.small, (x, weights), node.outputs, node.label)

    def is_large(self, node: Node) -> tir.Expr:
        """The condition for the first version, in the sizes of a run."""
        return tir.Const(self.places) <= product(node.output.shape[:-1])
