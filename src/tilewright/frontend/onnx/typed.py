"""Types that an operator was given, seen by what they are used for.

Handlers take more types than schemas say (integers may stand where floats do), and the onnx package
has no schemas of onnxruntime's domain: what does not fit must be a fault of the model, noted with
its node, and not one of the kernel that would be made of it.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.graph.ir import Node
from tilewright.graph.ops import Map
from tilewright.tensor.verify_expr import require_typed

__all__ = ["require_types"]


def require_types(made: Sequence[Node]) -> None:
    """A `ProgramError` if what was made of an operator adds or calls what does not fit."""
    for node in made:
        if isinstance(node.op, Map):
            require_typed(node.op.body)
