"""Layers, block-quantised weights and quantised layers of onnxruntime's domain, beside it."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from onnx import TensorProto

from tests.onnx.beside_ort import beside
from tilewright.graph.ir import Array

pytest.importorskip("onnxruntime")

FLOAT, HALF, BYTE = TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.UINT8
N = 11
"""A size with a name."""


def normal(rng: np.random.Generator, *shape: int, dtype: str = "f4") -> Array:
    return rng.normal(0, 1, shape).astype(dtype)


def small(rng: np.random.Generator, *shape: int, dtype: str = "u1") -> Array:
    limits = np.iinfo(dtype)
    return rng.integers(limits.min, limits.max + 1, shape).astype(dtype)


def weights(rng: np.random.Generator, *shape: int) -> Array:
    """Of 7 bits: beyond them onnxruntime overflows on processors without dot products."""
    return rng.integers(-64, 64, shape).astype("i1")


def scale(rng: np.random.Generator) -> np.float32:
    return np.float32(rng.uniform(0.01, 0.1))


@pytest.mark.parametrize("rank", [3, 4])
@pytest.mark.parametrize("seed", range(6))
def test_fused_matmul(rank: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    flags = [int(v) for v in rng.integers(0, 2, 4)]
    batch = [2, 5][: rank - 2]

    def operand(rows: int, columns: int, swapped: int, behind: int) -> Array:
        matrix = [columns, rows] if swapped else [rows, columns]
        shape = [matrix[0], *batch, matrix[1]] if behind else [*batch, *matrix]
        return normal(rng, *shape)

    x, y = operand(4, 6, flags[0], flags[2]), operand(6, 3, flags[1], flags[3])
    names = ("transA", "transB", "transBatchA", "transBatchB")
    beside("FusedMatMul", [x, y], alpha=0.5, **dict(zip(names, flags, strict=True)))


ACTIVATIONS: dict[str, list[float]] = {
    "Relu": [], "LeakyRelu": [0.2], "Sigmoid": [], "Tanh": [], "Clip": [-0.5, 0.75],
    "HardSigmoid": [0.3, 0.4],
}  # fmt: skip


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("residual", [False, True])
def test_fused_conv(rng: np.random.Generator, activation: str, residual: bool) -> None:
    x, w = normal(rng, N, 4, 9, 9), normal(rng, 6, 2, 3, 3)
    bias = normal(rng, 6) if rng.random() < 0.7 else None
    inputs = [x, w, bias, normal(rng, N, 6, 9, 9)] if residual else [x, w, bias]
    params = {"activation_params": ACTIVATIONS[activation]} if ACTIVATIONS[activation] else {}
    beside("FusedConv", inputs, activation=activation, group=2, pads=[1] * 4, **params)


def test_channels_last_conv(rng: np.random.Generator) -> None:
    x, w, bias, z = normal(rng, N, 9, 9, 4), normal(rng, 6, 4, 3, 3), normal(rng, 6), None
    z = normal(rng, N, 9, 9, 6)
    plain = [np.moveaxis(v, -1, 1) for v in (x, z)]
    options: dict[str, Any] = {"activation": "Relu", "pads": [1] * 4}
    (wanted,) = beside("FusedConv", [plain[0], w, bias, plain[1]], **options)
    turned = [np.moveaxis(wanted, 1, -1)]
    beside("NhwcFusedConv", [x, w, bias, z], wanted=turned, **options)


def test_conv_transpose_with_pads(rng: np.random.Generator) -> None:
    x, w, bias = normal(rng, N, 4, 6, 6), normal(rng, 4, 3, 3, 3), normal(rng, 3)
    pads = np.array([1, 0, 1, 2], np.int64)
    beside("ConvTransposeWithDynamicPads", [x, w, pads, bias], known=[2], strides=[2, 2])


def test_biases(rng: np.random.Generator) -> None:
    x, bias, skip = normal(rng, N, 5, 320), normal(rng, 320), normal(rng, N, 5, 320)
    beside("BiasAdd", [x, bias, skip], wanted=[x + bias + skip])
    wide = normal(rng, 2, 5, 16), normal(rng, 16)
    left, right = np.split(wide[0] + wide[1], 2, axis=-1)
    (gelu,) = beside("Gelu", [right])
    beside("BiasSplitGelu", [*wide], wanted=[left * gelu])


@pytest.mark.parametrize("shape", [(N, 1, 1, 7), (1, 1, 5, 7), (N, 3, 5, 7)])
def test_bias_softmax(rng: np.random.Generator, shape: tuple[int, ...]) -> None:
    x, bias = normal(rng, N, 3, 5, 7), normal(rng, *shape)
    total = np.exp((x + bias).astype("f8"))
    wanted = (total / total.sum(-1, keepdims=True)).astype("f4")
    beside("BiasSoftmax", [x, bias], wanted=[wanted], axis=3, is_inner_broadcast=1)


@pytest.mark.parametrize("last", [0, 1])
@pytest.mark.parametrize("swish", [0, 1])
@pytest.mark.parametrize("skip", [None, "whole", "rows"])
def test_group_norm(rng: np.random.Generator, last: int, swish: int, skip: str | None) -> None:
    shape = (N, 4, 5, 12)
    x, parts = normal(rng, *shape), normal(rng, 3, 12)
    added = {None: 0.0, "whole": normal(rng, *shape), "rows": normal(rng, N, 12)}[skip]
    total = x
    if skip:
        total = x + (added if skip == "whole" else added[:, None, None]) + parts[2]
    groups = total.astype("f8").reshape(N, 20, 3, 4)
    middle, spread = groups.mean((1, 3), keepdims=True), groups.var((1, 3), keepdims=True)
    y = ((groups - middle) / np.sqrt(spread + 1e-4)).reshape(shape) * parts[0] + parts[1]
    y = y / (1 + np.exp(-y)) if swish else y

    def turned(v: Array) -> Array:
        return v.astype("f4") if last or v.ndim < 4 else np.moveaxis(v, -1, 1).astype("f4")

    options = {"epsilon": 1e-4, "groups": 3, "activation": swish, "channels_last": last}
    if not skip:
        beside("GroupNorm", [turned(x), *parts[:2]], wanted=[turned(y)], **options)
        return
    inputs, wanted = [turned(x), *parts[:2], turned(added), parts[2]], [turned(y), turned(total)]
    beside("SkipGroupNorm", inputs, [FLOAT, FLOAT], wanted=wanted, **options)


@pytest.mark.parametrize(
    ("bits", "zeros"),
    [(2, None), (4, None), (8, None), (2, "packed"), (4, "packed"), (8, "packed"), (4, "floats")],
)
def test_matmul_nbits(rng: np.random.Generator, bits: int, zeros: str | None) -> None:
    rows, columns, block = 5, 50, 16
    blocks = 4
    x = normal(rng, N, 3, columns)
    packed = small(rng, rows, blocks, block * bits // 8)
    scales = rng.uniform(0.01, 0.1, (rows, blocks)).astype("f4")
    inputs: list[Any] = [x, packed, scales]
    if zeros == "packed":
        inputs.append(small(rng, rows, -(-blocks * bits // 8)))
    elif zeros == "floats":
        inputs.append(rng.uniform(0, 2**bits, (rows, blocks)).astype("f4"))
    if zeros is None:
        inputs += [None, None, normal(rng, rows)]
    known = [k for k, v in enumerate(inputs) if k and v is not None]
    options = {"N": rows, "K": columns, "bits": bits, "block_size": block}
    found = beside("MatMulNBits", inputs, known=known, tolerance=1e-3, **options)
    beside("MatMulNBits", inputs, wanted=found, **options)


@pytest.mark.parametrize("zeros", [False, True])
def test_columns_of_any_group(rng: np.random.Generator, zeros: bool) -> None:
    rows, columns, block, blocks = 5, 64, 16, 4
    x, packed = normal(rng, N, columns), small(rng, rows, blocks, block // 2)
    scales = rng.uniform(0.01, 0.1, (rows, blocks)).astype("f4")
    middle = small(rng, rows, blocks // 2) if zeros else None
    groups = rng.permutation(np.arange(columns) // block).astype("i4")
    low, high = packed.reshape(rows, -1) & 15, packed.reshape(rows, -1) >> 4
    held = np.stack([low, high], -1).reshape(rows, columns).astype("f4")
    own = np.full((rows, blocks), 8.0)
    if middle is not None:
        own = np.stack([middle & 15, middle >> 4], -1).reshape(rows, blocks).astype("f4")
    wanted = (x @ ((held - own[:, groups]) * scales[:, groups]).T).astype("f4")
    inputs = [x, packed, scales, middle, groups]
    known = [k for k, v in enumerate(inputs) if k and v is not None]
    options = {"N": rows, "K": columns, "bits": 4, "block_size": block}
    beside("MatMulNBits", inputs, known=known, wanted=[wanted], **options)


@pytest.mark.parametrize("kind", [0, 1])
def test_matmul_bnb4(rng: np.random.Generator, kind: int) -> None:
    x, packed, greatest = normal(rng, N, 32), small(rng, 5 * 16), rng.random(10).astype("f4")
    options = {"N": 5, "K": 32, "block_size": 16, "quant_type": kind}
    beside("MatMulBnb4", [x, packed, greatest], known=[1, 2], tolerance=1e-3, **options)


@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("zeros", [False, True])
def test_gather_block_quantized(rng: np.random.Generator, bits: int, zeros: bool) -> None:
    data = small(rng, 9, 64 * bits // 8)
    places = rng.integers(-9, 9, (N, 3))
    scales = rng.uniform(0.01, 0.1, (9, 4)).astype("f4")
    inputs = [data, places, scales] + ([small(rng, 9, 4 * bits // 8)] if zeros else [])
    known = [k for k in range(len(inputs)) if k != 1]
    options = {"bits": bits, "block_size": 16, "gather_axis": 0, "quantize_axis": 1}
    beside("GatherBlockQuantized", inputs, known=known, **options)


@pytest.mark.parametrize("dtype", [ml_dtypes.uint4, ml_dtypes.int4])
@pytest.mark.parametrize(("along", "over", "zeros"), [(0, 1, True), (1, 0, False)])
def test_gather_from_tables_of_four_bits(
    rng: np.random.Generator, dtype: Any, along: int, over: int, zeros: bool
) -> None:
    low = 0 if dtype is ml_dtypes.uint4 else -8
    shape = (8, 2) if over else (1, 32)
    data = rng.integers(low, low + 16, (8, 32)).astype(dtype)
    inputs = [data, rng.integers(-3, 3, (N, 2)), rng.uniform(0.01, 0.1, shape).astype("f4")]
    inputs += [rng.integers(0, 7, shape).astype(dtype)] if zeros else []
    known = [k for k in range(len(inputs)) if k != 1]
    options = {"block_size": 16, "gather_axis": along, "quantize_axis": over, "standard": 21}
    beside("GatherBlockQuantized", inputs, known=known, **options)


@pytest.mark.parametrize("dtype", ["u1", "i1"])
@pytest.mark.parametrize("opset", [11, 13])
def test_quantized_softmax(rng: np.random.Generator, dtype: str, opset: int) -> None:
    kind = TensorProto.UINT8 if dtype == "u1" else TensorProto.INT8
    zeros = small(rng, 2, dtype=dtype)
    inputs = [small(rng, N, 3, 5, dtype=dtype), scale(rng), zeros[0], np.float32(1 / 256), zeros[1]]
    known, axis = [1, 2, 3, 4], 2 if opset >= 13 else 1
    beside("QLinearSoftmax", inputs, [kind], known=known, steps=1, axis=axis, opset=opset)


def test_quantized_concat(rng: np.random.Generator) -> None:
    inputs: list[Any] = [scale(rng), np.uint8(100)]
    for width in (2, 4):
        inputs += [small(rng, N, width), scale(rng), small(rng, 1)[0]]
    beside("QLinearConcat", inputs, [BYTE], known=[0, 1, 3, 4, 6, 7], steps=1, axis=1)


@pytest.mark.parametrize("last", [0, 1])
@pytest.mark.parametrize("op", ["QLinearAveragePool", "QLinearGlobalAveragePool"])
def test_quantized_average_pool(rng: np.random.Generator, op: str, last: int) -> None:
    x = small(rng, N, 6, 6, 4) if last else small(rng, N, 4, 6, 6)
    inputs = [x, scale(rng), small(rng, 1)[0], scale(rng), small(rng, 1)[0]]
    window = {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}
    options = {"channels_last": last, **(window if op == "QLinearAveragePool" else {})}
    beside(op, inputs, [BYTE], known=[1, 2, 3, 4], steps=1, **options)


@pytest.mark.parametrize("keepdims", [0, 1])
def test_quantized_mean(rng: np.random.Generator, keepdims: int) -> None:
    x = small(rng, N, 4, 6, dtype="i1")
    zeros = small(rng, 2, dtype="i1")
    x_scale, y_scale = scale(rng), scale(rng)
    mean = ((x.astype("f8") - zeros[0]) * x_scale).mean((0, 2), keepdims=bool(keepdims))
    wanted = np.clip(np.rint(mean / y_scale) + zeros[1], -128, 127).astype("i1")
    inputs = [x, x_scale, zeros[0], y_scale, zeros[1]]
    options = {"axes": [0, -1], "keepdims": keepdims}
    beside("QLinearReduceMean", inputs, [TensorProto.INT8], wanted=[wanted], steps=1, **options)


def test_quantized_where(rng: np.random.Generator) -> None:
    condition = rng.random((N, 1, 5)) < 0.5
    inputs: list[Any] = [condition]
    for shape in ((N, 4, 5), (4, 1)):
        inputs += [small(rng, *shape), scale(rng), small(rng, 1)[0]]
    inputs += [scale(rng), small(rng, 1)[0]]
    beside("QLinearWhere", inputs, [BYTE], known=[2, 3, 5, 6, 7, 8], steps=1)


@pytest.mark.parametrize("columns", [False, True])
@pytest.mark.parametrize("as_floats", [False, True])
def test_quantized_gemm(rng: np.random.Generator, columns: bool, as_floats: bool) -> None:
    x, y = small(rng, N, 6), weights(rng, 5, 6)
    y_scale = rng.uniform(0.01, 0.1, 5).astype("f4") if columns else scale(rng)
    y_zero = small(rng, 5, dtype="i1") if columns else np.int8(3)
    c = rng.integers(-999, 999, 5).astype("i4")
    inputs = [x, scale(rng), np.uint8(120), y, y_scale, y_zero, c]
    inputs += [] if as_floats else [np.float32(2.0), np.uint8(100)]
    kinds, known = [FLOAT if as_floats else BYTE], list(range(1, len(inputs)))
    beside("QGemm", inputs, kinds, known=known, steps=1, transB=1, alpha=0.5)


@pytest.mark.parametrize("last", [0, 1])
def test_quantized_conv(rng: np.random.Generator, last: int) -> None:
    x = small(rng, N, 6, 6, 4) if last else small(rng, N, 4, 6, 6)
    w = weights(rng, 5, 4, 3, 3)
    inputs = [x, scale(rng), np.uint8(7), w, scale(rng), np.int8(0), np.float32(1), np.uint8(100)]
    known = list(range(1, 8))
    options = {"channels_last": last, "pads": [1] * 4}
    beside("QLinearConv", inputs, [BYTE], known=known, steps=1, **options)


def test_channels_last_max_pool(rng: np.random.Generator) -> None:
    x = small(rng, N, 7, 7, 3)
    beside("NhwcMaxPool", [x], [BYTE], kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)


def test_integer_arithmetic(rng: np.random.Generator) -> None:
    x, y = small(rng, N, 4, 5), small(rng, N, 4, 5)
    wanted = (x.astype("i4") - 7) * (y.astype("i4") - 3)
    kinds = [TensorProto.INT32]
    beside("MulInteger", [x, np.uint8(7), y, np.uint8(3)], kinds, wanted=[wanted])
    total = x.sum((0, 2), keepdims=True).astype("u4")
    options = {"axes": [0, 2], "keepdims": 1}
    beside("ReduceSumInteger", [x], [TensorProto.UINT32], wanted=[total], **options)
    a, c = small(rng, N, 6, dtype="i2"), small(rng, 6, 3, dtype="i2")
    wanted = a.astype("i4") @ c.astype("i4")
    beside("MatMulInteger16", [a, c], kinds, wanted=[wanted])
