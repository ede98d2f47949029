"""What handlers may make while a model is imported, because a number in it says so.

An attribute of a few bytes can ask for a table of 10¹² elements, or for 10⁹ repetitions of a few
nodes. A handler that makes such things itself, in NumPy or in a loop, asks here first: they are
paid for like everything that is computed while compiling (`graph/folding.py`). What is not paid
for is declined, and runs by reference or is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tilewright.frontend.onnx.node import OnnxNode
from tilewright.frontend.onnx.registry import Unknown
from tilewright.graph import Builder
from tilewright.graph.folding import Purse

__all__ = ["pay_elements", "pay_steps", "sequence_payer"]

FREE_EACH: Final = 16
"""Repetitions of a node of the model that are as good as nodes of its own."""


def pay_elements(b: Builder, node: OnnxNode, count: int, what: str, given: int = 0) -> None:
    """Pay for a table of so many elements, or decline.

    Attributes of `given` elements are weights, and add to the purse.
    """
    b.purse.fill(given)
    if not b.purse.spends(max(count, 0)):
        node.decline(f"{what} would have {count} elements")


def pay_steps(b: Builder, node: OnnxNode, count: int, what: str) -> None:
    """Pay for so many repetitions of a few nodes, or decline; the first ones cost nothing."""
    if not b.purse.spends(0, 0, max(count - FREE_EACH, 0)):
        node.decline(f"{what}: {count} times over")


def sequence_payer(purse: Purse) -> Callable[[int], None]:
    """Pays for the elements of a sequence that comes into a graph; there may be many graphs."""

    def pay(count: int) -> None:
        if not purse.spends(count):
            raise Unknown("a long sequence is used in many graphs")

    return pay
