"""Integers of the signs that instructions multiply.

Processors multiply some pairs of signed and unsigned integers of 8 bits: VPDPBUSD takes u8 and i8,
SDOT i8 and i8. Models have any. An operand of the other sign is moved by 128, which is a bit, and
the sums are corrected: by those of the weights, which are constants, or by those of the data.

Before:  y = Σ x·w                                      (x: i8, w: i8, products of u8 and i8)
After:   y = Σ (x + 128)·w - 128·Σw
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tilewright.dtypes import DType, i8, i32, u8
from tilewright.graph.ir import Node, Value
from tilewright.graph.ops import Contract
from tilewright.graph.ops.window import Conv
from tilewright.graph.passes.integer_sums import bordered, filter_sums, summed, sums_both, terms_of
from tilewright.graph.passes.rewrite import Rewriter, Rule
from tilewright.graph.sizes import fixed
from tilewright.tensor import ir as tir

__all__ = ["Pairs", "fit_signs"]

Pairs = frozenset[tuple[DType, DType]]
"""Types of data and weights that instructions multiply."""

OTHER: Final = {u8: i8, i8: u8}
HALF: Final = 128
MOST_TERMS: Final = (1 << 31) // (3 * HALF * 2 * HALF)
"""Of a sum that stays within 32 bits with its corrections."""


def fit_signs(pairs: Pairs) -> Rule:
    """A rule: see the picture above; products that no change of signs helps stay as they are."""

    def signs(b: Rewriter, node: Node, inputs: tuple[Value, ...]) -> Value | None:
        op = node.op
        if not isinstance(op, Contract | Conv) or op.dtype != i32:
            return None
        x, w = inputs
        if x.dtype not in OTHER or w.dtype not in OTHER or w not in b.constants:
            return None
        wanted = _nearest(pairs, x.dtype, w.dtype)
        if wanted is None or wanted == (x.dtype, w.dtype):
            return None
        if isinstance(op, Contract):
            return _contracted(b, op, x, w, wanted)
        return _convolved(b, op, x, w, wanted)

    return signs


def _nearest(pairs: Pairs, x: DType, w: DType) -> tuple[DType, DType] | None:
    """The pair that takes least: none of the operands moved, the data, the weights, or both."""
    ways = ((x, w), (OTHER[x], w), (x, OTHER[w]), (OTHER[x], OTHER[w]))
    return next((way for way in ways if way in pairs), None)


def _moved(b: Rewriter, value: Value) -> tuple[Value, int]:
    """A value of the other sign, and by how much it is less."""
    step = HALF if value.dtype == u8 else -HALF
    return b.map(lambda v: (v.to(i32) - step).to(OTHER[value.dtype]), value), step


def _contracted(
    b: Rewriter, op: Contract, x: Value, w: Value, wanted: tuple[DType, DType]
) -> Value | None:
    terms = [fixed(d) for c, d in zip(op.left, x.shape, strict=True) if c not in op.result]
    count = 1
    for term in terms:
        count *= term or MOST_TERMS + 1
    if count > MOST_TERMS or not op.result or op.result[-1] not in op.right or not sums_both(op):
        return None
    corrections: list[tuple[Value | None, int]] = []
    data, weights = x, w
    if w.dtype != wanted[1]:  # Σ x·w = Σ x·w' + step·Σ x
        weights, step = _moved(b, w)
        wide = b.map(lambda v: v.to(i32), x)
        corrections.append((summed(b, wide, op.left, op.result), step))
    if x.dtype != wanted[0]:  # Σ x·w' = Σ x'·w' + step·Σ w'
        data, step = _moved(b, x)
        corrections.append((summed(b, weights, op.right, op.result), step))
    return _corrected(b, b.add(op, data, weights), corrections)


def _convolved(
    b: Rewriter, op: Conv, x: Value, w: Value, wanted: tuple[DType, DType]
) -> Value | None:
    """Where weights would be moved, the sums of all windows of the data would be a convolution.

    Windows of single channels have no instruction.
    """
    if w.dtype != wanted[1] or terms_of(w) > MOST_TERMS or fixed(w.shape[1]) == 1:
        return None
    data, step = _moved(b, x)
    pads = op.pads
    if any(pads):
        data, pads = bordered(b, data, pads, 0, -step), (0,) * len(pads)
    plain = Conv(op.strides, op.dilations, pads, op.groups, i32, op.lines)
    return _corrected(b, b.add(plain, data, w), [(filter_sums(b, w), step)])


def _corrected(b: Rewriter, total: Value, corrections: list[tuple[Value | None, int]]) -> Value:
    for sums, step in corrections:
        assert sums is not None
        total = b.map(_plus(step), total, sums)
    return total


def _plus(step: int) -> Callable[[tir.Expr, tir.Expr], tir.Expr]:
    return lambda v, s: v + s * step
