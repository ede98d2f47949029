"""Convolutions: channels-last inside, a transpose on either side.

The bias is added to channels-last data, where it fuses with the sum; that transposes of neighbours
cancel is the work of a pass.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce
from typing import Final

from tilewright.dtypes import DType, i32
from tilewright.errors import GraphError
from tilewright.frontend.onnx.node import OnnxNode
from tilewright.frontend.onnx.registry import onnx_op
from tilewright.frontend.onnx.windows import (
    channels_first,
    channels_last,
    place_windows,
    require_near,
)
from tilewright.graph import Builder, Value
from tilewright.graph.guards import is_one
from tilewright.graph.ops.window import FIT, G030, Conv, ConvTranspose
from tilewright.graph.sizes import fixed, sized, tidy
from tilewright.tensor import ir as tir
from tilewright.tensor.build import call

__all__: list[str] = []


@onnx_op("Conv")
def conv(b: Builder, node: OnnxNode, x: Value, w: Value, bias: Value | None = None) -> Value:
    """A convolution in one to three dimensions."""
    y = _convolved(b, node, channels_last(b, x), w, x.dtype)
    return channels_first(b, _with_bias(b, y, bias))


def _convolved(b: Builder, node: OnnxNode, x: Value, w: Value, dtype: DType) -> Value:
    """Channels-last data through the windows of a node."""
    _, per_group, *kernel = _weights(node, w, x)
    windows = place_windows(node, x.shape[1:-1], kernel)
    groups = node.int("group", 1)
    x = _with_channels(b, x, per_group * groups)
    x, pads = windows.bordered(b, x)
    return b.add(Conv(windows.strides, windows.dilations, pads, groups, dtype), x, w)


def _weights(node: OnnxNode, w: Value, x: Value) -> tuple[int, ...]:
    shape = sized(w.shape)
    if shape is None:
        node.decline("weights of unknown shape")
    if len(shape) != x.rank or len(shape) < 3:
        facts = {"weights": ", ".join(map(str, shape)), "channels": x.type, "groups": "any"}
        raise GraphError(G030, facts, hint=FIT)
    return shape


def _with_channels(b: Builder, x: Value, channels: int) -> Value:
    """Weights tell the number of channels if data do not."""
    if fixed(x.shape[-1]) is not None:
        return x
    return b.reshape(x, [*x.shape[:-1], channels])


def _with_bias(b: Builder, y: Value, bias: Value | None) -> Value:
    if bias is None:
        return y
    count, filters = fixed(bias.shape[0]), fixed(y.shape[-1])
    if None not in (count, filters) and count != filters:
        raise ValueError(f"{count} biases for {filters} filters")
    return b.map(lambda v, c: v + c, y, bias)


MAX_STEPS: Final = 512
"""Steps of a transposed convolution whose windows do not cover all of them alike."""
MAX_PHASES: Final = 16
"""… and such that windows reach, each of which is compiled for itself; real ones have eight."""
MOST_ZEROS: Final = 16
"""How much larger windows may become, so that one kernel serves all steps."""


@onnx_op("ConvTranspose")
def conv_transpose(
    b: Builder, node: OnnxNode, x: Value, w: Value, bias: Value | None = None
) -> Value:
    """The gradient of a convolution by its data."""
    last = channels_last(b, x)
    channels, _, *kernel = _weights(node, w, x)
    rank = len(kernel)
    if rank > 3:
        node.decline(f"windows of {rank} dimensions")
    strides = node.ints("strides") or [1] * rank
    dilations = node.ints("dilations") or [1] * rank
    if min(*kernel, *strides, *dilations) < 1:
        raise ValueError("windows, strides and dilations are 1 or more")
    phases = _phases(kernel, strides, dilations)
    if phases > MAX_PHASES and not _can_be_even(kernel, strides, dilations):
        node.decline(f"strides of {strides}, {phases} steps of which are kernels of their own")
    if phases > 1 and math.prod(strides) > MAX_STEPS:
        node.decline(f"strides of {strides}, each step of which is looked at")
    extra = (node.ints("output_padding") or [0] * rank)[:rank]
    pads = _transposed_pads(node, last.shape[1:-1], kernel, strides, dilations, extra)
    require_near(*kernel, *strides, *dilations, *extra, *pads)
    if phases > MAX_PHASES:
        w, more = _evened(b, w, kernel, strides, dilations)
        dilations = [1] * rank
        pads = [*pads[:rank], *(p + m for p, m in zip(pads[rank:], more, strict=True))]
    extra = [e - min(end, 0) for e, end in zip(extra, pads[rank:], strict=True)]
    pads = [*pads[:rank], *(max(end, 0) for end in pads[rank:])]
    if min(pads) < 0:
        node.decline("a border that is cut off has a negative width")
    op = ConvTranspose(
        tuple(strides), tuple(dilations), tuple(pads), tuple(extra), node.int("group", 1), x.dtype
    )
    y = b.add(op, _with_channels(b, last, channels), w)
    return channels_first(b, _with_bias(b, y, bias))


def _phases(kernel: Sequence[int], strides: Sequence[int], dilations: Sequence[int]) -> int:
    """Steps between two elements whose windows differ, each of which is a kernel of its own."""
    lines = list(zip(kernel, strides, dilations, strict=True))
    if all(k % s == 0 and d == 1 for k, s, d in lines):
        return 1  # all of them have as many elements of the window: one kernel
    return max(math.prod(min(k, s // math.gcd(s, d)) for k, s, d in lines), 2)


def _can_be_even(kernel: Sequence[int], strides: Sequence[int], dilations: Sequence[int]) -> bool:
    lines = zip(kernel, strides, dilations, strict=True)
    return math.prod(_even(*line) for line in lines) <= MOST_ZEROS * math.prod(kernel)


def _even(kernel: int, stride: int, dilation: int) -> int:
    """Elements of a window without gaps that covers all steps alike."""
    reach = (kernel - 1) * dilation + 1
    return reach + -reach % stride


def _evened(
    b: Builder, w: Value, kernel: Sequence[int], strides: Sequence[int], dilations: Sequence[int]
) -> tuple[Value, list[int]]:
    """Weights with zeros between and behind them, so that each step has as many; how many behind.

    Infinite data then give NaN where they are multiplied with them, as in other algorithms.
    """
    lines = list(zip(kernel, strides, dilations, strict=True))
    sizes = [_even(*line) for line in lines]

    def inside(*o: tir.Expr) -> tir.Expr:
        parts = ((i < k * d) & (i % d).eq(0) for i, (k, _, d) in zip(o[2:], lines, strict=True))
        return reduce(tir.BitAnd, parts)

    def places(*o: tir.Expr) -> tuple[tir.Expr, ...]:
        return (*o[:2], *(i // d for i, d in zip(o[2:], dilations, strict=True)))

    shape: list[int | tir.Expr] = [*w.shape[:2], *sizes]
    more = [size - (k - 1) * d - 1 for size, (k, _, d) in zip(sizes, lines, strict=True)]
    return b.remap(w, shape, places, inside=inside), more


def _transposed_pads(
    node: OnnxNode,
    space: Sequence[tir.Expr],
    kernel: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    extra: Sequence[int],
) -> list[int]:
    """How much is cut off: given, or what the wanted size leaves over."""
    rank, mode = len(kernel), node.string("auto_pad", "NOTSET")
    wanted: Sequence[int | tir.Expr] | None = node.ints("output_shape")
    if wanted is None and not mode.startswith("SAME"):
        return (node.ints("pads") if mode != "VALID" else None) or [0] * (2 * rank)
    if wanted is None:
        wanted = [n * s for n, s in zip(space, strides, strict=True)]
    begins: list[int] = []
    ends: list[int] = []
    for d, size in enumerate(wanted[-rank:]):
        reach = (kernel[d] - 1) * dilations[d] + 1
        total = fixed(tidy((space[d] - 1) * strides[d] + (extra[d] + reach) - size))
        if total is None:
            node.decline("output_shape with a symbolic size")
        small, large = total // 2, total - total // 2
        begins.append(small if mode == "SAME_UPPER" else large)
        ends.append(large if mode == "SAME_UPPER" else small)
    return begins + ends


@onnx_op("ConvInteger")
def conv_integer(
    b: Builder,
    node: OnnxNode,
    x: Value,
    w: Value,
    x_zero: Value | None = None,
    w_zero: Value | None = None,
) -> Value:
    """A convolution of small integers, without their zero points, summed up in 32 bits."""
    data = _centred(b, channels_last(b, x), x_zero)
    return channels_first(b, _convolved(b, node, data, _centred(b, w, w_zero), i32))


@onnx_op("QLinearConv")
def qlinear_conv(
    b: Builder,
    node: OnnxNode,
    x: Value,
    x_scale: Value,
    x_zero: Value,
    w: Value,
    w_scale: Value,
    w_zero: Value,
    y_scale: Value,
    y_zero: Value,
    bias: Value | None = None,
) -> Value:
    """A convolution of quantised data: exact sums, scaled and rounded to nearest even once."""
    data = _centred(b, channels_last(b, x), x_zero)
    sums = _with_bias(b, _convolved(b, node, data, _centred(b, w, w_zero), i32), bias)
    low, high = y_zero.dtype.min_value, y_zero.dtype.max_value
    scale = b.map(lambda p, q, r: p * q / r, x_scale, w_scale, y_scale)

    def requantised(v: tir.Expr, s: tir.Expr, zero: tir.Expr) -> tir.Expr:
        whole = call("round", v.to(s.dtype) * s) + zero.to(s.dtype)
        return tir.minimum(tir.maximum(whole, low), high).to(y_zero.dtype)

    return channels_first(b, b.map(requantised, sums, scale, y_zero))


def _centred(b: Builder, x: Value, zero: Value | None) -> Value:
    """Integers minus their zero point; weights may have one for each filter."""
    if zero is None or _is_zero(b, zero):
        return x
    if zero.rank == 1 and is_one(b, zero.shape[0], "zero points"):
        zero = b.reshape(zero, ())
    elif zero.rank == 1:
        zero = b.reshape(zero, [zero.shape[0], *(1 for _ in range(x.rank - 1))])
    return b.map(lambda v, z: v.to(i32) - z.to(i32), x, zero)


def _is_zero(b: Builder, zero: Value) -> bool:
    numbers = b.numbers(zero)
    return numbers is not None and not any(numbers)
