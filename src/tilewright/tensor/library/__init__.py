"""Ready tensor programs: what tests, examples and benchmarks schedule.

Every function returns a `Func` over plain loops, without any schedule. Sizes are numbers or
symbolic (`build.size("n")`). Sums of narrow types accumulate in `f32` or `i32`.
"""

from tilewright.tensor.library.attention import attend, attention
from tilewright.tensor.library.contraction import batched_matmul, matmul, matvec, outer_product
from tilewright.tensor.library.convolution import (
    conv1d,
    conv2d,
    conv3d,
    depthwise_conv2d,
    transposed_conv2d,
)
from tilewright.tensor.library.elementwise import (
    add,
    broadcast_add,
    convert,
    elementwise_chain,
    gelu,
    pad2d,
    stencil,
    transpose,
    unary,
)
from tilewright.tensor.library.pooling import average_pool2d, max_pool2d
from tilewright.tensor.library.reduction import (
    column_sum,
    cumulative_sum,
    layernorm,
    row_max,
    row_sum,
    softmax,
    total,
)

__all__ = [
    "add",
    "attend",
    "attention",
    "average_pool2d",
    "batched_matmul",
    "broadcast_add",
    "column_sum",
    "conv1d",
    "conv2d",
    "conv3d",
    "convert",
    "cumulative_sum",
    "depthwise_conv2d",
    "elementwise_chain",
    "gelu",
    "layernorm",
    "matmul",
    "matvec",
    "max_pool2d",
    "outer_product",
    "pad2d",
    "row_max",
    "row_sum",
    "softmax",
    "stencil",
    "total",
    "transpose",
    "transposed_conv2d",
    "unary",
]
