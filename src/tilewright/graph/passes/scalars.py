"""Constants of one element become literals in the expressions that use them.

Before:  c = constant 0.5; y = map(arg0 * arg1) x, c
After:   y = map(arg0 * 0.5) x
"""

from __future__ import annotations

from tilewright.graph.ir import Node, Value
from tilewright.graph.ops import Map, argument, computed_as
from tilewright.graph.passes.rewrite import Rewriter
from tilewright.graph.sizes import broadcast, same_shape
from tilewright.tensor import ir as tir
from tilewright.tensor.visit import substitute

__all__ = ["embed_scalars"]


def embed_scalars(b: Rewriter, node: Node, inputs: tuple[Value, ...]) -> Value | None:
    """A rule: see the picture above."""
    if not isinstance(node.op, Map):
        return None
    small = [k for k, v in enumerate(inputs) if v in b.constants and b.constants[v].size == 1]
    rest = [k for k in range(len(inputs)) if k not in small]
    shape = broadcast(*(v.shape for v in inputs))
    # The result must not lose dimensions that only the constant gives it.
    while small and not (rest and same_shape(broadcast(*(inputs[k].shape for k in rest)), shape)):
        rest.append(small.pop())
    rest.sort()
    if not small:
        return None
    values: dict[tir.Var, tir.Expr] = {}
    for k in small:
        dtype = computed_as(inputs[k].dtype)
        values[argument(k, dtype)] = tir.const(b.constants[inputs[k]].item(), dtype)
    for new, k in enumerate(rest):
        dtype = computed_as(inputs[k].dtype)
        values[argument(k, dtype)] = argument(new, dtype)
    body = substitute(node.op.body, values)
    return b.add(Map(body, len(rest), node.op.dtype), *(inputs[k] for k in rest))
