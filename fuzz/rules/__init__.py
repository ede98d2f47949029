"""How to make a node of each operator: one rule for a family, and a table of all of them.

A rule picks or makes operands, draws attributes that are valid for the opset, and keeps away from
what has no defined result: integers divided by zero, casts out of range, an order among NaN,
indices that are written twice. The types come from the schemas of the onnx package.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from fuzz.grow import Growth
from fuzz.rules import (
    contrib,
    control,
    elementwise,
    indexing,
    layers,
    movement,
    products,
    rare,
    reductions,
    sequences,
    windows,
)

__all__ = ["RULES", "Rule"]

Rule = Callable[[Growth, str], None]

_MODULES: Final = (
    contrib, control, elementwise, indexing, layers, movement, products, rare, reductions,
    sequences, windows,
)  # fmt: skip

RULES: Final[dict[str, Rule]] = {
    op: rule for module in _MODULES for op, rule in sorted(module.RULES.items())
}
