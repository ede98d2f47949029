"""Windows and attention as compiled kernels, against their meaning in NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright
from tests.onnx.lowered import lowered
from tilewright.dtypes import DType, bf16, boolean, f16, f32, i8, i32, u8
from tilewright.graph.ir import Array, TensorType
from tilewright.graph.ops import Op
from tilewright.graph.ops.attend import Attend
from tilewright.graph.ops.window import Conv, ConvTranspose, Pool
from tilewright.graph.sizes import as_shape, evaluate_size
from tilewright.tensor import ir as tir

BATCH, HEIGHT = tir.Var("batch"), tir.Var("height")
SIZES = {BATCH: 2, HEIGHT: 9}


def tensor(dtype: DType, *shape: int | tir.Expr) -> TensorType:
    return TensorType(dtype, as_shape(shape))


def drawn(kind: TensorType, seed: int) -> Array:
    rng = np.random.default_rng(seed)
    shape = [evaluate_size(d, SIZES) for d in kind.shape]
    if kind.dtype.is_bool:
        return rng.random(shape) < 0.7
    if kind.dtype.is_integer:
        return rng.integers(0 if not kind.dtype.is_signed else -9, 10, shape).astype(
            kind.dtype.numpy
        )
    return rng.standard_normal(shape).astype(kind.dtype.numpy)


def check(op: Op, *types: TensorType) -> None:
    arrays = [drawn(kind, seed) for seed, kind in enumerate(types)]
    (expected,) = op.evaluate(arrays, lambda d: evaluate_size(d, SIZES))
    kernel = tilewright.build(lowered(op, types))
    found = np.zeros(expected.shape, expected.dtype)
    kernel(*arrays, found)
    tolerance = 2e-2 if expected.dtype.itemsize == 2 else 1e-5
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)


CONVOLUTIONS = {
    "plain": (Conv((1, 1), (1, 1), (0, 0, 0, 0), 1, f32), (2, 7, 8, 5), (6, 5, 3, 3)),
    "strides": (Conv((2, 3), (1, 2), (1, 0, 2, 1), 1, f32), (1, 9, 11, 4), (8, 4, 3, 2)),
    "groups": (Conv((1, 1), (1, 1), (1, 1, 1, 1), 2, f32), (1, 6, 6, 8), (6, 4, 3, 3)),
    "depthwise": (Conv((1, 1), (1, 1), (1, 1, 1, 1), 16, f32), (1, 8, 8, 16), (16, 1, 3, 3)),
    "line": (Conv((2,), (1,), (3, 2), 1, f32), (2, 30, 3), (5, 3, 7)),
    "space": (
        Conv((1, 2, 1), (1, 1, 1), (0, 1, 1, 0, 1, 0), 1, f32),
        (1, 4, 5, 6, 3),
        (4, 3, 2, 3, 2),
    ),
    "symbolic": (Conv((1, 2), (1, 1), (1, 1, 1, 1), 1, f32), (BATCH, HEIGHT, 7, 4), (8, 4, 3, 3)),
}


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_convolution(name):
    op, data, weights = CONVOLUTIONS[name]
    check(op, tensor(f32, *data), tensor(f32, *weights))


def test_convolution_of_narrow_floats_is_summed_wide():
    check(
        Conv((1, 1), (1, 1), (1, 1, 1, 1), 1, f16), tensor(f16, 1, 5, 6, 8), tensor(f16, 4, 8, 3, 3)
    )


def test_convolution_of_small_integers_is_exact():
    check(
        Conv((1, 1), (1, 1), (1, 0, 0, 1), 1, i32), tensor(u8, 1, 6, 6, 4), tensor(i8, 3, 4, 2, 2)
    )


TRANSPOSED = {
    "plain": (ConvTranspose((1, 1), (1, 1), (0,) * 4, (0, 0), 1, f32), (1, 4, 5, 3), (3, 6, 3, 3)),
    "even": (ConvTranspose((2, 2), (1, 1), (1,) * 4, (0, 0), 1, f32), (2, 5, 4, 4), (4, 8, 4, 4)),
    "uneven": (
        ConvTranspose((2, 3), (1, 1), (0, 1, 1, 0), (1, 0), 1, f32),
        (1, 5, 4, 4),
        (4, 3, 3, 2),
    ),
    "gaps": (ConvTranspose((2, 1), (2, 3), (0,) * 4, (0, 0), 1, f32), (1, 4, 4, 2), (2, 3, 2, 3)),
    "groups": (ConvTranspose((2, 2), (1, 1), (0,) * 4, (0, 0), 2, f32), (1, 3, 3, 4), (4, 3, 2, 2)),
    "line": (ConvTranspose((3,), (1,), (1, 1), (0,), 1, f32), (2, 7, 4), (4, 5, 6)),
    "symbolic": (
        ConvTranspose((2, 2), (1, 1), (1,) * 4, (0, 0), 1, f32),
        (BATCH, 6, 4, 4),
        (4, 8, 4, 4),
    ),
}


@pytest.mark.parametrize("name", TRANSPOSED)
def test_transposed_convolution(name):
    op, data, weights = TRANSPOSED[name]
    check(op, tensor(f32, *data), tensor(f32, *weights))


POOLS = {
    "max": (Pool(tir.Fold.MAX, (3, 3), (2, 2), (1, 1), (1, 1, 1, 1)), f32, (1, 9, 9, 8)),
    "sum": (Pool(tir.Fold.ADD, (2, 3), (1, 2), (1, 1), (0, 1, 1, 0)), f32, (2, 6, 7, 5)),
    "gaps": (Pool(tir.Fold.MAX, (2, 2), (1, 1), (2, 3), (0, 0, 0, 0)), f32, (1, 7, 8, 4)),
    "bytes": (Pool(tir.Fold.MAX, (2, 2), (2, 2), (1, 1), (0, 0, 1, 1)), u8, (1, 5, 5, 3)),
    "narrow": (Pool(tir.Fold.ADD, (3, 3), (1, 1), (1, 1), (0,) * 4), f16, (1, 5, 5, 4)),
    "greatest of f16": (
        Pool(tir.Fold.MAX, (2, 2), (2, 2), (1, 1), (0, 1, 1, 0)),
        f16,
        (1, 6, 5, 4),
    ),
    "largest of bf16": (Pool(tir.Fold.MAX, (3, 3), (2, 2), (1, 1), (1,) * 4), bf16, (1, 7, 7, 8)),
    "line": (Pool(tir.Fold.MAX, (4,), (3,), (1,), (1, 2)), f32, (2, 11, 6)),
    "symbolic": (Pool(tir.Fold.ADD, (3, 3), (1, 2), (1, 1), (1,) * 4), f32, (BATCH, HEIGHT, 8, 4)),
}


@pytest.mark.parametrize("name", POOLS)
def test_pool(name):
    op, dtype, data = POOLS[name]
    check(op, tensor(dtype, *data))


HEADS, INSIDE = "bhsd", "bshd"
ATTENTION = {
    "plain": (Attend((HEADS,) * 4, 0.25), [(2, 3, 7, 16)] * 3),
    "inside": (Attend((INSIDE,) * 4, 0.25), [(2, 7, 3, 16)] * 3),
    "mixed": (
        Attend((HEADS, INSIDE, "bhds", INSIDE), 0.5),
        [(1, 2, 5, 8), (1, 9, 2, 8), (1, 2, 8, 9)],
    ),
    "shared heads": (
        Attend((HEADS,) * 4, 0.3),
        [(1, 6, 5, 8), (1, 2, 11, 8), (1, 2, 11, 4)],
    ),
    "causal": (Attend((HEADS,) * 4, 0.25, causal=True), [(1, 2, 12, 8)] * 3),
    "behind a cache": (
        Attend((HEADS,) * 4, 0.25, causal=True, offset=tir.Const(4)),
        [(1, 2, 3, 8), (1, 2, 7, 8), (1, 2, 7, 8)],
    ),
    "capped": (Attend((HEADS,) * 4, 0.7, softcap=2.0), [(1, 2, 6, 8)] * 3),
    "added mask": (Attend((HEADS,) * 4, 0.25), [*[(2, 2, 6, 8)] * 3, (2, 1, 6, 6)]),
    "packed": (Attend(("bs0hd", "bs1hd", "bs2hd", INSIDE), 0.25), [(2, 7, 3, 2, 8)] * 3),
    "symbolic": (Attend((INSIDE,) * 4, 0.25), [(BATCH, HEIGHT, 2, 8)] * 3),
}


@pytest.mark.parametrize("name", ATTENTION)
def test_attention(name):
    op, shapes = ATTENTION[name]
    check(op, *(tensor(f32, *shape) for shape in shapes))


def test_attention_of_nothing_is_zero_if_it_is_guarded():
    op = Attend((HEADS,) * 4, 0.25, guarded=True)
    kinds = [tensor(f32, 1, 2, 4, 8)] * 3
    arrays = [drawn(kind, seed) for seed, kind in enumerate(kinds)]
    mask = np.ones((1, 1, 4, 4), bool)
    mask[0, 0, 2] = False
    kernel = tilewright.build(lowered(op, [*kinds, tensor(boolean, 1, 1, 4, 4)]))
    found = np.empty((1, 2, 4, 8), np.float32)
    kernel(*arrays, mask, found)
    expected = op.evaluate([*arrays, mask], int)[0]
    assert not found[:, :, 2].any()
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
