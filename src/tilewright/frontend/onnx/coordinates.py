"""Coordinates of resized images: where a result lies in the source, and which elements it takes.

Everything is an expression over the place of the result, computed in f32.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final

import numpy as np

from tilewright.dtypes import f32, index
from tilewright.graph import Value
from tilewright.graph.sizes import tidy
from tilewright.tensor import ir as tir
from tilewright.tensor.build import call, select

__all__ = ["COORDINATES", "ROUNDINGS", "Along", "Interpolation", "coordinate", "cubic_weight"]
__all__ += ["held", "linear_weight", "rounded"]

COORDINATES: Final = (
    "half_pixel",
    "asymmetric",
    "align_corners",
    "pytorch_half_pixel",
    "half_pixel_symmetric",
    "tf_half_pixel_for_nn",
    "tf_crop_and_resize",
)
"""Names of what `coordinate` knows; the last but one was there in opsets 11 and 12."""

ROUNDINGS: Final = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
"""Names of what `rounded` knows, since opset 11."""


@dataclass(frozen=True)
class Along:
    """How one dimension is resized: `scale` and `width`, the exact new length, are f32.

    `ratio` is the scale where it is data, and `region` the part of the source that is resized:
    what is computed with them reads them (`bound`).
    """

    axis: int
    before: tir.Expr
    after: tir.Expr
    scale: tir.Expr
    width: tir.Expr
    roi: tuple[float | tir.Expr, float | tir.Expr] = (0.0, 1.0)
    ratio: Value | None = None
    region: tuple[Value, Value] | None = None

    @property
    def operands(self) -> tuple[Value, ...]:
        """Vectors of one element that a run computes, in the order in which `bound` takes them."""
        return (*(() if self.ratio is None else (self.ratio,)), *(self.region or ()))

    def bound(self, *given: tir.Expr) -> Along:
        """The same with the elements of the operands in their places."""
        left = iter(given)
        found = self
        if self.ratio is not None:
            scale = next(left)
            found = replace(found, scale=scale, width=self.before.to(f32) * scale)
        return found if self.region is None else replace(found, roi=(next(left), next(left)))

    @property
    def stays(self) -> bool:
        """Whether all elements stay where they are."""
        same = tidy(self.before) == tidy(self.after) and self.ratio is None
        return same and (not isinstance(self.scale, tir.Const) or self.scale.value == 1)

    @property
    def factor(self) -> Fraction | None:
        """The scale if it is a simple number."""
        if not isinstance(self.scale, tir.Const):
            return None
        near = Fraction(float(self.scale.value)).limit_denominator(64)
        return near if np.float32(float(near)) == np.float32(self.scale.value) else None


def coordinate(mode: str, along: Along, place: tir.Expr) -> tir.Expr:
    """Where in the source the element `place` of the result lies.

    The length of the result in a formula is the exact product of a length and its scale, as in the
    node tests of ONNX; a result of one element is one whatever that product is, as the text says.
    """
    x, n, scale, width = place.to(f32), along.before.to(f32), along.scale, along.width
    half, single = (x + 0.5) / scale - 0.5, along.after <= 1
    match mode:
        case "half_pixel":
            return half
        case "asymmetric":
            return x / scale
        case "align_corners":
            return select(single, x * 0.0, x * (n - 1.0) / (width - 1.0))
        case "pytorch_half_pixel":
            return select(single, x * 0.0, half)
        case "half_pixel_symmetric":
            # in this order, as others round: a place on the grid stays there
            return n / 2.0 * (1.0 - along.after.to(f32) / width) + (x + 0.5) / scale - 0.5
        case "tf_half_pixel_for_nn":
            return (x + 0.5) / scale
        case "tf_crop_and_resize":
            start, end = along.roi
            middle = x * 0.0 + 0.5 * (start + end) * (n - 1.0)
            # as others round: the last place is the end of the part, not one beside it
            spread = x * (end - start) * (n - 1.0) / (width - 1.0) + start * (n - 1.0)
            return select(single, middle, spread)
    raise ValueError(f"the coordinates are those of `{mode}`, which has no meaning")


def rounded(mode: str, at: tir.Expr, along: Along) -> tir.Expr:
    """The element that is nearest to a coordinate, inside of the dimension."""
    match mode:
        case "floor":
            near = call("floor", at)
        case "ceil":
            near = call("ceil", at)
        case "round_prefer_ceil":
            near = call("floor", at + 0.5)
        case "round_prefer_floor":
            near = call("ceil", at - 0.5)
        case _:  # before opset 11: up if the dimension shrinks
            near = select(along.scale < 1.0, call("ceil", at), call("floor", at))
    return held(near.to(index), along.before)


def held(place: tir.Expr, dim: tir.Expr) -> tir.Expr:
    """A place inside of the dimension."""
    return tir.maximum(tir.minimum(place, dim - 1), 0)


@dataclass(frozen=True)
class Interpolation:
    """A result is a weighted sum of the elements around its coordinate.

    With `inside_only`, elements outside of the source have no weight, and the others more.
    """

    mode: str
    kind: str
    steepness: float = -0.75
    inside_only: bool = False

    @property
    def offsets(self) -> tuple[int, ...]:
        """The elements that take part, counted from the one before the coordinate."""
        return (0, 1) if self.kind == "linear" else (-1, 0, 1, 2)

    def place(self, offset: int, along: Along, o: tir.Expr) -> tir.Expr:
        """Where the element at an offset is; at the border the last one stands for others."""
        near = call("floor", coordinate(self.mode, along, o)).to(index)
        return held(near + offset, along.before)

    def weight(self, offset: int, along: Along, o: tir.Expr) -> tir.Expr:
        """Its share of the result."""
        own = self._weight(offset, along, o)
        if not self.inside_only:
            return own
        shares = [self._weight(other, along, o) for other in self.offsets]
        return own / sum(shares[1:], shares[0])

    def _weight(self, offset: int, along: Along, o: tir.Expr) -> tir.Expr:
        at = coordinate(self.mode, along, o)
        place = call("floor", at) + float(offset)
        linear = self.kind == "linear"
        value = linear_weight(place - at) if linear else cubic_weight(place - at, self.steepness)
        if not self.inside_only:
            return value
        return select((place >= 0.0) & (place < along.before.to(f32)), value, 0.0)


def linear_weight(away: tir.Expr) -> tir.Expr:
    """The share of an element at a distance in a linear interpolation."""
    return tir.maximum(1.0 - call("abs", away), 0.0)


def cubic_weight(away: tir.Expr, a: float) -> tir.Expr:
    """Keys' kernel: a cubic up to distance one, another up to two."""
    d = call("abs", away)
    inner = ((a + 2.0) * d - (a + 3.0)) * d * d + 1.0
    outer = ((d * a - 5.0 * a) * d + 8.0 * a) * d - 4.0 * a
    return select(d <= 1.0, inner, select(d < 2.0, outer, 0.0))
