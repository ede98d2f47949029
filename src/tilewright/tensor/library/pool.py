"""Pooling over windows of channels-last data, as stages of a program: tensors in, a tensor out.

A border changes no result: it holds what a fold ignores. Averages divide by the number of elements
that count, which may differ from window to window.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.tensor import ir as tir
from tilewright.tensor.build import Reduction, Shape, Tensor, compute, fold_identity, reduce_axis
from tilewright.tensor.library.convolve import SPACE, WINDOW, Geometry
from tilewright.tensor.library.dims import accumulator, number, with_names

__all__ = ["average_pool", "global_average_pool", "pool", "with_partial_windows"]


def pool(
    x: Tensor,
    fold: tir.Fold,
    kernel: Sequence[int],
    strides: Sequence[int] = (),
    dilations: Sequence[int] = (),
    pads: Sequence[int] = (),
    name: str = "Y",
) -> Tensor:
    """Y[n, s…, c] = fold of X[n, s·stride + r·dilation - pad, c] over the window r…

    Sums of narrow types, and all folds of narrow floats, are taken in 32 bits, which is then the
    result's type.
    """
    geometry = Geometry(kernel, strides, dilations, pads)
    grows = fold in (tir.Fold.ADD, tir.Fold.MUL) or x.dtype.is_float
    dtype = accumulator(x.dtype) if grows else x.dtype
    source = geometry.bordered(x, f"{name}_border", fold_identity(fold, x.dtype).value)
    window, axes = geometry.axes()
    if not axes:  # windows of one element are a fold all the same
        axes = [reduce_axis(1, WINDOW[geometry.rank][0])]
        window = [axes[0], *window[1:]]

    def value(n: tir.Expr, *where: tir.Expr) -> Reduction:
        *places, c = where
        element = source[(n, *geometry.at(places, window), c)]
        return Reduction(
            fold, element.to(dtype) if element.dtype != dtype else element, tuple(axes)
        )

    shape = (x.shape[0], *geometry.windows(x.shape[1:-1]), x.shape[-1])
    return compute(name, shape, with_names(("n", *SPACE[geometry.rank], "c"), value))


def average_pool(
    x: Tensor,
    kernel: Sequence[int],
    strides: Sequence[int] = (),
    dilations: Sequence[int] = (),
    pads: Sequence[int] = (),
    *,
    count_border: Sequence[int] | None = None,
    name: str = "Y",
) -> Tensor:
    """The mean of each window.

    Without `count_border` only elements of X count; with it (as wide as `pads`, or narrower where
    `with_partial_windows` has made these wider) so much of the border counts as zeros.
    """
    geometry = Geometry(kernel, strides, dilations, pads)
    total = pool(x, tir.Fold.ADD, kernel, strides, dilations, pads, f"{name}_sum")
    counted = Geometry(kernel, strides, dilations, count_border or (0,) * (2 * len(kernel)))
    sizes = x.shape[1:-1]

    def value(n: tir.Expr, *where: tir.Expr) -> tir.Expr:
        count: tir.Expr = tir.Const(1)
        for d, at in enumerate(where[:-1]):
            count = count * _elements(geometry, counted, d, at, sizes[d])
        known = tir.int_value(count)
        read = total[(n, *where)]
        if known is not None:
            return read * (1.0 / known)
        return read / count.to(read.dtype)

    names = ("n", *SPACE[geometry.rank], "c")
    return compute(name, total.shape, with_names(names, value))


def _elements(
    geometry: Geometry, counted: Geometry, d: int, at: tir.Expr, size: tir.Expr
) -> tir.Expr:
    """How many elements of window number `at` count, along dimension `d`."""
    kernel, step = geometry.kernel[d], geometry.dilations[d]
    first = at * geometry.strides[d] - geometry.before[d]
    begin, end = -counted.before[d], size + counted.after[d]
    result: tir.Expr = tir.Const(kernel)
    if geometry.after[d] > counted.after[d]:
        result = tir.minimum((end - first + (step - 1)) // step, kernel)
    if geometry.before[d] > counted.before[d]:
        result = result - tir.maximum((begin - first + (step - 1)) // step, 0)
    return result


def with_partial_windows(
    sizes: Sequence[int],
    kernel: Sequence[int],
    strides: Sequence[int] = (),
    dilations: Sequence[int] = (),
    pads: Sequence[int] = (),
) -> tuple[int, ...]:
    """Pads that let a last window in which only begins inside of the data or before (ceil mode)."""
    geometry = Geometry(kernel, strides, dilations, pads)
    after: list[int] = []
    for d, size in enumerate(sizes):
        step, reach = geometry.strides[d], geometry.reach[d]
        wide = size + geometry.before[d] + geometry.after[d]
        count = -(-(wide - reach) // step) + 1
        if (count - 1) * step >= size + geometry.before[d]:
            count -= 1
        needed = (count - 1) * step + reach - size - geometry.before[d]
        after.append(max(0, needed))
    return (*geometry.before, *after)


def global_average_pool(x: Tensor, name: str = "Y") -> Tensor:
    """The mean of each channel, of shape (batch, 1…, channels); space may be symbolic."""
    rank = len(x.shape) - 2
    axes = [reduce_axis(s, r) for s, r in zip(x.shape[1:-1], WINDOW[rank], strict=True)]
    shape: Shape = (x.shape[0], *(1,) * rank, x.shape[-1])
    names = ("n", *SPACE[rank], "c")
    acc = accumulator(x.dtype)

    def add(n: tir.Expr, *where: tir.Expr) -> Reduction:
        return Reduction(tir.Fold.ADD, x[(n, *axes, where[-1])].to(acc), tuple(axes))

    total = compute(f"{name}_sum", shape, with_names(names, add))
    count: tir.Expr = tir.Const(1)
    for size in x.shape[1:-1]:
        count = count * size
    scale = 1.0 / number(count, acc)
    return compute(name, shape, with_names(names, lambda *at: total[at] * scale))
