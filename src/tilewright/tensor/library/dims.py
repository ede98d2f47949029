"""Small pieces that the programs of the library share: sizes, accumulator types, axis names."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence

from tilewright.dtypes import DType, f32, i32
from tilewright.tensor import ir as tir
from tilewright.tensor.build import Reduction, Tensor, compute, select

__all__ = [
    "Dim",
    "accumulator",
    "last",
    "line_multiple",
    "number",
    "padded",
    "rounded_up",
    "stored",
    "turned",
    "with_names",
]

Dim = int | tir.Expr

# Filters that leave most of a vector empty, and a line of places that is long enough instead.
_FEW = 4
_LINE = 16


def accumulator(dtype: DType) -> DType:
    """The type in which sums of `dtype` are taken: at least 32 bits."""
    if dtype.bits >= 32:
        return dtype
    return f32 if dtype.is_float else i32


def number(value: Dim, dtype: DType) -> tir.Expr:
    """A size as a value of `dtype`."""
    return value.to(dtype) if isinstance(value, tir.Expr) else tir.const(value, dtype)


def with_names(
    names: Sequence[str], value: Callable[..., tir.Expr | Reduction]
) -> Callable[..., tir.Expr | Reduction]:
    """`value` with the given parameter names, which become the names of its loops."""

    def named(*where: tir.Expr) -> tir.Expr | Reduction:
        return value(*where)

    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    named.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [inspect.Parameter(name, kind) for name in names]
    )
    return named


def stored(name: str, tensor: Tensor, dtype: DType, names: Sequence[str]) -> Tensor:
    """`tensor` converted to `dtype` by a block of its own; itself if it has that type."""
    if tensor.dtype == dtype:
        return tensor
    return compute(name, tensor.shape, with_names(names, lambda *i: tensor[i].to(dtype)))


def is_narrow(filters: Dim, places: Dim) -> bool:
    """Whether filters are too few to fill a vector, but the places of a line are not."""
    few, line = tir.int_value(tir.as_index(filters)), tir.int_value(tir.as_index(places))
    return few is not None and few <= _FEW and line is not None and line >= _LINE


def line_multiple(lines: int | None, filters: Dim, places: Dim) -> int:
    """What a line of places is rounded up to a multiple of; 0 if filters are in vectors instead.

    If nothing is said, lines are as they are, for few filters.
    """
    return int(is_narrow(filters, places)) if lines is None else lines


def rounded_up(size: tir.Expr, multiple: int) -> tir.Expr:
    """The least multiple that is no less; a size that is not known stays what it is."""
    known = tir.int_value(size)
    return size if known is None else tir.Const(-(-known // multiple) * multiple)


def turned(name: str, tensor: Tensor, names: Sequence[str]) -> Tensor:
    """Channels-last data with their channels behind the batch."""
    batch, *space, channels = tensor.shape
    n, *at, c = names
    return compute(
        name,
        (batch, channels, *space),
        with_names((n, c, *at), lambda n, c, *at: tensor[(n, *at, c)]),
        tensor.dtype,
    )


def last(name: str, tensor: Tensor, space: Sequence[tir.Expr], names: Sequence[str]) -> Tensor:
    """The inverse of `turned`, of so much of its space: channels innermost."""
    return compute(
        name,
        (tensor.shape[0], *space, tensor.shape[1]),
        with_names(names, lambda n, *rest: tensor[(n, rest[-1], *rest[:-1])]),
        tensor.dtype,
    )


def padded(
    name: str,
    tensor: Tensor,
    before: Sequence[int],
    after: Sequence[int],
    names: Sequence[str],
    fill: float = 0,
) -> Tensor:
    """`tensor` with a border of `fill`; itself if the border is empty.

    Both sides of a select are evaluated, so the index inside is kept within the tensor.
    """
    if not any((*before, *after)):
        return tensor
    shape = [d + b + a for d, b, a in zip(tensor.shape, before, after, strict=True)]

    def value(*where: tir.Expr) -> tir.Expr:
        inside: tir.Expr | None = None
        index: list[tir.Expr] = []
        for at, size, low, high in zip(where, tensor.shape, before, after, strict=True):
            moved = at - low
            for needed, cond in ((low, at >= low), (high, at < size + low)):
                if needed:
                    inside = cond if inside is None else inside & cond
            moved = tir.maximum(moved, 0) if low else moved
            index.append(tir.minimum(moved, size - 1) if high else moved)
        assert inside is not None
        read = tensor[tuple(index)]
        return select(inside, read, tir.const(fill, read.dtype)).to(tensor.dtype)

    return compute(name, shape, with_names(names, value), tensor.dtype)
