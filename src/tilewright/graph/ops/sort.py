"""`Order`: the places of elements in sorted order, by a radix sort in each row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from tilewright.dtypes import DType, i32, i64, index, u8, u16, u32, u64
from tilewright.graph.ir import Array, TensorType
from tilewright.graph.ops.ends import require_limits
from tilewright.graph.ops.op import Limit, Op, SizeOf, computed_as
from tilewright.graph.ops.serial import Row
from tilewright.graph.sizes import count
from tilewright.tensor import ir as tir
from tilewright.tensor.build import Tensor, compute, select, seq

__all__ = ["Order"]

DIGIT: Final = 8
BINS: Final = 1 << DIGIT
"""A digit of a key in bits, and how many values it has."""

MOST: Final = (1 << 31) - 1
"""Elements of a row: places are integers of 32 bits."""

MANY: Final = 1 << 14
"""Elements from which on threads share the rows."""

_UNSIGNED: Final = {8: u8, 16: u16, 32: u32, 64: u64}


@dataclass(frozen=True)
class Order(Op):
    """The places (i64) of the first `length` elements along the last dimension in sorted order.

    Equal elements stay in order; NaN is greater than all numbers, -0.0 equals 0.0. The time is
    linear in the elements, whatever `length` is.
    """

    linear = True

    length: tir.Expr
    descending: bool = False

    def infer(self, inputs: Sequence[TensorType]) -> Sequence[TensorType]:
        result = [TensorType(i64, (*inputs[0].shape[:-1], self.length))]
        require_limits(self.limits(inputs, result))
        return result

    def limits(
        self, inputs: Sequence[TensorType], outputs: Sequence[TensorType]
    ) -> Iterator[Limit]:
        yield self.length, inputs[0].shape[-1], outputs[0].shape
        yield inputs[0].shape[-1], tir.Const(MOST), outputs[0].shape

    def evaluate(self, arrays: Sequence[Array], size_of: SizeOf) -> Sequence[Array]:
        (source,) = arrays
        if source.dtype.kind not in "fiub":  # NumPy does not know NaN in bf16
            source = source.astype(np.float32)
        length, n = size_of(self.length), source.shape[-1]
        if self.descending:  # sorted from the end, so that equal elements stay in order
            back = np.argsort(source[..., ::-1], axis=-1, kind="stable")
            order = n - 1 - back[..., ::-1]
        else:
            order = np.argsort(source, axis=-1, kind="stable")
        return [order[..., :length].astype(np.int64)]

    def lower(self, inputs: Sequence[Tensor], names: Sequence[str]) -> Sequence[Tensor]:
        (source,) = inputs

        def key(*indices: tir.Expr) -> tir.Expr:
            growing = sort_key(source[indices])
            return ~growing if self.descending else growing

        keys = compute(f"{names[0]}_keys", source.shape, key, key_type(source.dtype))
        order = _radix_sort(f"{names[0]}_order", keys)
        shape = (*source.shape[:-1], self.length)
        return [compute(names[0], shape, lambda *i: order[i].to(i64), i64)]


def key_type(dtype: DType) -> DType:
    """The unsigned integers by which elements of a type are sorted."""
    return u8 if dtype.is_bool else _UNSIGNED[computed_as(dtype).bits]


def sort_key(value: tir.Expr) -> tir.Expr:
    """An unsigned integer that grows with the value."""
    dtype, unsigned = value.dtype, key_type(value.dtype)
    if dtype.is_bool or dtype == unsigned:
        return value.to(unsigned)
    sign = tir.Const(1 << (dtype.bits - 1), unsigned)
    if dtype.is_integer:
        return tir.Reinterpret(unsigned, value) ^ sign
    bits = tir.Reinterpret(unsigned, select(value.eq(0.0), tir.const(0.0, dtype), value))
    ordered = select((bits & sign).ne(0), ~bits, bits ^ sign)
    return select(value.ne(value), tir.Const((1 << dtype.bits) - 1, unsigned), ordered)


def _radix_sort(name: str, keys: Tensor) -> Tensor:
    """The places of keys in ascending order, digit by digit from the lowest.

    Each digit moves the places from one array to another: how many keys have each value of the
    digit says where the first of them goes. Keys are read again for each digit, and a caller may
    change them meanwhile: the order is then any, but both arrays hold places of keys at all times.
    """
    *rows, n = keys.shape
    row = Row(rows)
    result = tir.Buffer(name, keys.shape, i32)
    other = row.private(f"{name}_other", n, i32)
    starts = row.private(f"{name}_starts", BINS, i32)
    total = row.private(f"{name}_total", 2, i32)
    zero = tir.Const(0, i32)
    source, target = result, other
    steps = [
        row.loop(n, lambda p: row.store(result, p, p)),
        row.loop(n, lambda p: row.store(other, p, p)),
    ]
    digits = keys.dtype.bits // DIGIT
    for number in range(digits):

        def digit(at: tir.Expr, shift: int = number * DIGIT) -> tir.Expr:
            bits = row.load(keys.buffer, at)
            return ((bits >> shift if shift else bits) & (BINS - 1)).to(index)

        def counted(at: tir.Expr) -> tir.Stmt:
            return row.store(starts, digit(at), row.load(starts, digit(at)) + 1)

        def started(value: tir.Var) -> tir.Stmt:
            return seq(
                row.store(total, 1, row.load(starts, value)),
                row.store(starts, value, row.load(total, 0)),
                row.store(total, 0, row.load(total, 0) + row.load(total, 1)),
            )

        def moved(p: tir.Var, source: tir.Buffer = source, target: tir.Buffer = target) -> tir.Stmt:
            at = row.load(source, p)
            first = row.load(starts, digit(at.to(index))).to(index)
            first = tir.maximum(tir.minimum(first, n - 1), 0)  # more may come than were counted
            return seq(row.store(target, first, at), counted(at.to(index)))

        steps += [
            row.loop(BINS, lambda value: row.store(starts, value, zero)),
            row.loop(n, counted),
            row.store(total, 0, zero),
            row.loop(BINS, started),
            row.loop(n, moved),
        ]
        source, target = target, source
    if source is other:
        steps.append(row.loop(n, lambda p: row.store(result, p, row.load(other, p))))
    nest = row.nest(name, seq(*steps), parallel=bool(rows) and count(keys.shape) >= MANY)
    return Tensor(result, nest, (keys,))
