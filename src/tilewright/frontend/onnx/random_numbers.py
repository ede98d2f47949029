"""Random numbers, and the operators that use them.

Numbers are functions of their place and a seed, as a generator with a counter gives them
(SplitMix64): any of them can be computed by itself, in any order and by any thread, and equal
models give equal numbers. A node without a seed has one that follows from its name, so the numbers
of two nodes differ, but those of two runs of a module are the same. With a seed, a shape that is
known and not too large has the numbers of ONNX's reference implementation.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Final

import numpy as np

from tilewright.dtypes import DType, boolean, f32, f64, i32, u64
from tilewright.frontend.onnx.conversions import converted
from tilewright.frontend.onnx.node import OnnxNode, dtype_of_onnx
from tilewright.frontend.onnx.registry import onnx_op
from tilewright.graph import Builder, Value
from tilewright.graph.ir import Array, Shape
from tilewright.graph.ops import Cumulate, Tabulate, axis
from tilewright.graph.sizes import as_shape, sized
from tilewright.tensor import ir as tir
from tilewright.tensor.build import call, select

__all__ = ["mixed"]

STORED: Final = 1 << 20
"""Numbers of a seed that are computed when a model is compiled."""

STEP: Final = 0x9E3779B97F4A7C15
"""Between the states of two counters: 2⁶⁴ over the golden ratio, odd."""

ROUNDS: Final = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB))


@onnx_op("RandomUniform", "RandomNormal")
def random(b: Builder, node: OnnxNode) -> Value:
    """Numbers in a shape of an attribute."""
    dtype = dtype_of_onnx(node.int("dtype", 1))
    return _drawn(b, node, as_shape(node.ints("shape") or ()), dtype)


@onnx_op("RandomUniformLike", "RandomNormalLike")
def random_like(b: Builder, node: OnnxNode, x: Value) -> Value:
    """Numbers in the shape of a tensor."""
    dtype = dtype_of_onnx(node.int("dtype")) if node.has("dtype") else x.dtype
    return _drawn(b, node, x.shape, dtype)


@onnx_op("Bernoulli")
def bernoulli(b: Builder, node: OnnxNode, x: Value) -> Value:
    """One with the probability that an element says, else zero.

    (The function that ONNX gives as its definition has the probabilities the wrong way round.)
    """
    dtype = dtype_of_onnx(node.int("dtype")) if node.has("dtype") else x.dtype
    wide = f64 if x.dtype == f64 else f32
    drawn = _uniform(b, node, x.shape, wide)
    hit = b.map(lambda u, p: u < p.to(wide), drawn, x, dtype=boolean)
    return converted(b, hit, dtype)


@onnx_op("Multinomial")
def multinomial(b: Builder, node: OnnxNode, x: Value) -> Value:
    """Classes with the probabilities whose logarithms are given, up to a constant factor."""
    batch, classes = x.shape
    samples = node.int("sample_size", 1)
    dtype = dtype_of_onnx(node.int("dtype", 6))
    wide = converted(b, x, f64)
    top = b.reduce(tir.Fold.MAX, wide, [1])
    shares = b.map(lambda v, t: call("exp", v - t), wide, top)
    sums = b.add(Cumulate(tir.Fold.ADD, 1), shares)
    total = b.reduce(tir.Fold.ADD, shares, [1])
    at = _uniform(b, node, (batch, tir.Const(samples)), f64)
    limit = b.map(lambda u, t: u * t, at, total)
    below = b.map(
        lambda s, u: select(s <= u, tir.const(1, i32), tir.const(0, i32)),
        b.reshape(sums, (batch, 1, classes)),
        b.reshape(limit, (batch, samples, 1)),
    )
    found = b.reduce(tir.Fold.ADD, below, [2], keepdims=False)
    last = classes - 1
    return converted(b, b.map(lambda v: tir.minimum(v, last.to(i32)), found), dtype)


@onnx_op("Dropout")
def dropout(
    b: Builder,
    node: OnnxNode,
    x: Value,
    ratio: Value | None = None,
    training: Value | None = None,
) -> Sequence[Value]:
    """In training, elements are dropped by chance and the others scaled up; else nothing is."""
    held = b.contents(training) if training is not None else np.zeros(1)
    if training is None or (held is not None and not held.any()):
        kind = boolean if node.opset >= 10 else x.dtype
        return x, b.expand(b.constant(1, "mask", kind), x.shape)
    share = b.constant(0.5, "ratio", f32) if ratio is None else b.reshape(ratio, ())
    share = converted(b, share, f64)
    drawn = _uniform(b, node, x.shape, f64)
    trains = b.reshape(training, ())
    mask = b.map(lambda u, r, t: (r <= u) | ~t, drawn, share, trains, dtype=boolean)
    scale = b.map(lambda r, t: select(t, 1.0 / (1.0 - r), tir.const(1, f64)), share, trains)

    def element(v: tir.Expr, m: tir.Expr, s: tir.Expr) -> tir.Expr:
        return select(m, v * s.to(v.dtype), tir.const(0, v.dtype))

    return b.map(element, x, mask, scale, dtype=x.dtype), mask


def _drawn(b: Builder, node: OnnxNode, shape: Shape, dtype: DType) -> Value:
    """As the attributes of a node say."""
    if not dtype.is_float:
        node.decline(f"random numbers of type {dtype}")
    wide = f64 if dtype == f64 else f32
    if node.op.startswith("RandomUniform"):
        low, high = node.float("low"), node.float("high", 1.0)
        drawn = _uniform(b, node, shape, wide)
        return b.map(lambda u: u * (high - low) + low, drawn, dtype=dtype)
    middle, scale = node.float("mean"), node.float("scale", 1.0)
    drawn = _normal(b, node, shape, wide)
    return b.map(lambda u: u * scale + middle, drawn, dtype=dtype)


def _uniform(b: Builder, node: OnnxNode, shape: Shape, dtype: DType) -> Value:
    """From zero on, below one."""
    known = _stored(node, shape)
    if known is not None:
        generator, dims = known
        return b.constant(generator.random_sample(dims), "random", dtype)
    return b.add(Tabulate(shape, _fraction(_number(shape), _seed(node), dtype), dtype))


def _normal(b: Builder, node: OnnxNode, shape: Shape, dtype: DType) -> Value:
    """With mean zero and variance one: two numbers as an angle and a distance (Box and Muller)."""
    known = _stored(node, shape)
    if known is not None:
        generator, dims = known
        return b.constant(generator.standard_normal(dims), "random", dtype)
    seed, number = _seed(node), _number(shape)
    one = 1.0 - _fraction(number * 2, seed, dtype)
    angle = _fraction(number * 2 + 1, seed, dtype) * (2 * np.pi)
    value = call("sqrt", call("log", one) * -2.0) * call("cos", angle)
    return b.add(Tabulate(shape, value, dtype))


def _stored(node: OnnxNode, shape: Shape) -> tuple[np.random.RandomState, tuple[int, ...]] | None:
    """The generator of the reference implementation, if a seed and a small shape are known."""
    dims = sized(shape)
    seed = int(node.float("seed")) if node.has("seed") else -1
    if dims is None or not 0 <= seed < 2**32 or np.prod(dims, dtype=float) > STORED:
        return None
    return np.random.RandomState(seed), dims


def _seed(node: OnnxNode) -> int:
    """Of 64 bits, by the seed or else the name of a node."""
    if node.has("seed"):
        given = np.float64(node.float("seed")).tobytes()
        return int(mixed(np.frombuffer(given, np.uint64), 0)[0])
    name = " ".join(node.proto.output).encode()
    return int(mixed(np.array([zlib.crc32(name)], np.uint64), 1)[0])


def _number(shape: Shape) -> tir.Expr:
    """The number of an element in row-major order."""
    found: tir.Expr = tir.Const(0)
    for k, dim in enumerate(shape):
        found = found * dim + axis(k)
    return found


def _fraction(number: tir.Expr, seed: int, dtype: DType) -> tir.Expr:
    """The random number of a counter, as many leading bits as the type holds."""
    bits = _bits(number, seed)
    if dtype == f64:
        return (bits >> 11).to(tir.Const(0).dtype).to(f64) * 2.0**-53
    return (bits >> 40).to(i32).to(f32) * 2.0**-24


def _bits(number: tir.Expr, seed: int) -> tir.Expr:
    """64 bits that depend on all bits of a counter and a seed."""
    state = number.to(u64) * tir.Const(STEP, u64) + tir.Const(seed, u64)
    for shift, factor in ROUNDS:
        state = (state ^ (state >> shift)) * tir.Const(factor, u64)
    return state ^ (state >> 31)


def mixed(numbers: Array, seed: int) -> Array:
    """The same bits in NumPy."""
    with np.errstate(over="ignore"):
        state = numbers.astype(np.uint64) * np.uint64(STEP) + np.uint64(seed)
        for shift, factor in ROUNDS:
            state = (state ^ (state >> np.uint64(shift))) * np.uint64(factor)
    return np.asarray(state ^ (state >> np.uint64(31)))
