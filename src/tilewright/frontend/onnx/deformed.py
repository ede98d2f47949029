"""`DeformConv`: a convolution whose windows are bent: each tap is moved by offsets that data says.

The elements under all taps are interpolated into one tensor, channels last, and a contraction with
the weights follows.
"""

from __future__ import annotations

from itertools import product as pairs

from tilewright.dtypes import i64
from tilewright.frontend.onnx.conversions import converted
from tilewright.frontend.onnx.movement import cut
from tilewright.frontend.onnx.node import OnnxNode
from tilewright.frontend.onnx.reductions import widened
from tilewright.frontend.onnx.registry import onnx_op
from tilewright.frontend.onnx.windows import require_near
from tilewright.graph import Builder, Value
from tilewright.graph.ops import axis, picked
from tilewright.graph.ops.gather import Gather
from tilewright.graph.sizes import fixed
from tilewright.tensor import ir as tir
from tilewright.tensor.build import call, select

__all__: list[str] = []

Tap = tuple[Value, Value]
"""Along one dimension: where the image is read, and with which weight."""


@onnx_op("DeformConv")
def deform_conv(
    b: Builder,
    node: OnnxNode,
    x: Value,
    weights: Value,
    offset: Value,
    bias: Value | None = None,
    mask: Value | None = None,
) -> Value:
    """Two dimensions of space; offsets and masks are shared by the channels of a group."""
    if x.rank != 4:
        node.decline(f"{x.rank - 2} dimensions of space")
    filters, per_group, *window = (fixed(d) or 0 for d in weights.shape)
    if not filters or not per_group or not all(window):
        node.decline("weights of unknown size")
    groups, bent = node.int("group", 1), node.int("offset_group", 1)
    taps, channels = window[0] * window[1], per_group * groups
    if channels % bent or filters % groups:
        node.decline(f"{channels} channels in {bent} groups of offsets")
    batch, _, *space = offset.shape
    moved = b.reshape(widened(b, offset), (batch, bent, taps, 2, *space))
    moved = b.transpose(moved, (0, 4, 5, 2, 1, 3))
    ends = [_taps(b, node, moved, d, window, x.shape[2 + d]) for d in range(2)]
    image = b.transpose(widened(b, x), (0, 2, 3, 1))
    columns = _columns(b, image, ends, channels // bent)
    if mask is not None:
        shown = b.reshape(widened(b, mask), (batch, bent, taps, *space, 1))
        shown = b.transpose(shown, (0, 3, 4, 2, 1, 5))
        columns = b.map(lambda v, m: v * m, columns, shown)
    columns = b.reshape(columns, (batch, *space, taps, groups, per_group))
    table = b.reshape(widened(b, weights), (groups, filters // groups, per_group, taps))
    found = b.contract("nyxkgc", "gock", "nyxgo", columns, table)
    found = b.reshape(found, (batch, *space, filters))
    if bias is not None:
        found = b.map(lambda v, w: v + w, found, widened(b, bias))
    return converted(b, b.transpose(found, (0, 3, 1, 2)), x.dtype)


def _taps(
    b: Builder, node: OnnxNode, moved: Value, d: int, window: list[int], size: tir.Expr
) -> list[Tap]:
    """The elements before and behind each tap along dimension d; those outside have no weight."""
    stride = (node.ints("strides") or [1, 1])[d]
    gap = (node.ints("dilations") or [1, 1])[d]
    pad = (node.ints("pads") or [0, 0, 0, 0])[d]
    require_near(stride, gap, pad)
    shape = [1] * 5
    shape[3] = window[0] * window[1]
    dims = [tir.as_index(s) for s in shape]
    dims[1 + d] = moved.shape[1 + d]

    def start(*o: tir.Expr) -> tir.Expr:
        tap: tir.Expr = o[3] // window[1] if d == 0 else o[3] % window[1]
        begin: tir.Expr = o[1 + d] * stride + tap * gap
        return begin - int(pad)

    base = b.tabulate(dims, start)
    by = b.reshape(cut(b, moved, 5, tir.Const(d), tir.Const(1)), moved.shape[:5])
    at = b.map(lambda v, s: s.to(v.dtype) + v, by, base)
    limit = size.to(at.dtype)

    def tap(behind: int) -> Tap:
        def near(v: tir.Expr) -> tir.Expr:
            """Far outside all places are alike; NaN is outside, too."""
            held = select(v.eq(v), v, tir.const(-2, v.dtype))
            return call("floor", tir.maximum(tir.minimum(held, limit), -2.0)) + float(behind)

        def weight(v: tir.Expr) -> tir.Expr:
            part = v - call("floor", v)
            share = part if behind else 1.0 - part
            inside = (near(v) >= 0.0) & (near(v) < limit) & v.eq(v)
            return select(inside, share, tir.const(0, v.dtype))

        def place(v: tir.Expr) -> tir.Expr:
            return tir.maximum(tir.minimum(near(v).to(i64), size - 1), 0)

        return b.map(place, at, dtype=i64), b.map(weight, at)

    return [tap(0), tap(1)]


def _columns(b: Builder, image: Value, ends: list[list[Tap]], width: int) -> Value:
    """(batch, height, width, tap, group, channel of it): what lies under all taps."""
    shape = (*ends[0][0][0].shape, tir.Const(width))
    o = [axis(k) for k in range(6)]
    reads = tuple((1 + k, tuple(o[:5])) for k in range(2))
    op = Gather(shape, reads, (o[0], picked(0), picked(1), o[4] * width + o[5]))
    parts: list[Value] = []
    for (y, above), (x, left) in pairs(*ends):
        share = b.reshape(b.map(lambda v, w: v * w, above, left), (*above.shape, 1))
        parts += [b.add(op, image, y, x), share]

    def total(*v: tir.Expr) -> tir.Expr:
        terms = [
            select(share.eq(0.0), tir.const(0, p.dtype), p * share)
            for p, share in zip(v[::2], v[1::2], strict=True)
        ]
        return sum(terms[1:], terms[0])

    return b.map(total, *parts)
