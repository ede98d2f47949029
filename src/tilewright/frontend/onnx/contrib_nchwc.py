"""Operators of the domain `com.microsoft.nchwc`, which onnxruntime writes when it saves a model.

Channels are stored in blocks of as many as a vector of the machine holds. Outside of memory that is
nothing: a value is what its shape [batch, channels, height, width] says, and only weights, whose
elements stand in the file in another order than their shape says, are put back. How many there are
to a block is not in the file. As for onnxruntime itself, it must be a file of such a machine.
"""

from __future__ import annotations

from typing import Final

from tilewright.frontend.onnx.contrib_layers import fused_conv
from tilewright.frontend.onnx.movement import cut
from tilewright.frontend.onnx.node import OnnxNode
from tilewright.frontend.onnx.pooling import (
    average_pool,
    global_average_pool,
    global_max_pool,
    max_pool,
)
from tilewright.frontend.onnx.registry import Results, onnx_op
from tilewright.frontend.onnx.resize import resize
from tilewright.frontend.onnx.windows import channels_first, channels_last
from tilewright.graph import Builder, Value
from tilewright.graph.sizes import fixed, tidy
from tilewright.target.host import present
from tilewright.tensor import ir as tir

__all__: list[str] = []

DOMAIN: Final = "com.microsoft.nchwc"
AGAIN: Final = "save the model again at the level ORT_ENABLE_EXTENDED"
OPSET: Final = 18
"""That of the standard in whose words resizing is written."""

onnx_op("MaxPool", domain=DOMAIN)(max_pool)
onnx_op("AveragePool", domain=DOMAIN)(average_pool)
onnx_op("GlobalMaxPool", domain=DOMAIN)(global_max_pool)
onnx_op("GlobalAveragePool", domain=DOMAIN)(global_average_pool)


def block_size() -> int:
    """Channels of a block on this machine."""
    arch, features = present()
    if arch != "x86_64":
        raise ValueError(f"blocks of channels are not known on this machine: {AGAIN}")
    return 16 if "avx512f" in features else 8


@onnx_op("ReorderInput", domain=DOMAIN)
def reorder_input(b: Builder, node: OnnxNode, x: Value) -> Value:
    """Channels in blocks; those that the last block lacks are zero."""
    first = channels_first(b, x) if node.int("channels_last") else x
    channels, block = first.shape[1], block_size()
    whole = tidy((channels + (block - 1)) // block * block)
    if tidy(channels) == whole:
        return first
    shape = (first.shape[0], whole, *first.shape[2:])
    return b.remap(first, shape, lambda *o: o, lambda *o: o[1] < channels)


@onnx_op("ReorderOutput", domain=DOMAIN)
def reorder_output(b: Builder, node: OnnxNode, x: Value) -> Value:
    """Channels one by one, without those that only fill the last block."""
    kept, known = node.int("channels"), fixed(x.shape[1])
    if known is not None and not 0 < kept <= known:
        raise ValueError(f"{kept} of {known} channels")
    first = cut(b, x, 1, tir.Const(0), tir.Const(kept))
    return channels_last(b, first) if node.int("channels_last") else first


@onnx_op("Conv", domain=DOMAIN)
def conv(
    b: Builder,
    node: OnnxNode,
    x: Value,
    w: Value,
    bias: Value | None = None,
    residual: Value | None = None,
) -> Results:
    """A convolution, plus a residual, then an activation."""
    return fused_conv(b, node, x, _in_order(b, node, w), bias, residual)


def _in_order(b: Builder, node: OnnxNode, w: Value) -> Value:
    """Weights [to, from, height, width] whose elements stand in blocks.

    Blocks are of the channels of results (`OIHWo`), or of those and of what is read (`OIHWio`): the
    first if an input has fewer channels than a block, or if each channel stands for itself.
    """
    block, sizes = block_size(), [fixed(d) for d in w.shape]
    if len(sizes) != 4 or None in sizes:
        raise ValueError("weights of unknown shape")
    to, from_, height, width = (size or 0 for size in sizes)
    if to % block or (from_ >= block and from_ % block):
        problem = f"weights {sizes} are not in blocks of {block}, as this machine has them"
        raise ValueError(f"{problem}: {AGAIN}")
    if from_ < block:
        rows = b.reshape(w, (to // block, from_, height, width, block))
        return b.reshape(b.transpose(rows, (0, 4, 1, 2, 3)), w.shape)
    tiles = b.reshape(w, (to // block, from_ // block, height, width, block, block))
    return b.reshape(b.transpose(tiles, (0, 5, 1, 4, 2, 3)), w.shape)


@onnx_op("Upsample", domain=DOMAIN)
def upsample(b: Builder, node: OnnxNode, x: Value) -> Results:
    """`Resize` by whole numbers."""
    attributes = {"nearest_mode": "floor", **node.attributes}
    return resize(b, OnnxNode(node.proto, OPSET, node.build, attributes), x)
