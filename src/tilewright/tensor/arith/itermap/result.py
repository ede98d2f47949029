"""What detection answers: an iterator map, or a refusal that says precisely why there is none."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from tilewright.tensor.ir import Expr, Var

__all__ = ["Reason", "Refusal"]


class Reason(enum.Enum):
    """Why bindings are no valid map from loops to iterators."""

    NOT_AFFINE = "is not a sum of digits of the loops"
    DEPENDENT = "is not independent of the other bindings"
    GAP = "skips values"
    OUTSIDE = "leaves the domain"
    PARTIAL = "does not reach the whole domain"
    PREDICATE = "cuts the loops in a way that no binding shows"
    UNKNOWN = "cannot be proved to fill the domain"


@dataclass(frozen=True)
class Refusal:
    """A map that is refused: the reason, the binding (by position) and the loops concerned.

    `expected` and `found` are extents where the reason is about them.
    """

    reason: Reason
    binding: int | None
    loops: tuple[Var, ...] = ()
    expected: Expr | None = None
    found: Expr | None = None

    def __str__(self) -> str:
        what = "the predicate" if self.binding is None else f"binding {self.binding}"
        text = f"{what} {self.reason.value}"
        if self.loops:
            text += " (" + ", ".join(f"`{v.name}`" for v in self.loops) + ")"
        return text
