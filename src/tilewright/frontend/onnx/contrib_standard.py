"""Operators of onnxruntime's domain that became, or nearly are, operators of the standard."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import onnx

from tilewright.dtypes import boolean
from tilewright.frontend.onnx.constants import arange
from tilewright.frontend.onnx.fourier import dft
from tilewright.frontend.onnx.indexing import gather_nd, known_scalar
from tilewright.frontend.onnx.movement import pad, trilu
from tilewright.frontend.onnx.node import OnnxNode, normal_axis
from tilewright.frontend.onnx.registry import Results, onnx_op
from tilewright.frontend.onnx.sampling import grid_sample
from tilewright.frontend.onnx.taking import take
from tilewright.frontend.onnx.unique import unique
from tilewright.graph import Builder, Value
from tilewright.graph.sizes import fixed, product, tidy
from tilewright.tensor import ir as tir
from tilewright.tensor.build import call

__all__: list[str] = []

DOMAIN: Final = "com.microsoft"

onnx_op("Trilu", domain=DOMAIN)(trilu)
onnx_op("GatherND", domain=DOMAIN)(gather_nd)
onnx_op("GridSample", domain=DOMAIN)(grid_sample)


@onnx_op("CausalConvWithState", "LinearAttention", domain=DOMAIN)
def as_in_the_standard(b: Builder, node: OnnxNode, *inputs: Value | None) -> Value:
    """The functions of the standard's own operators stand for them (`functions.STANDARD`)."""
    if node.int("ndim", 1) != 1:
        raise ValueError(f"it convolves along {node.int('ndim')} dimensions")
    node.decline("it is a function of the standard")


def _as(node: OnnxNode, opset: int, outputs: int = 0, **attributes: Any) -> OnnxNode:
    """The node as the standard's operator of that opset sees it."""
    proto = onnx.NodeProto()
    proto.CopyFrom(node.proto)
    proto.output.extend(f"unused_{k}" for k in range(len(proto.output), outputs))
    return OnnxNode(proto, opset, node.build, {**node.attributes, **attributes})


def _value(made: Results) -> Value:
    assert isinstance(made, Value)
    return made


@onnx_op("Pad", domain=DOMAIN)
def pad_by_tensor(
    b: Builder, node: OnnxNode, x: Value, pads: Value, value: Value | None = None
) -> Value:
    """The amounts may be a row of a matrix."""
    return _value(pad(b, _as(node, 18), x, b.reshape(pads, (product(pads.shape),)), value))


@onnx_op("Range", domain=DOMAIN)
def range_(
    b: Builder, node: OnnxNode, start: Value, limit: Value, step: Value | None = None
) -> Value:
    """The step is one if it is left out; all may have one dimension."""
    by = b.constant(1, "step", start.dtype) if step is None else step
    parts = [b.reshape(v, ()) for v in (start, limit, by)]
    return _value(arange(b, node, *parts))


@onnx_op("ExpandDims", domain=DOMAIN)
def expand_dims(b: Builder, node: OnnxNode, x: Value, along: Value) -> Value:
    """A new dimension of size one."""
    number = fixed(known_scalar(b, node, "axis", along))
    if number is None:
        node.decline("the axis depends on sizes")
    place = normal_axis(number, x.rank + 1)
    return b.reshape(x, [*x.shape[:place], 1, *x.shape[place:]])


@onnx_op("Unique", domain=DOMAIN)
def unique_in_order(b: Builder, node: OnnxNode, x: Value) -> Sequence[Value]:
    """Different elements in the order in which they come, which one each is, and how often."""
    made = unique(b, _as(node, 11, outputs=4, sorted=0), x)
    assert isinstance(made, list | tuple)
    found = [_value(v) for v in made]
    return [found[0], found[2], found[3]]


@onnx_op("Rfft", "Irfft", domain=DOMAIN)
def real_fourier(b: Builder, node: OnnxNode, x: Value) -> Value:
    """The transform of real numbers along the last dimension, or back."""
    if node.int("signal_ndim", 1) != 1 or node.int("normalized"):
        node.decline("several dimensions, or a scale")
    if not node.int("onesided", 1):
        node.decline("both sides of a spectrum")
    if node.op == "Rfft":
        column = b.reshape(x, (*x.shape, 1))
        return _value(dft(b, _as(node, 17, onesided=1, inverse=0, axis=x.rank - 1), column))
    found = _value(dft(b, _as(node, 17, onesided=1, inverse=1, axis=x.rank - 2), x))
    return b.reshape(found, found.shape[:-1])


@onnx_op("TorchEmbedding", domain=DOMAIN)
def embedding(
    b: Builder, node: OnnxNode, table: Value, places: Value, *_others: Value | None
) -> Value:
    """Rows of a table; the other inputs concern training."""
    return take(b, table, places, 0)


@onnx_op("UnfoldTensor", domain=DOMAIN)
def unfold(b: Builder, node: OnnxNode, x: Value) -> Value:
    """All slices of a size along a dimension, as a new last dimension."""
    along, size = normal_axis(node.int("dim", -1), x.rank), node.int("size")
    step = node.int("step", 1)
    count = tidy((x.shape[along] - size) // step + 1)
    shape = (*x.shape[:along], count, *x.shape[along + 1 :], tir.Const(size))

    def places(*o: tir.Expr) -> list[tir.Expr]:
        return [i * step + o[-1] if k == along else i for k, i in enumerate(o[:-1])]

    return b.remap(x, shape, places)


@onnx_op("IsAllFinite", domain=DOMAIN)
def is_all_finite(b: Builder, node: OnnxNode, *inputs: Value) -> Value:
    """Whether no element is infinite or NaN; or only not NaN, or only not infinite."""
    nan_only, infinite_only = node.int("isnan_only"), node.int("isinf_only")

    def fine(v: tir.Expr) -> tir.Expr:
        if nan_only:
            return v.eq(v)
        bounded = call("abs", v) < float("inf")
        return bounded | v.ne(v) if infinite_only else bounded

    found: Value | None = None
    for x in inputs:
        flat = b.reshape(b.map(fine, x, dtype=boolean), (product(x.shape),))
        every = b.reduce(tir.Fold.MIN, flat, (0,), keepdims=False)
        found = every if found is None else b.map(lambda p, q: p & q, found, every)
    assert found is not None, "the operator's definition asks for one"
    return found
