"""Types that operators of onnxruntime's domain were given: seen by what they are used for.

The onnx package has schemas of its own domains only, which say what types an input may have.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tilewright.graph.ir import Node
from tilewright.graph.ops import Map
from tilewright.tensor.verify_expr import require_typed

__all__ = ["require_types"]

CONTRIB: Final = "com.microsoft"


def require_types(domain: str, made: Sequence[Node]) -> None:
    """A `ProgramError` if what was made of an operator adds or calls what does not fit."""
    for node in made if domain == CONTRIB else ():
        if isinstance(node.op, Map):
            require_typed(node.op.body)
