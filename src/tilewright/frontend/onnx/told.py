"""Shapes that only data tells: how many elements there are is counted, and they are gathered.

    Expand(x, n)   becomes   x[min((0, 1, …, n - 1), len(x) - 1)]

How many there are becomes a size (`Count`), which holds wherever the result goes: nothing is
compiled for values. A run in which a shape makes no sense counts to -1, and is refused (C025). Of a
shape that was joined of parts, those that are known stay known.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from tilewright.dtypes import f64, i64
from tilewright.frontend.onnx.conversions import converted
from tilewright.frontend.onnx.node import OnnxNode
from tilewright.frontend.onnx.taking import take
from tilewright.graph import Builder, Value
from tilewright.graph.folding import MAX_ELEMENTS, MAX_RANK
from tilewright.graph.ops import Concat
from tilewright.graph.ops.count import Count
from tilewright.graph.sizes import fixed, product
from tilewright.tensor import ir as tir
from tilewright.tensor.build import select

__all__ = ["REFUSED", "Told", "along", "counted", "element", "elements"]
__all__ += ["expanded", "padded", "reshaped", "tiled"]

Told = tir.Expr | Value
"""A number that is known before a run, or a vector of one element that a run computes."""

NEARBY: Final = 64
"""Nodes among which the one that joined a shape is looked for: it stands right in front."""

REFUSED: Final = -1
"""A length that no tensor has."""


def elements(b: Builder, node: OnnxNode, name: str, given: Value) -> list[Told]:
    """The elements of a vector, each known or computed; declined if nobody knows how many."""
    parts = _parts(b, given)
    counts = [_count(part) for part in parts]
    if None in counts:
        node.decline(f"{name} depend on data, and so does how many there are")
    if sum(n for n in counts if n is not None) > 2 * MAX_RANK:
        raise ValueError(f"more {name} than there can be dimensions")
    return [e for part in parts for e in b.integers(part) or _computed(b, part)]


def _parts(b: Builder, given: Value) -> Sequence[Value]:
    """What a vector was joined of, if it was."""
    if b.integers(given) is not None:
        return (given,)
    near = (n for n in reversed(b.nodes[-NEARBY:]) if n.outputs == (given,))
    made = next((n for n in near if isinstance(n.op, Concat)), None)
    return (given,) if made is None else made.inputs


def _count(part: Value) -> int | None:
    return fixed(part.shape[0]) if part.rank == 1 else None


def _computed(b: Builder, part: Value) -> list[Told]:
    return [element(b, part, k) for k in range(_count(part) or 0)]


def element(b: Builder, vector: Value, k: int) -> Value:
    """An element of a vector of integers, as a vector of its own."""
    return converted(b, b.remap(vector, (1,), lambda _: (k,)), i64)


def counted(b: Builder, length: Value) -> Value:
    """The numbers below one that data tells; a run in which it is not a single one is refused."""
    single = b.reshape(converted(b, length, i64), ())
    if single not in b.counted:  # tensors that one number tells about have one size
        b.counted[single] = b.add(Count(tir.Var("length")), single)
    return b.counted[single]


def along(b: Builder, numbers: Value, k: int, rank: int) -> Value:
    """A vector as dimension k of a tensor that has one element along all others."""
    return b.reshape(numbers, [*(1,) * k, *numbers.shape, *(1,) * (rank - k - 1)])


def expanded(b: Builder, x: Value, dims: Sequence[Told]) -> tuple[Value, list[tir.Expr]]:
    """Broadcast to the computed ones among `dims`; gives also the shape that is then known."""
    rank = max(x.rank, len(dims))
    x = b.reshape(x, [*(1,) * (rank - x.rank), *x.shape])
    known: list[tir.Expr] = []
    for k, wanted in enumerate(dims, rank - len(dims)):
        if isinstance(wanted, Value):
            x = _spread(b, x, k, wanted)
        known.append(x.shape[k] if isinstance(wanted, Value) else wanted)
    return x, known


def _spread(b: Builder, x: Value, k: int, wanted: Value) -> Value:
    dim = x.shape[k]

    def length(n: tir.Expr) -> tir.Expr:
        fits = dim.eq(1) | n.eq(dim)
        return select(n.eq(1), dim, select(fits, n, REFUSED))

    numbers = counted(b, b.map(length, wanted, dtype=i64))
    return take(b, x, b.map(lambda i: tir.minimum(i, dim - 1), numbers, dtype=i64), k)


def tiled(b: Builder, x: Value, k: int, times: Value) -> Value:
    """Dimension k again and again, as often as data says."""
    dim = x.shape[k]

    def length(n: tir.Expr) -> tir.Expr:
        possible = (n >= 0) & (n <= MAX_ELEMENTS // tir.maximum(dim, 1))
        return select(possible, n * dim, REFUSED)

    numbers = counted(b, b.map(length, times, dtype=i64))
    return take(b, x, b.map(lambda i: i % dim, numbers, dtype=i64), k)


Outside = Callable[[tir.Expr, tir.Expr], tir.Expr]
"""Which element of so many stands for a place in front of the first or behind the last one."""


def padded(b: Builder, x: Value, k: int, ends: tuple[Told, Told], outside: Outside | None) -> Value:
    """Borders of dimension k as wide as data says; a negative one is cut away first.

    Without `outside`, what is outside is the last element of the dimension, and else nothing is.
    """
    dim = x.shape[k] if outside is not None else x.shape[k] - 1
    before, after = (b.sizes([e]) if isinstance(e, tir.Expr) else e for e in ends)

    def left(low: tir.Expr, high: tir.Expr) -> tir.Expr:
        """How many elements are not cut away."""
        return dim + tir.minimum(low, 0) + tir.minimum(high, 0)

    def length(low: tir.Expr, high: tir.Expr) -> tir.Expr:
        possible = left(low, high) >= 0
        for amount in (low, high):
            possible = possible & (amount >= -MAX_ELEMENTS) & (amount <= MAX_ELEMENTS)
        return select(possible, dim + low + high, REFUSED)

    def place(i: tir.Expr, low: tir.Expr, high: tir.Expr) -> tir.Expr:
        at, size = i - tir.maximum(low, 0), left(low, high)
        first = tir.maximum(-low, 0)
        if outside is not None:
            return first + outside(at, size)
        return select((at >= 0) & (at < size), first + at, dim)

    numbers = counted(b, b.map(length, before, after, dtype=i64))
    return take(b, x, b.map(place, numbers, before, after, dtype=i64), k)


def reshaped(b: Builder, x: Value, dims: Sequence[Told], *, allow_zero: bool) -> Value:
    """The same elements in another shape: 0 keeps a dimension, -1 takes what is left."""
    size, rank = product(x.shape), len(dims)
    kept = [0 if allow_zero or k >= x.rank else x.shape[k] for k in range(rank)]
    dims = [
        tir.as_index(keep) if isinstance(d, tir.Expr) and fixed(d) == 0 else d
        for d, keep in zip(dims, kept, strict=True)
    ]
    wanted = [d for d in dims if isinstance(d, Value)]

    def length(at: int) -> Callable[..., tir.Expr]:
        def resolved(*given: tir.Expr) -> tir.Expr:
            left = iter(given)
            own = [
                d if isinstance(d, tir.Expr) else select((w := next(left)).eq(0), keep, w)
                for d, keep in zip(dims, kept, strict=True)
            ]
            rest, wide = tir.as_expr(1, i64), tir.as_expr(1, f64)
            several: tir.Expr = tir.const(0, i64)
            for dim in own:
                factor = select(dim.eq(-1), 1, dim)
                rest, wide = rest * factor, wide * factor.to(f64)
                several = several + dim.eq(-1).to(i64)
            missing = size // tir.maximum(rest, 1)
            all_there = select(several.eq(1), missing * rest, rest).eq(size)
            fits = all_there & (several <= 1) & (rest >= several) & (wide < float(MAX_ELEMENTS))
            return select(fits, select(own[at].eq(-1), missing, own[at]), REFUSED)

        return resolved

    numbers = [
        b.tabulate((dim,), lambda i: i)
        if isinstance(dim, tir.Expr) and fixed(dim) != -1
        else counted(b, b.map(length(k), *wanted, dtype=i64))
        for k, dim in enumerate(dims)
    ]

    def place(*o: tir.Expr) -> tir.Expr:
        at: tir.Expr = tir.const(0, i64)
        for i, own in zip(o, numbers, strict=True):
            at = at * own.shape[0] + i
        return at

    spread = (along(b, own, k, rank) for k, own in enumerate(numbers))
    return take(b, b.reshape(x, (size,)), b.map(place, *spread, dtype=i64), 0)
