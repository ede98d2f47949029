"""`MaxUnpool`: maxima back at the places where they were found, zeros around them."""

from __future__ import annotations

from tilewright.frontend.onnx.node import OnnxNode
from tilewright.frontend.onnx.registry import onnx_op
from tilewright.frontend.onnx.shapes import known_integers
from tilewright.frontend.onnx.windows import require_near
from tilewright.graph import Builder, Value
from tilewright.graph.ops import axis, picked
from tilewright.graph.ops.scatter import Scatter
from tilewright.graph.sizes import product, same_shape
from tilewright.tensor import ir as tir

__all__: list[str] = []


@onnx_op("MaxUnpool")
def max_unpool(
    b: Builder, node: OnnxNode, x: Value, places: Value, shape: Value | None = None
) -> Value:
    """Places count elements of the image that attributes say; the result may be larger."""
    kernel = node.ints("kernel_shape") or []
    rank = len(kernel)
    strides = node.ints("strides") or [1] * rank
    pads = node.ints("pads") or [0] * (2 * rank)
    require_near(*kernel, *strides, *pads)
    space = [
        (x.shape[2 + d] - 1) * strides[d] + (kernel[d] - pads[d] - pads[rank + d])
        for d in range(rank)
    ]
    image = [*x.shape[:2], *space]
    zeros = b.expand(b.constant(0, "zero", x.dtype), (product(image),))
    count = product(x.shape)
    flat, at = b.reshape(x, (count,)), b.reshape(places, (count,))
    filled = b.add(Scatter(((2, (axis(0),)),), (picked(0),)), zeros, flat, at)
    found = b.reshape(filled, image)
    wanted = known_integers(b, node, "output_shape", shape)
    if wanted is None or same_shape(wanted, found.shape):
        return found

    def inside(*o: tir.Expr) -> tir.Expr:
        within: tir.Expr = tir.TRUE
        for i, size in zip(o, found.shape, strict=True):
            within = within & (i < size)
        return within

    return b.remap(found, wanted, lambda *o: o, inside=inside)
