"""Weights of few bits, quantised block by block: products and tables (domain com.microsoft).

Constant weights are made floats when a model is compiled, and their product is a plain one.
"""

from __future__ import annotations

from functools import partial
from typing import Final

import numpy as np

from tilewright.dtypes import DType, i4, i32, u4, u8
from tilewright.frontend.onnx.conversions import converted
from tilewright.frontend.onnx.node import OnnxNode, normal_axis
from tilewright.frontend.onnx.quantization import aligned
from tilewright.frontend.onnx.registry import onnx_op
from tilewright.frontend.onnx.taking import take
from tilewright.graph import Builder, Value
from tilewright.graph.ops import computed_as
from tilewright.graph.sizes import fixed, tidy
from tilewright.tensor import ir as tir
from tilewright.tensor.build import select

__all__ = ["dequantized_rows", "unpacked"]

DOMAIN: Final = "com.microsoft"
BYTE: Final = 8

NORMAL_FLOATS: Final = (
    -1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635,
    -0.18477343022823334, -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725,
    0.24611230194568634, 0.33791524171829224, 0.44070982933044434, 0.5626170039176941,
    0.7229568362236023, 1.0,
)  # fmt: skip
SMALL_FLOATS: Final = (0.0, 0.0052083333, 0.6666667, 1.0, 0.33333333, 0.5, 0.16666667, 0.25)
"""What the numbers from 0 to 15, and the sizes from 0 to 7, stand for in weights of 4 bits."""


def unpacked(b: Builder, x: Value, bits: int) -> Value:
    """Bytes as the numbers (i32) that they hold, low bits first, along the last dimension."""
    if bits == BYTE:
        return converted(b, x, i32)
    parts, mask = BYTE // bits, (1 << bits) - 1
    wide = converted(b, x, i32)
    shape = (*x.shape[:-1], tidy(x.shape[-1] * parts))
    spread = b.remap(wide, shape, lambda *o: [*o[:-1], o[-1] // parts])
    shift = b.tabulate(shape[-1:], lambda c: c % parts * bits, i32)
    return b.map(lambda v, s: (v >> s) & mask, spread, shift)


def _block_size(node: OnnxNode, default: int = 0) -> int:
    block = node.int("block_size", default)
    if block <= 0:
        raise ValueError(f"blocks of {block} elements")
    return block


def dequantized_rows(
    b: Builder,
    node: OnnxNode,
    packed: Value,
    scales: Value,
    zeros: Value | None,
    dtype: DType,
) -> Value:
    """Weights [experts, rows, columns] of few bits as floats.

    Scales and zero points are those of rows, [experts, rows], or of blocks of a row, [experts,
    rows, blocks]; zero points are packed as weights are, along the last dimension.
    """
    bits = node.int("expert_weight_bits", 4)
    if bits not in (2, 4, 8) or packed.rank != 3 or scales.rank not in (2, 3):
        node.decline(f"weights of {bits} bits with scales of {scales.rank} dimensions")
    numbers, wide = unpacked(b, packed, bits), computed_as(scales.dtype)
    middle: Value = b.constant(1 << (bits - 1), "zero", i32)

    def spread(part: Value) -> Value:
        if part.rank == 2:
            return b.reshape(part, (*part.shape, 1))
        return aligned(b, part, numbers, 2, _block_size(node))

    if zeros is not None:
        held = unpacked(b, zeros, bits)
        middle = spread(b.remap(held, scales.shape, lambda *o: o))
    steps = spread(converted(b, scales, wide))
    return b.map(lambda v, z, s: (v - z).to(wide) * s, numbers, middle, steps, dtype=dtype)


@onnx_op("MatMulNBits", domain=DOMAIN)
def matmul_nbits(
    b: Builder,
    node: OnnxNode,
    x: Value,
    packed: Value,
    scales: Value,
    zeros: Value | None = None,
    groups: Value | None = None,
    bias: Value | None = None,
) -> Value:
    """A product with (weights - zero point)·scale, transposed; [N, K] in 2, 4 or 8 bits.

    A scale is that of a block of neighbours, or of the columns that `groups` gives its number.
    """
    bits, block = node.int("bits", 4), _block_size(node)
    rows, columns = node.int("N"), node.int("K")
    if bits not in (2, 4, 8) or node.int("weight_prepacked"):
        node.decline(f"weights of {bits} bits, or in an order of their own")
    blocks = -(-columns // block)
    flat = b.reshape(packed, (rows, blocks * block * bits // BYTE))
    wide = computed_as(scales.dtype)
    steps = b.reshape(converted(b, scales, wide), (rows, blocks))
    middle: Value = b.constant(1 << (bits - 1), "zero", i32)
    if zeros is not None and zeros.dtype == u8:
        held = unpacked(b, b.reshape(zeros, (rows, -(-blocks * bits // BYTE))), bits)
        middle = b.remap(held, (rows, blocks), lambda n, k: (n, k))
    elif zeros is not None:
        middle = b.reshape(zeros, (rows, blocks))

    def spread(part: Value) -> Value:
        """What a part of a row has, for each of its elements: [rows, blocks, block or 1]."""
        if part.rank == 0:
            return part
        if groups is None:
            return b.reshape(part, (rows, blocks, 1))
        listed = b.remap(groups, (blocks * block,), lambda k: [tir.minimum(k, columns - 1)])
        return b.reshape(take(b, part, listed, 1), (rows, blocks, block))

    numbers = b.reshape(unpacked(b, flat, bits), (rows, blocks, block))
    weights = b.map(
        lambda v, s, z: (v.to(wide) - z.to(wide)) * s,
        numbers, spread(steps), spread(middle), dtype=wide,
    )  # fmt: skip
    whole = b.reshape(weights, (rows, blocks * block))
    table = b.remap(whole, (rows, columns), lambda n, k: (n, k))
    y = _product(b, x, converted(b, table, x.dtype))
    return y if bias is None else b.map(lambda v, c: v + c, y, bias)


def _product(b: Builder, x: Value, table: Value) -> Value:
    """The product with a table that is transposed."""
    return b.matmul(x, b.transpose(table, (1, 0)))


@onnx_op("MatMulBnb4", domain=DOMAIN)
def matmul_bnb4(b: Builder, node: OnnxNode, x: Value, packed: Value, greatest: Value) -> Value:
    """A product with weights of 4 bits that stand for floats; high bits of a byte come first."""
    rows, columns, block = node.int("N"), node.int("K"), _block_size(node)
    held = converted(b, packed, i32)
    numbers = b.remap(held, (rows * columns,), lambda k: (k // 2,))
    shift = b.tabulate((rows * columns,), lambda k: (1 - k % 2) * 4, i32)
    numbers = b.map(lambda v, s: (v >> s) & 15, numbers, shift)
    if node.int("quant_type"):
        known = np.array(NORMAL_FLOATS, np.float32)
    else:
        known = np.array([*SMALL_FLOATS, *(-v for v in SMALL_FLOATS)], np.float32)
    values = take(b, b.constant(known, "floats"), numbers, 0)
    scales = b.remap(greatest, (rows * columns,), lambda k: (k // block,))
    flat = b.map(lambda v, s: v * s, values, converted(b, scales, values.dtype))
    table = converted(b, b.reshape(flat, (rows, columns)), x.dtype)
    return _product(b, x, table) if node.int("transB", 1) else b.matmul(x, table)


@onnx_op("GatherBlockQuantized", domain=DOMAIN)
def gather_block_quantized(
    b: Builder,
    node: OnnxNode,
    data: Value,
    indices: Value,
    scales: Value,
    zeros: Value | None = None,
) -> Value:
    """Rows of a quantised table as floats; places outside of it give zeros."""
    bits, is_packed = node.int("bits", 4), data.dtype == u8
    if (is_packed and bits not in (2, 4, 8)) or (not is_packed and data.dtype not in (i4, u4)):
        node.decline(f"a table of {data.dtype} with {bits} bits")
    numbers_of = partial(unpacked, bits=bits) if is_packed else partial(converted, dtype=i32)
    along = normal_axis(node.int("gather_axis"), data.rank)
    over, block = normal_axis(node.int("quantize_axis", 1), data.rank), _block_size(node, 128)
    numbers, wide = numbers_of(b, data), computed_as(scales.dtype)
    spread = aligned(b, converted(b, scales, wide), numbers, over, block)
    middle: Value = b.constant(1 << (bits - 1) if is_packed else 0, "zero", i32)
    if zeros is not None:
        held = numbers_of(b, zeros)
        if over == data.rank - 1 and fixed(held.shape[-1]) != fixed(scales.shape[-1]):
            held = b.remap(held, scales.shape, lambda *o: o)
        middle = aligned(b, held, numbers, over, block)
    table = b.map(lambda v, z, s: (v - z).to(wide) * s, numbers, middle, spread, dtype=scales.dtype)
    found = take(b, table, indices, along)
    count = data.shape[along]
    valid = b.map(lambda p: (p < count.to(p.dtype)) & (p >= (-count).to(p.dtype)), indices)
    behind = data.rank - along - 1
    shown = b.reshape(valid, (*indices.shape, *(1 for _ in range(behind))))
    return b.map(lambda ok, v: select(ok, v, 0), shown, found, dtype=scales.dtype)
