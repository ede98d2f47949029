"""Products of dequantised operands become products of small integers.

A quantised operand is `(q - zero) · scale`, with `q` of 8 bits. Scales that do not move along the
sum come out of it, and so do zero points: the large product is one of small integers, which tensor
instructions compute, and its corrections are sums of one operand, of which those of weights are
known at compile time.

Before:  y = Σ ((x - p) · s) · ((w - q) · t)
After:   y = (Σ x·w - p·Σw - q·Σ(x - p)) · (s·t)                      (sums in i32, exact)

This holds for whatever writes operands so: pairs of QuantizeLinear and DequantizeLinear around an
operator of floats, and operators of integers that centre their operands first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, prod
from typing import Final

from tilewright.dtypes import DType, f32, i8, i32, u8
from tilewright.graph.ir import Node, Value
from tilewright.graph.ops import Contract, Map, Transpose, argument, computed_as
from tilewright.graph.ops.window import Conv
from tilewright.graph.passes.integer_sums import (
    bordered,
    filter_sums,
    placed,
    summed,
    sums_both,
    terms_of,
)
from tilewright.graph.passes.rewrite import Rewriter, Rule
from tilewright.graph.sizes import fixed
from tilewright.tensor import ir as tir
from tilewright.tensor.visit import free_vars, substitute

__all__ = ["integer_products"]

SMALL: Final = (i8, u8)
MOST_TERMS: Final = (1 << 31) // (255 * 128) - 1
"""Of a sum that no operands of 8 bits can carry out of 32."""

MINIMAL_WINDOW, MINIMAL_GAIN = 3, 2.0
"""Windows of so many places in two directions have minimal filters, which save so much with their
transforms (F(4, 3) makes a quarter of the products)."""
TOGETHER: Final = 4
"""Products of 8 bits that instructions add to a sum of 32: channels come in such groups."""


@dataclass(frozen=True)
class _Quantised:
    """`(values - zero) · scale`; None for a zero point of zero, or a scale of one.

    Zero point and scale have the rank of the values, with ones where they do not move, or none.
    """

    values: Value
    zero: Value | None
    scale: Value | None


def integer_products(gain: float = inf) -> Rule:
    """The rule of the picture above.

    `gain` is how many times as many products of small integers a machine makes as of floats; for
    less than it takes, operators of floats stay what they are. Those of integers never do: they
    have no other way.
    """

    def integer_products(b: Rewriter, node: Node, inputs: tuple[Value, ...]) -> Value | None:
        op = node.op
        if isinstance(op, Map) and _operand_of(op, inputs) is not None:
            # Weights, too: folded into floats, nobody would know their integers any more.
            return b.add_all(op, *inputs, fold=False)[0]
        if not isinstance(op, Contract | Conv) or op.dtype not in (f32, i32):
            return None
        if op.dtype == f32 and gain <= _least_gain(op, inputs[1]):
            return None
        x, w = (_read(b, value) for value in inputs)
        if x is None or w is None or all(value.dtype in SMALL for value in inputs):
            return None
        if w.values not in b.constants and x.values not in b.constants:
            return None  # both of the call: neither has panels of steps
        if isinstance(op, Contract):
            return _contracted(b, op, x, w)
        return _convolved(b, op, x, w)

    return integer_products


def _least_gain(op: Contract | Conv, weights: Value) -> float:
    """How many times as fast products of integers must be: minimal filters save products of floats,
    and integers have none.
    """
    if isinstance(op, Contract) or max(op.strides) > 1:
        return 1.0
    window = [fixed(d) or 1 for d in weights.shape[2:]]
    is_dense = op.groups == 1 and sum(k >= MINIMAL_WINDOW for k in window) >= 2
    return MINIMAL_GAIN if is_dense else 1.0


def _read(b: Rewriter, value: Value) -> _Quantised | None:
    """How a value is quantised; transposes in between move what is stored."""
    if value.dtype in SMALL:
        return _Quantised(value, None, None)
    found = b.made_by(value, Transpose)
    if found is not None:
        op, node = found
        inner = _read(b, node.inputs[0])
        return None if inner is None else _transposed(b, inner, op.order)
    made = b.made_by(value, Map)
    operand = None if made is None else _operand_of(made[0], made[1].inputs)
    return None if made is None or operand is None else _built(b, operand, made[1].inputs)


def _transposed(b: Rewriter, x: _Quantised, order: Sequence[int]) -> _Quantised:
    def moved(part: Value | None) -> Value | None:
        return b.transpose(part, order) if part is not None and part.rank else part

    return _Quantised(b.transpose(x.values, order), moved(x.zero), moved(x.scale))


@dataclass(frozen=True)
class _Operand:
    """The number of the small integers among the inputs of a map, and its other parts."""

    number: int
    zero: tir.Expr | None
    scale: tir.Expr | None


def _operand_of(op: Map, inputs: Sequence[Value]) -> _Operand | None:
    """`(i32(q) - zero) · scale` with q of 8 bits, if a map is that."""
    small = [k for k, v in enumerate(inputs) if v.dtype in SMALL]
    if op.dtype not in (f32, i32):
        return None
    for number in small:
        var = argument(number, computed_as(inputs[number].dtype))
        found = _affine(op.body, var)
        if found is not None and (op.dtype == f32 or found[1] is None):
            return _Operand(number, *found)
    return None


def _affine(body: tir.Expr, var: tir.Var) -> tuple[tir.Expr | None, tir.Expr | None] | None:
    """(zero, scale) of a body that is `(var - zero) · scale`."""
    zero = scale = None
    if isinstance(body, tir.Mul):
        data, scale = (body.a, body.b) if var in free_vars(body.a) else (body.b, body.a)
        if var in free_vars(scale):
            return None
        body = data
        if not isinstance(body, tir.Cast):
            return None
        body = body.value
    if isinstance(body, tir.Sub):
        zero, body = body.b, body.a
        if var in free_vars(zero) or zero.dtype != i32:  # fractions are no zero points; u8 wraps
            return None
    if isinstance(body, tir.Cast):
        body = body.value
    return (zero, scale) if body is var else None


def _built(b: Rewriter, operand: _Operand, inputs: Sequence[Value]) -> _Quantised | None:
    """The parts as values, where these do not move the shape of the integers."""
    values = inputs[operand.number]
    zero = _value(b, operand.zero, inputs, i32)
    scale = _value(b, operand.scale, inputs, f32)
    for part in (zero, scale):
        if part is None:
            continue
        if part.rank not in (0, values.rank):
            return None
        ones = all(fixed(d) == 1 or d == e for d, e in zip(part.shape, values.shape, strict=False))
        if not ones:
            return None
    if zero is not None and _is_zero(b, zero):
        zero = None
    return _Quantised(values, zero, scale)


def _value(
    b: Rewriter, body: tir.Expr | None, inputs: Sequence[Value], dtype: DType
) -> Value | None:
    """An expression over some inputs of a map as a value of its own."""
    if body is None:
        return None
    used = [k for k, v in enumerate(inputs) if argument(k, computed_as(v.dtype)) in free_vars(body)]
    if not used:
        return (
            b.constant(body.value, dtype=dtype)
            if isinstance(body, tir.Const)
            else _literal(b, body, dtype)
        )
    names = {
        argument(k, computed_as(inputs[k].dtype)): argument(n, computed_as(inputs[k].dtype))
        for n, k in enumerate(used)
    }
    made = b.add(
        Map(substitute(body, names).to(dtype), len(used), dtype), *(inputs[k] for k in used)
    )
    return b.reshape(made, ()) if all(fixed(d) == 1 for d in made.shape) else made


def _literal(b: Rewriter, body: tir.Expr, dtype: DType) -> Value | None:
    """A number, which may be written as the conversion of one."""
    while isinstance(body, tir.Cast):
        body = body.value
    return b.constant(body.value, dtype=dtype) if isinstance(body, tir.Const) else None


def _is_zero(b: Rewriter, zero: Value) -> bool:
    held = b.contents(zero)
    return held is not None and held.dtype != object and not held.any()


def _contracted(b: Rewriter, op: Contract, x: _Quantised, w: _Quantised) -> Value | None:
    """The product of a contraction; zero points and scales may move along what the sum keeps."""
    dims = dict(zip(op.left, x.values.shape, strict=True))
    terms = [fixed(dims[c]) for c in op.left if c not in op.result]
    if None in terms or prod(t or 1 for t in terms) > MOST_TERMS:
        return None
    if not sums_both(op):
        return None
    kept = {id(x): op.left, id(w): op.right}
    for part in (x, w):
        for own in (part.zero, part.scale):
            if own is not None and _moves_along_the_sum(own, kept[id(part)], op.result):
                return None
    total = b.add(Contract(op.left, op.right, op.result, i32), x.values, w.values)
    if x.zero is not None:
        sums = summed(b, w.values, op.right, op.result)
        total = _less(b, total, sums, placed(b, x.zero, op.left, op.result))
    if w.zero is not None:
        centred = x.values
        if x.zero is not None:
            centred = b.map(lambda v, z: v.to(i32) - z, x.values, x.zero)
        sums = summed(b, centred, op.left, op.result)
        total = _less(b, total, sums, placed(b, w.zero, op.right, op.result))
    scales = [placed(b, x.scale, op.left, op.result), placed(b, w.scale, op.right, op.result)]
    return _scaled(b, total, scales, op.dtype)


def _moves_along_the_sum(part: Value, letters: str, result: str) -> bool:
    sizes = zip(letters, part.shape, strict=False) if part.rank else ()
    return any(fixed(d) != 1 and c not in result for c, d in sizes)


def _less(b: Rewriter, total: Value, sums: Value | None, zero: Value | None) -> Value:
    assert sums is not None
    assert zero is not None
    return b.map(lambda v, s, z: v - s * z, total, sums, zero)


def _scaled(b: Rewriter, total: Value, scales: Sequence[Value | None], dtype: DType) -> Value:
    if dtype == i32:
        return total
    known = [scale for scale in scales if scale is not None]
    if not known:
        return b.map(lambda v: v.to(f32), total)
    factor = known[0] if len(known) == 1 else b.map(lambda s, t: s * t, *known)
    return b.map(lambda v, s: v.to(f32) * s, total, factor)


def _convolved(b: Rewriter, op: Conv, x: _Quantised, w: _Quantised) -> Value | None:
    """The product of a convolution: data have one zero point and one scale, weights those of
    filters.
    """
    per_group = fixed(w.values.shape[1]) or 0
    parts = [part for part in (x.zero, x.scale) if part is not None]
    own = [part for part in (w.zero, w.scale) if part is not None and part.rank]
    if any(part.rank for part in parts) or w.zero is not None:
        return None
    if any(fixed(d) != 1 for part in own for d in part.shape[1:]):
        return None
    if terms_of(w.values) > MOST_TERMS:
        return None
    fill = 0
    if x.zero is not None and any(op.pads):
        held = b.contents(x.zero)
        if held is None:
            return None
        fill = int(held.item())
    data, weights, pads = x.values, w.values, op.pads
    more = -per_group % TOGETHER if op.groups == 1 and per_group > 1 else 0
    if fill or more:
        data, pads = bordered(b, data, pads, more, fill), (0,) * len(pads)
        weights = _with_channels(b, weights, more)
    total = b.add(Conv(op.strides, op.dilations, pads, op.groups, i32, op.lines), data, weights)
    if x.zero is not None:
        total = _less(b, total, filter_sums(b, w.values), x.zero)
    scale = w.scale
    if scale is not None and scale.rank:
        scale = b.reshape(scale, [scale.shape[0]])
    return _scaled(b, total, [x.scale, scale], op.dtype)


def _with_channels(b: Rewriter, weights: Value, more: int) -> Value:
    """Weights that count for nothing in channels that data do not have."""
    if not more:
        return weights
    count = weights.shape[1]
    shape = [n + more if k == 1 else n for k, n in enumerate(weights.shape)]
    return b.remap(weights, shape, lambda *o: o, lambda *o: o[1] < count)
