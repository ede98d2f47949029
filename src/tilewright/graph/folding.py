"""How much is computed while a model is compiled, instead of when it runs.

A constant of a few bytes can stand for as many elements as somebody likes: a shape of 10¹² in front
of a tensor with one value. What is folded is therefore paid for from a purse, in proportion to the
weights that a model really has; what the purse does not pay for is left to the run.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tilewright.errors import Code, GraphError
from tilewright.tensor import ir as tir
from tilewright.tensor.visit import walk

if TYPE_CHECKING:
    from tilewright.graph.ir import TensorType
    from tilewright.graph.ops.op import Op

__all__ = [
    "FREE_ELEMENTS",
    "FREE_STEPS",
    "MAX_ELEMENTS",
    "MAX_KNOWN",
    "MAX_RANK",
    "WORK_OF_SIZE",
    "Purse",
    "TooLarge",
    "products_of",
    "require_possible",
    "require_small",
]

G070 = Code("G070", "a tensor cannot have {what}: {shape}")

MAX_RANK: Final = 32
"""Dimensions of a tensor; NumPy and the runtime would take some more."""
MAX_ELEMENTS: Final = 1 << 56
"""Elements of a tensor of known sizes, beyond which offsets in bytes would overflow."""
MAX_KNOWN: Final = 1 << 16
"""Elements of a tensor whose contents are looked at one by one: shapes, axes, lengths."""

FREE_ELEMENTS: Final = 1 << 22
FREE_WORK: Final = 1 << 28
ELEMENTS_EACH: Final = 16
WORK_EACH: Final = 256
WORK_OF_SIZE: Final = 64
"""Operations that a size costs, times the square of its length: its parts are compared."""
FREE_STEPS: Final = 64
"""Repetitions of nodes that a number in a model asks for, instead of nodes of its own."""


class TooLarge(Exception):  # noqa: N818  (a signal, which becomes M005 with its model)
    """Something of a model exceeds what can be counted; the text says what."""


@dataclass(slots=True, eq=False)
class Purse:
    """Elements that may still be made, and operations that may be spent; shared by all passes.

    `steps` are repetitions of nodes that may still be written down.
    """

    elements: int = FREE_ELEMENTS
    work: int = FREE_WORK
    steps: int = FREE_STEPS

    def fill(self, weights: int) -> None:
        """Add what so many elements of weights allow."""
        self.elements += ELEMENTS_EACH * weights
        self.work += WORK_EACH * weights

    def pays(self, made: Sequence[TensorType], read: Sequence[TensorType], products: int) -> bool:
        """Pay for results and for reading, with `products` if there are more; False if it cannot.

        Dimensions that are not known cost nothing: such results are not folded.
        """
        elements = sum(map(_elements, made))
        return self.spends(elements, max(elements + sum(map(_elements, read)), products))

    def spends(self, elements: int, work: int = 0, steps: int = 0) -> bool:
        """Pay for elements, which are work, too, and for more work; False if it cannot."""
        work = max(work, elements)
        if elements > self.elements or work > self.work or steps > self.steps:
            return False
        self.elements -= elements
        self.work -= work
        self.steps -= steps
        return True


def _elements(kind: TensorType) -> int:
    return math.prod(tir.int_value(dim) or 0 for dim in kind.shape)


def products_of(op: Op, read: Sequence[TensorType], made: Sequence[TensorType]) -> int:
    """Multiplications of an operator at most: each element of a result may need a whole operand."""
    from tilewright.graph.ops.contract import Contract
    from tilewright.graph.ops.op import Role

    if isinstance(op, Contract):
        dims = zip(op.left + op.right, (*read[0].shape, *read[1].shape), strict=True)
        return math.prod(tir.int_value(d) or 0 for d in dict(dims).values())
    if op.linear or op.role not in (Role.ANCHOR, Role.ALONE) or not read:
        return 0
    return sum(map(_elements, made)) * min(map(_elements, read))


def require_small(exprs: Iterable[tir.Expr]) -> None:
    """Refuse numbers in indices and sizes with which 64 bits would overflow (`TooLarge`)."""
    for expr in exprs:
        if isinstance(expr, tir.Var):
            continue
        for part in walk(expr):
            number = isinstance(part, tir.Const) and part.dtype.is_integer and part.value
            if not -MAX_ELEMENTS <= number <= MAX_ELEMENTS:
                raise TooLarge(f"a place or a size is computed with {number}")


def require_possible(kinds: Sequence[TensorType]) -> None:
    """Refuse types that no memory can hold (G070, `TooLarge`)."""
    for kind in kinds:
        require_small(dim for dim in kind.shape if not isinstance(dim, tir.Const))
        if kind.rank > MAX_RANK:
            facts = {"what": f"more than {MAX_RANK} dimensions", "shape": f"it has {kind.rank}"}
            raise GraphError(G070, facts, hint="give it fewer dimensions")
        known = [size for dim in kind.shape if (size := tir.int_value(dim)) is not None]
        if min(known, default=0) < 0:
            facts = {"what": "a negative dimension", "shape": str(kind)}
            raise GraphError(G070, facts, hint="look at what its shape is computed from")
        if math.prod(known) > MAX_ELEMENTS or max(known, default=0) > MAX_ELEMENTS:
            facts = {"what": "as many elements as this one", "shape": str(kind)}
            raise GraphError(G070, facts, hint="make it smaller")
