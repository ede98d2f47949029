"""Operators along axes: reductions, running sums, arg-max, top-k, softmax."""

from __future__ import annotations

from typing import Final

import numpy as np

from fuzz.case import Array
from fuzz.grow import Growth, Value, require
from fuzz.values import FLOATS, is_float

__all__ = ["RULES", "axes_of", "axis_of"]

REDUCE: Final = (
    "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean",
    "ReduceMin", "ReduceProd", "ReduceSum", "ReduceSumSquare",
)  # fmt: skip
WHOLE: Final = {"ReduceMax", "ReduceMin", "ArgMax", "ArgMin"}
"""Reductions that have no value for nothing."""


LOGARITHMIC: Final = {"ReduceLogSum", "ReduceLogSumExp"}


def axis_of(g: Growth, value: Value, *, negative: bool = True) -> int:
    """One axis, counted from either end."""
    require(value.rank, "no axis")
    axis = g.draw.randrange(value.rank)
    return axis - value.rank if negative and g.opset >= 11 and g.draw.random() < 0.4 else axis


def axes_of(g: Growth, value: Value, low: int = 0) -> list[int]:
    """Some axes, each once, in any order."""
    require(value.rank >= low, "too few axes")
    chosen = g.draw.sample(range(value.rank), g.draw.randint(low, value.rank))
    return [a - value.rank if g.opset >= 11 and g.draw.random() < 0.4 else a for a in chosen]


def reduce(g: Growth, op: str) -> None:
    """Axes are an attribute in old opsets and an input in new ones."""
    types = g.types(op)
    if op in LOGARITHMIC:  # of integers they are rounded somewhere
        types = tuple(t for t in types if t in FLOATS)
    x = g.pick(types, low=0 if g.opset >= 18 else 1)
    if op in WHOLE or g.opset < 20:
        require(x.all(lambda a: a.size), "nothing to reduce")
    require(op != "ReduceL2" or x.all(_norm_fits), "a norm that the type cannot hold")
    keep = {"keepdims": g.draw.randint(0, 1)} if g.draw.random() < 0.8 else {}
    axes = axes_of(g, x, low=1 if g.opset < 18 else 0) if g.draw.random() < 0.8 else None
    as_input = g.opset >= 18 or (op == "ReduceSum" and g.opset >= 13)
    if not as_input:
        g.add(op, [x], axes=axes, **keep)
        return
    idle = {"noop_with_empty_axes": g.draw.randint(0, 1)} if g.draw.random() < 0.3 else {}
    given = g.parameter(np.array(axes, np.int64)) if axes is not None else None
    g.add(op, [x, given], **keep, **idle)


def arg(g: Growth, op: str) -> None:
    x = g.pick(g.types(op), low=1)
    require(_ordered(x), "NaN has no place in an order")
    attributes = {"keepdims": g.draw.randint(0, 1), "axis": axis_of(g, x)}
    if g.opset >= 12:
        attributes["select_last_index"] = g.draw.randint(0, 1)
    require(x.all(lambda a: a.size), "nothing to choose from")
    g.add(op, [x], **attributes)


def _norm_fits(a: Array) -> bool:
    """Whether the length of a vector of integers is one of them."""
    if is_float(a.dtype):
        return True
    return bool(np.linalg.norm(a.astype(np.float64).ravel()) <= np.iinfo(a.dtype).max)


def _ordered(x: Value) -> bool:
    return not is_float(x.dtype) or x.all(lambda a: not np.isnan(a.astype(np.float64)).any())


def running(g: Growth, op: str) -> None:
    x = g.pick(g.types(op), low=1)
    axis = g.parameter(np.array(axis_of(g, x), g.draw.choice((np.int32, np.int64))))
    flags = {n: g.draw.randint(0, 1) for n in ("exclusive", "reverse")}
    g.add(op, [x, axis], **flags)


def top_k(g: Growth, op: str) -> None:
    """Of equal values the order is fixed only since opset 11: earlier, they must differ."""
    x = g.pick(g.types(op), low=1)
    require(_ordered(x), "NaN has no place in an order")
    axis = axis_of(g, x)
    k = g.draw.randint(0, min(a.shape[axis] for a in x.arrays))
    if g.opset < 10:
        require(k, "k is positive")
        require(x.all(_distinct), "ties")
        g.add(op, [x], 2, axis=axis, k=k)
        return
    attributes = {"axis": axis}
    if g.opset >= 11:
        attributes |= {"largest": g.draw.randint(0, 1)}
    require(x.all(_distinct), "ties")
    g.add(op, [x, g.parameter(np.array([k], np.int64))], 2, **attributes)


def _distinct(array: np.ndarray) -> bool:
    return bool(np.unique(array.astype(np.float64)).size == array.size)


def softmax(g: Growth, op: str) -> None:
    x = g.pick(g.types(op), low=1)
    require(x.all(lambda a: a.size), "the reference refuses empty rows")
    if op == "Hardmax":
        require(_ordered(x), "NaN has no place in an order")
    g.add(op, [x], axis=axis_of(g, x) if g.draw.random() < 0.8 else None)


def lp_normalization(g: Growth, op: str) -> None:
    x = g.pick(g.types(op), low=1)
    g.add(op, [x], axis=axis_of(g, x), p=g.draw.choice((1, 2)))


RULES: Final = {
    **dict.fromkeys(REDUCE, reduce),
    **dict.fromkeys(("ArgMax", "ArgMin"), arg),
    **dict.fromkeys(("CumProd", "CumSum"), running),
    **dict.fromkeys(("Hardmax", "LogSoftmax", "Softmax"), softmax),
    "LpNormalization": lp_normalization,
    "TopK": top_k,
}
