"""Math functions become arithmetic; what remains of calls has an instruction of its own.

The expansions are tensor IR and live in `intrin/functions/`; they work on scalars and on vectors.
"""

from __future__ import annotations

from tilewright.intrin.functions import EXPANSIONS
from tilewright.lower.context import Context
from tilewright.tensor import ir as tir
from tilewright.tensor.node import Node
from tilewright.tensor.visit import find, map_children

__all__ = ["expand_math"]


def expand_math(func: tir.Func, context: Context) -> tir.Func:
    """Replace every call that has an expansion, and the calls inside expansions too."""
    del context
    if not any(call.name in EXPANSIONS for call in find(func.body, tir.Call)):
        return func
    return func.with_fields(body=_expanded(func.body))


def _expanded(node: Node) -> Node:
    if not node.inside & tir.Call.bit:
        return node
    node = map_children(node, _expanded)
    if type(node) is not tir.Call or node.name not in EXPANSIONS:
        return node
    return _expanded(EXPANSIONS[node.name](node.args))
