"""Matrix products of all kinds, also of quantised numbers."""

from __future__ import annotations

from typing import Final

import numpy as np
from onnx import TensorProto

from fuzz.grow import Dim, Growth, Value, require
from fuzz.values import numpy_type

__all__ = ["RULES", "quantised", "scale", "zero_point"]

EINSUMS: Final = (
    ("ij,jk->ik", 2), ("bij,bjk->bik", 2), ("ij->ji", 1), ("ij->i", 1), ("ii->i", 1),
    ("i,j->ij", 2), ("bhid,bhjd->bhij", 2), ("...ij,...jk->...ik", 2), ("ij,ij->", 2), ("ij,kj", 2),
    ("ij,jk,kl->il", 3), ("ijk->kij", 1),
)  # fmt: skip


def matmul(g: Growth, op: str) -> None:
    """Vectors, matrices and stacks of them, with batches that broadcast."""
    types = g.types(op)
    x = g.pick(types, low=1, high=4)
    depth = g.dims_of(x)[-1]
    columns: list[Dim] = [g.dim()]
    batch = [g.meeting(d, 0.4) for d in g.dims_of(x)[:-2]]
    batch = batch[g.draw.randint(0, len(batch)) :]
    if g.draw.random() < 0.15:
        y = g.new(x.type, [depth])
    else:
        y = g.new(x.type, [*batch, depth, *columns], constant=0.5)
    g.add(op, [x, y])


def gemm(g: Growth, op: str) -> None:
    x = g.pick(g.types(op), low=2, high=2)
    a, b = g.draw.randint(0, 1), g.draw.randint(0, 1)
    dims = g.dims_of(x)
    rows, depth = (dims[1], dims[0]) if a else (dims[0], dims[1])
    columns = g.dim()
    y = g.new(x.type, [columns, depth] if b else [depth, columns], constant=0.6)
    third = None
    if g.opset < 11 or g.draw.random() < 0.7:
        shapes: list[list[Dim]] = [[columns], [1, columns], [rows, columns], [rows, 1], [1], []]
        wide = [g.meeting(d, 0, one_way=True) for d in g.draw.choice(shapes)]
        third = g.new(x.type, wide, constant=0.6)
    scales = {n: round(g.draw.uniform(-2, 2), 2) for n in ("alpha", "beta")}
    whole = x.dtype.kind in "iu"
    scales = {n: float(g.draw.choice((1, 2))) if whole else v for n, v in scales.items()}
    scales = {n: v for n, v in scales.items() if g.draw.random() < 0.5}
    g.add(op, [x, y, third], transA=a, transB=b, **scales)


def einsum(g: Growth, op: str) -> None:
    text, count = g.draw.choice(EINSUMS)
    kind = g.choose_type(g.types(op))
    sizes: dict[str, Dim] = {letter: g.draw.choice((1, 2, 3, 5)) for letter in "bhdijkl"}
    if g.aliases:
        sizes = {letter: g.dim() for letter in sizes}
    parts = text.split("->")[0].split(",")
    values = []
    for part in parts:
        lead: list[Dim] = [2] if part.startswith("...") else []
        dims = [*lead, *(sizes[c] for c in part.removeprefix("..."))]
        values.append(g.new(kind, [g.meeting(d, 0) for d in dims]))
    require(len(values) == count)
    g.add(op, values, equation=text)


def scale(g: Growth, shape: tuple[int, ...] = (), dtype: np.dtype | None = None) -> Value:
    """A scale of quantised numbers: a power of two now and then, which makes ties."""
    rng = np.random.default_rng(g.draw.getrandbits(63))
    values = (
        2.0 ** rng.integers(-5, 1, shape)
        if g.draw.random() < 0.4
        else rng.uniform(0.02, 0.9, shape)
    )
    return g.parameter(np.asarray(values).astype(dtype or np.float32), always_constant=True)


def zero_point(g: Growth, elem_type: int, shape: tuple[int, ...] = ()) -> Value:
    dtype = numpy_type(elem_type)
    rng = np.random.default_rng(g.draw.getrandbits(63))
    values = rng.integers(0 if dtype.kind == "u" else -3, 7, shape)
    return g.parameter(values.astype(np.int8).astype(dtype), always_constant=True)


def quantised(g: Growth, kind: int, dims: list[Dim]) -> Value:
    """All numbers of an integer type."""
    info = np.iinfo(numpy_type(kind))

    def make(shape: tuple[int, ...]) -> np.ndarray:
        rng = np.random.default_rng(g.draw.getrandbits(63))
        return rng.integers(info.min, info.max, shape, numpy_type(kind), endpoint=True)

    return g.new(kind, dims, make=make, constant=0.4)


def matmul_integer(g: Growth, op: str) -> None:
    a, b = (g.draw.choice((TensorProto.INT8, TensorProto.UINT8)) for _ in range(2))
    rows, depth, columns = g.dim(), g.draw.choice((1, 2, 4, 7, 16)), g.dim()
    x, y = quantised(g, a, [rows, depth]), quantised(g, b, [depth, columns])
    points = [zero_point(g, t) if g.draw.random() < 0.6 else None for t in (a, b)]
    g.add(op, [x, y, *points])


def q_linear_matmul(g: Growth, op: str) -> None:
    a, b, c = (g.draw.choice((TensorProto.INT8, TensorProto.UINT8)) for _ in range(3))
    rows, depth, columns = g.dim(), g.draw.choice((1, 2, 4, 7, 16)), g.dim()
    x, y = quantised(g, a, [rows, depth]), quantised(g, b, [depth, columns])
    g.add(
        op,
        [x, scale(g), zero_point(g, a), y, scale(g), zero_point(g, b), scale(g), zero_point(g, c)],
    )


def det(g: Growth, op: str) -> None:
    n = g.draw.randint(1, 4)
    g.add(op, [g.new(g.choose_type(g.types(op)), [*g.dims(0, 2), n, n])])


def attention(g: Growth, op: str) -> None:
    """Queries, keys and values of several heads; sometimes fewer heads of keys.

    Values are finite: a weight of zero hides them or not, as an algorithm likes.
    """
    kind = g.choose_type([t for t in g.types(op) if t != TensorProto.DOUBLE])
    batch: Dim = g.draw.choice((1, 2))
    heads, shared = g.draw.choice(((1, 1), (2, 2), (4, 2), (4, 1)))
    width, keys = g.draw.choice((2, 4, 8)), g.draw.choice((1, 3, 8))
    queries = g.dim()
    q = g.new(kind, [batch, heads, queries, width])
    k, v = (g.new(kind, [batch, shared, keys, width]) for _ in range(2))
    require(q.all(lambda a: a.size))
    require(v.all(lambda a: np.isfinite(a.astype(np.float64)).all()), "not finite")
    mask = None
    if g.draw.random() < 0.3:
        mask = g.new(kind, [g.meeting(d, 0, one_way=True) for d in (queries, keys)])
    causal = {"is_causal": 1} if g.draw.random() < 0.3 else {}
    size = {"scale": round(g.draw.uniform(0.1, 1), 2)} if g.draw.random() < 0.4 else {}
    cap = {"softcap": 2.0} if g.draw.random() < 0.2 else {}
    g.add(op, [q, k, v, mask], **causal, **size, **cap)


RULES: Final = {
    "Attention": attention,
    "Det": det,
    "Einsum": einsum,
    "Gemm": gemm,
    "MatMul": matmul,
    "MatMulInteger": matmul_integer,
    "QLinearMatMul": q_linear_matmul,
}
