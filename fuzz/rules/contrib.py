"""Operators of `com.microsoft`, which exporters and onnxruntime's optimiser write.

The onnx package has neither schemas nor a reference implementation of them: types stand in the
rules, and onnxruntime alone is the oracle. Weights of quantised products are small: without the
newest instructions it adds two products of bytes in sixteen bits, which may be too few.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from onnx import TensorProto

from fuzz.case import Array
from fuzz.grow import Dim, Growth, Value, require
from fuzz.rules.products import quantised, scale, zero_point
from fuzz.values import numpy_type

__all__ = ["RULES"]

FLOAT: Final = TensorProto.FLOAT
BYTES: Final = (TensorProto.INT8, TensorProto.UINT8)
EPSILON: Final = (None, 1e-5, 1e-3)


def _weights(g: Growth, kind: int, dims: list[Dim]) -> Value:
    """Bytes of which two, times the largest other bytes, fit into sixteen bits with a sign."""

    def make(shape: tuple[int, ...]) -> Array:
        rng = np.random.default_rng(g.draw.getrandbits(63))
        low = 0 if kind == TensorProto.UINT8 else -64
        return rng.integers(low, 64, shape, numpy_type(kind))

    return g.new(kind, dims, make=make, constant=0.4)


def _finite(value: Value) -> Value:
    require(value.all(lambda a: np.isfinite(a).all()), "not finite")
    return value


def _moderate(g: Growth, dims: list[Dim], *, constant: float = 0.3) -> Value:
    """Numbers around zero, none of them special; attention has to know how many features it has."""

    def make(shape: tuple[int, ...]) -> Array:
        rng = np.random.default_rng(g.draw.getrandbits(63))
        return rng.normal(0, 1, shape).astype(np.float32)

    return g.new(FLOAT, dims, make=make, constant=constant, keeps_numbers=True)


def _maybe(g: Growth, chance: float, dims: list[Dim]) -> Value | None:
    return _moderate(g, dims, constant=0.8) if g.draw.random() < chance else None


def _integers(g: Growth, values: Any, kind: type = np.int32) -> Value:
    return g.parameter(np.asarray(values, kind))


def unary(g: Growth, op: str) -> None:
    drawn = {}
    if op.endswith("QuickGelu") and g.draw.random() < 0.5:
        drawn["alpha"] = round(g.draw.uniform(0.5, 2), 2)
    g.add(op, [_finite(g.pick([FLOAT]))], **drawn)


def bias_gelu(g: Growth, op: str) -> None:
    """A row of biases; `FastGelu` may have none."""
    x = g.pick([FLOAT], low=1, high=4)
    bias = _finite(g.new(FLOAT, g.dims_of(_finite(x))[-1:], constant=0.7))
    g.add(op, [x, None if op.endswith("FastGelu") and g.draw.random() < 0.3 else bias])


def fused_matmul(g: Growth, op: str) -> None:
    """Transposed operands, also of batches that stand in the middle, and a factor."""
    batch: list[Dim] = [g.draw.choice((1, 2, 3))] if g.draw.random() < 0.6 else []
    rows, depth, columns = g.dim(), g.dim(), g.dim()
    a, b = g.draw.randint(0, 1), g.draw.randint(0, 1)
    x = g.new(FLOAT, [*batch, *([depth, rows] if a else [rows, depth])])
    y = g.new(FLOAT, [*batch, *([columns, depth] if b else [depth, columns])], constant=0.5)
    require(x.all(lambda v: v.size) and y.all(lambda v: v.size), "empty")
    factor = {"alpha": round(g.draw.uniform(-2, 2), 2)} if g.draw.random() < 0.6 else {}
    g.add(op, [_finite(x), _finite(y)], transA=a, transB=b, **factor)


def fused_gemm(g: Growth, op: str) -> None:
    rows, depth, columns = g.dim(), g.draw.choice((1, 3, 8)), g.draw.choice((1, 4, 9))
    x, y = _moderate(g, [rows, depth]), _moderate(g, [depth, columns], constant=0.7)
    third = _maybe(g, 0.7, [columns])
    activation = g.draw.choice(("Relu", "Sigmoid", "Tanh", "LeakyRelu"))
    more = {"activation_alpha": 0.2} if activation == "LeakyRelu" else {}
    g.add(op, [x, y, third], activation=activation, **more)


def skip_normalization(g: Growth, op: str) -> None:
    """Rows that are added to others, with weights and biases; the sum is a result, too."""
    batch, rows, width = g.dim(), g.dim(), g.draw.choice((1, 2, 8, 13))
    x, skip = (_moderate(g, [batch, rows, width]) for _ in range(2))
    weights = _moderate(g, [width], constant=0.8)
    simplified = "Simplified" in op
    beta = [] if simplified else [_maybe(g, 0.6, [width])]
    bias = _maybe(g, 0.5, [width])
    outputs = [True, False, False, True] if g.draw.random() < 0.5 else [True]
    g.add(op, [x, skip, weights, *beta, bias], outputs, epsilon=g.draw.choice(EPSILON))


def embed_layer_normalization(g: Growth, op: str) -> None:
    batch, rows, width = g.draw.choice((1, 2)), g.draw.choice((1, 3, 5)), g.draw.choice((4, 8))
    words, kinds = g.draw.choice((3, 9)), 2
    rng = np.random.default_rng(g.draw.getrandbits(63))
    ids = _integers(g, rng.integers(0, words, (batch, rows)))
    segments = _integers(g, rng.integers(0, kinds, (batch, rows)))
    tables = [_moderate(g, [n, width], constant=1) for n in (words, rows + 1, kinds)]
    given = [ids, segments, *tables] if g.draw.random() < 0.7 else [ids, None, *tables[:2], None]
    lines = [_moderate(g, [width], constant=1) for _ in range(2)]
    mask = _integers(g, rng.integers(0, 2, (batch, rows))) if g.draw.random() < 0.4 else None
    g.add(op, [*given, *lines, mask], 2, epsilon=g.draw.choice(EPSILON))


def multi_head_attention(g: Growth, op: str) -> None:
    """Heads side by side, with biases, masks of keys, additions to scores, and causal ones."""
    batch, heads, width = g.draw.choice((1, 2)), g.draw.choice((1, 2, 4)), g.draw.choice((2, 4))
    queries, keys = g.draw.choice((1, 3, 6)), g.draw.choice((1, 3, 6))
    causal = g.draw.random() < 0.3
    keys = queries if causal else keys
    hidden = heads * width
    q = _moderate(g, [batch, queries, hidden])
    k, v = (_moderate(g, [batch, keys, hidden]) for _ in range(2))
    bias = _maybe(g, 0.4, [3 * hidden])
    mask = None
    if g.draw.random() < 0.3:
        mask = _integers(g, [g.draw.randint(1, keys) for _ in range(batch)])
    added = _moderate(g, [batch, heads, queries, keys]) if g.draw.random() < 0.3 else None
    drawn: dict[str, Any] = {"unidirectional": 1} if causal else {}
    if g.draw.random() < 0.3:
        drawn["scale"] = round(g.draw.uniform(0.1, 1), 2)
    g.add(op, [q, k, v, bias, mask, added], num_heads=heads, **drawn)


def packed_attention(g: Growth, op: str) -> None:
    """One product makes queries, keys and values; masks say how many keys there are, or which."""
    batch, heads, width = g.draw.choice((1, 2)), g.draw.choice((1, 2, 4)), g.draw.choice((2, 4))
    rows, depth = g.draw.choice((1, 3, 6)), g.draw.choice((3, 8))
    hidden = heads * width
    x, weights = _moderate(g, [batch, rows, depth]), _moderate(g, [depth, 3 * hidden], constant=1)
    bias = _moderate(g, [3 * hidden], constant=1)
    mask = None
    match g.draw.choice(("none", "lengths", "which")):
        case "lengths":
            mask = _integers(g, [g.draw.randint(1, rows) for _ in range(batch)])
        case "which":
            rng = np.random.default_rng(g.draw.getrandbits(63))
            some = rng.integers(0, 2, (batch, rows))
            some[:, 0] = 1
            mask = _integers(g, some)
    causal = {"unidirectional": 1} if g.draw.random() < 0.3 else {}
    g.add(op, [x, weights, bias, mask], num_heads=heads, **causal)


def group_query_attention(g: Growth, op: str) -> None:
    """Fewer heads of keys than of queries, with a cache that grows; positions may be turned."""
    heads, shared = g.draw.choice(((2, 2), (4, 2), (4, 1)))
    batch, width = g.draw.choice((1, 2)), 16
    past, rows = g.draw.choice(((0, 1), (0, 4), (3, 1), (5, 1)))
    q = _moderate(g, [batch, rows, heads * width])
    k, v = (_moderate(g, [batch, rows, shared * width]) for _ in range(2))
    kept = [_moderate(g, [batch, shared, past, width]) for _ in range(2)]
    total = past + rows
    lengths = _integers(g, [total - 1] * batch)
    drawn: dict[str, Any] = {}
    tables: list[Value | None] = [None, None]
    if g.draw.random() < 0.5:
        drawn["do_rotary"] = 1
        tables = [_moderate(g, [total + 2, width // 2], constant=1) for _ in range(2)]
    if g.draw.random() < 0.3:
        drawn["local_window_size"] = g.draw.choice((1, 2, 8))
    if g.draw.random() < 0.2:
        drawn["softcap"] = 2.0
    g.add(
        op,
        [q, k, v, *kept, lengths, _integers(g, total), *tables],
        3,
        num_heads=heads,
        kv_num_heads=shared,
        **drawn,
    )


def rotary_embedding(g: Growth, op: str) -> None:
    batch, rows, heads, width = g.draw.choice((1, 2)), g.draw.choice((1, 4)), 2, 8
    most = rows + 3
    x = _moderate(
        g, [batch, rows, heads * width] if g.draw.random() < 0.5 else [batch, heads, rows, width]
    )
    tables = [_moderate(g, [most, width // 2], constant=1) for _ in range(2)]
    rng = np.random.default_rng(g.draw.getrandbits(63))
    where = (
        [g.draw.randint(0, 3)] if g.draw.random() < 0.5 else rng.integers(0, most, (batch, rows))
    )
    turned = {"interleaved": 1} if g.draw.random() < 0.4 else {}
    g.add(op, [x, _integers(g, where, np.int64), *tables], **turned)


def matmul_n_bits(g: Growth, op: str) -> None:
    """Weights of four bits in blocks along the sum, with scales and maybe zero points."""
    rows, columns, block = g.dim(), g.draw.choice((1, 5, 8)), g.draw.choice((16, 32))
    depth = block * g.draw.choice((1, 2, 3)) - g.draw.choice((0, 0, 3))
    blocks = -(-depth // block)
    rng = np.random.default_rng(g.draw.getrandbits(63))
    packed = g.parameter(
        rng.integers(0, 256, (columns, blocks, block // 2), np.uint8), always_constant=True
    )
    scales = g.parameter(
        rng.uniform(0.1, 1, columns * blocks).astype(np.float32), always_constant=True
    )
    points = None
    if g.draw.random() < 0.5:
        size = columns * -(-blocks // 2)
        points = g.parameter(rng.integers(0, 256, size, np.uint8), always_constant=True)
    x = _moderate(g, [rows, depth])
    require(x.all(lambda a: a.size), "empty")
    g.add(op, [x, packed, scales, points], K=depth, N=columns, bits=4, block_size=block)


def dynamic_quantize_matmul(g: Growth, op: str) -> None:
    rows, depth, columns = g.dim(), g.draw.choice((1, 4, 9)), g.draw.choice((1, 5))
    kind = g.draw.choice(BYTES)
    x = _moderate(g, [rows, depth])
    require(x.all(lambda a: a.size), "empty")
    y = _weights(g, kind, [depth, columns])
    wide = (columns,) if g.draw.random() < 0.4 else ()
    point = zero_point(g, kind, wide) if g.draw.random() < 0.5 else None
    g.add(op, [x, y, scale(g, wide), point, _maybe(g, 0.4, [columns])])


def matmul_integer_to_float(g: Growth, op: str) -> None:
    a, b = g.draw.choice(BYTES), g.draw.choice(BYTES)
    rows, depth, columns = g.dim(), g.draw.choice((1, 4, 9)), g.draw.choice((1, 5))
    x, y = quantised(g, a, [rows, depth]), _weights(g, b, [depth, columns])
    require(x.all(lambda v: v.size), "empty")
    points = [zero_point(g, kind) if g.draw.random() < 0.6 else None for kind in (a, b)]
    g.add(op, [x, y, scale(g), scale(g), *points, _maybe(g, 0.4, [columns])])


def q_linear_binary(g: Growth, op: str) -> None:
    """Three scales and zero points; the second operand may be smaller."""
    kind = g.draw.choice(BYTES)
    dims = g.dims(1, 3)
    x = quantised(g, kind, dims)
    shapes: list[list[Dim]] = [dims, dims[-1:], [1]]
    y = quantised(g, kind, g.draw.choice(shapes))
    require(x.all(lambda v: v.size) and y.all(lambda v: v.size), "empty")
    given: list[Value | None] = []
    for value in (x, y):
        given += [value, scale(g), zero_point(g, kind)]
    g.add(op, [*given, scale(g), zero_point(g, kind)])


def q_linear_concat(g: Growth, op: str) -> None:
    kind = g.draw.choice(BYTES)
    dims = g.dims(2, 3)
    given: list[Value | None] = [scale(g), zero_point(g, kind)]
    for _ in range(g.draw.randint(1, 3)):
        part = quantised(g, kind, [*dims[:1], g.draw.choice((1, 2, 5)), *dims[2:]])
        given += [part, scale(g), zero_point(g, kind)]
    g.add(op, given, axis=1)


def q_linear_pool(g: Growth, op: str) -> None:
    kind = g.draw.choice(BYTES)
    x = quantised(
        g, kind, [g.draw.choice((1, 2)), g.draw.choice((1, 3, 8)), *g.draw.choices((3, 4, 7), k=2)]
    )
    given = [x, scale(g), zero_point(g, kind), scale(g), zero_point(g, kind)]
    if "Global" in op:
        g.add(op, given, channels_last=0)
        return
    kernel = g.draw.choices((1, 2, 3), k=2)
    drawn: dict[str, Any] = {"strides": g.draw.choices((1, 2), k=2)}
    if g.draw.random() < 0.3:
        drawn |= {
            "pads": [kernel[0] - 1, 0, 0, kernel[1] - 1],
            "count_include_pad": g.draw.randint(0, 1),
        }
    g.add(op, given, kernel_shape=kernel, **drawn)


def expand_dims(g: Growth, op: str) -> None:
    x = g.pick([FLOAT], high=4)
    axis = g.draw.randint(-x.rank - 1, x.rank)
    g.add(op, [x, g.parameter(np.array(axis, np.int32), always_constant=True)])


def trilu(g: Growth, op: str) -> None:
    x = g.pick([FLOAT, TensorProto.INT64], low=2, high=4)
    k = g.parameter(np.array(g.draw.randint(-3, 3), np.int64)) if g.draw.random() < 0.6 else None
    g.add(op, [x, k], upper=g.draw.randint(0, 1))


def distances(g: Growth, op: str) -> None:
    depth: Dim = g.draw.choice((1, 3, 8))
    x, y = _moderate(g, [g.dim(), depth]), _moderate(g, [g.dim(), depth])
    require(x.all(lambda v: v.size) and y.all(lambda v: v.size), "empty")
    g.add(op, [x, y], metric="sqeuclidean" if g.draw.random() < 0.5 else "euclidean")


def inverse(g: Growth, op: str) -> None:
    """Of matrices that have a large diagonal."""
    n = g.draw.randint(1, 5)

    def make(shape: tuple[int, ...]) -> Array:
        rng = np.random.default_rng(g.draw.getrandbits(63))
        return (rng.uniform(-1, 1, shape) + 2 * n * np.eye(n)).astype(numpy_type(FLOAT))

    g.add(op, [g.new(FLOAT, [*g.dims(0, 2), n, n], make=make)])


RULES: Final = {
    f"com.microsoft.{op}": rule
    for op, rule in {
        "Attention": packed_attention,
        "BiasGelu": bias_gelu,
        "CDist": distances,
        "DynamicQuantizeMatMul": dynamic_quantize_matmul,
        "EmbedLayerNormalization": embed_layer_normalization,
        "ExpandDims": expand_dims,
        "FastGelu": bias_gelu,
        "FusedGemm": fused_gemm,
        "FusedMatMul": fused_matmul,
        "Gelu": unary,
        "GroupQueryAttention": group_query_attention,
        "Inverse": inverse,
        "MatMulIntegerToFloat": matmul_integer_to_float,
        "MatMulNBits": matmul_n_bits,
        "MultiHeadAttention": multi_head_attention,
        "QLinearAdd": q_linear_binary,
        "QLinearAveragePool": q_linear_pool,
        "QLinearConcat": q_linear_concat,
        "QLinearGlobalAveragePool": q_linear_pool,
        "QLinearMul": q_linear_binary,
        "QuickGelu": unary,
        "RotaryEmbedding": rotary_embedding,
        "SkipLayerNormalization": skip_normalization,
        "SkipSimplifiedLayerNormalization": skip_normalization,
        "Trilu": trilu,
    }.items()
}
