"""Arithmetic on dimensions: one canonical form, equality, broadcasting.

A size may be zero in a run, so `max(batch - 1, 0)` stays what it is: only what something is divided
by is at least one, as there is no result otherwise. Kernels know more: they run where their result
has elements (`runtime` leaves out the others), and `filled` says what follows from that.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from math import prod
from typing import Final

from tilewright.errors import Code, GraphError
from tilewright.graph.folding import TooLarge
from tilewright.graph.ir import Shape, Value
from tilewright.tensor import ir as tir
from tilewright.tensor.arith import Analyzer
from tilewright.tensor.printer import print_node
from tilewright.tensor.visit import free_vars, walk

__all__ = [
    "as_shape",
    "broadcast",
    "bytes_of",
    "count",
    "dims_equal",
    "evaluate_size",
    "filled",
    "fixed",
    "never_exceeds",
    "product",
    "total",
]
__all__ += [
    "forget_sizes",
    "is_one_or_none",
    "length_of",
    "same_shape",
    "sized",
    "tidy",
    "variables",
]

G001 = Code("G001", "shapes {shapes} cannot be broadcast together")

ZERO: Final = tir.Const(0)

MAX_WORK: Final = 256
"""Operations of a size other than sums and products. Those of networks have a dozen."""
MAX_PARTS: Final = 4096
"""Operations and operands of a size: the sum of as many sizes as are ever joined."""
MAX_LONG: Final = 3 << 14
"""Sizes in the long dimensions of all results of a graph: more than a hundred, joined one by one,
or as many parts of a tensor that several hundred nodes then deal with."""
NEW_LONG: Final = 4
"""How often those of a dimension count that no result before had: all its forms are found then."""
LONG: Final = 32
"""Sizes that a dimension depends on if it is long; those of networks do on a handful."""
MAX_KEPT: Final = 1 << 18
"""Operations and operands of the sizes whose canonical forms are kept, for each generation."""
MAX_LITERAL: Final = (1 << 63) - 1
"""Numbers in a size: it is computed with 64 bits."""


def variables(exprs: Iterable[tir.Expr]) -> tuple[tir.Var, ...]:
    """The size variables in expressions, in order of first appearance."""
    return tuple(dict.fromkeys(var for expr in exprs for var in _variables(expr)))


@lru_cache(maxsize=256)
def _variables(expr: tir.Expr) -> tuple[tir.Var, ...]:
    return tuple(dict.fromkeys(part for part in walk(expr) if isinstance(part, tir.Var)))


class _Tidied:
    """Canonical forms of dimensions that were asked for last: a generation of them, and another.

    Bounded by how long they are together: sizes of models that are gone stay here. Threads that
    meet may lose an entry, and nothing else.
    """

    def __init__(self) -> None:
        self._new: dict[tir.Expr, tir.Expr] = {}
        self._old: dict[tir.Expr, tir.Expr] = {}
        self._length = 0

    def get(self, expr: tir.Expr) -> tir.Expr | None:
        found = self._new.get(expr)
        return self._old.get(expr) if found is None else found

    def keep(self, expr: tir.Expr, made: tir.Expr, length: int) -> None:
        self._new[expr] = made
        self._length += length
        if self._length > MAX_KEPT:
            self.turn()

    def turn(self) -> None:
        """Begin another generation: what nobody asks for meanwhile goes with the next turn."""
        self._new, self._old, self._length = {}, self._new, 0


_TIDIED: Final = _Tidied()


def forget_sizes() -> None:
    """Let go of the sizes of a model that has been compiled: another one has others."""
    _TIDIED.turn()


def tidy(expr: tir.Expr) -> tir.Expr:
    """The canonical form of a dimension."""
    if isinstance(expr, tir.Const | tir.Var):
        return expr
    found = _TIDIED.get(expr)
    if found is None:
        length, work = _measured(expr)
        analyzer = Analyzer()
        if work:  # a sum of products is the same whatever the values of sizes are
            divisors = {var for divisor in _divisors(expr) for var in free_vars(divisor)}
            known = (tir.Const(int(var in divisors)) <= var for var in free_vars(expr))
            analyzer = analyzer.assume(*known)
        found = analyzer.simplify(expr)
        _TIDIED.keep(expr, found, length)
    return found


def _divisors(expr: tir.Expr) -> Iterator[tir.Expr]:
    for part in walk(expr):
        if isinstance(part, tir.FloorDiv | tir.FloorMod) and not isinstance(part.b, tir.Const):
            yield part.b


def length_of(expr: tir.Expr) -> int:
    """Operations and operands of a size; `TooLarge` for many, and for numbers beyond 64 bits."""
    return _measured(expr)[0]


def _measured(expr: tir.Expr) -> tuple[int, int]:
    """Operations and operands of a size, and how many of them are no sums and products.

    Expressions share their parts, and are followed as trees: twenty nodes of a model can make one
    of a million operations. Sums are long where many tensors are joined, and easy to deal with.
    """
    work = parts = 0
    for parts, part in enumerate(walk(expr), 1):
        if isinstance(part, tir.Const):
            if not -MAX_LITERAL <= part.value <= MAX_LITERAL:
                raise TooLarge(f"a size is computed with {part.value}")
        elif not isinstance(part, tir.Var | tir.Add | tir.Sub | tir.Mul):
            work += 1
        if work > MAX_WORK or parts > MAX_PARTS:
            raise TooLarge("a size depends on others in too many steps")
    return parts, work


def as_shape(dims: Iterable[int | tir.Expr]) -> Shape:
    """Dimensions in canonical form."""
    return tuple(tidy(tir.as_index(d)) for d in dims)


def fixed(expr: tir.Expr) -> int | None:
    """The number if a dimension is one."""
    return tir.int_value(expr)


def sized(shape: Iterable[tir.Expr]) -> tuple[int, ...] | None:
    """The shape as numbers; None if a dimension is symbolic."""
    dims = [tir.int_value(d) for d in shape]
    return None if None in dims else tuple(d for d in dims if d is not None)


def product(dims: Iterable[tir.Expr]) -> tir.Expr:
    """How many elements a shape has."""
    total: tir.Expr = tir.Const(1)
    for dim in dims:
        total = total * dim
    return tidy(total)


def total(dims: Sequence[tir.Expr]) -> tir.Expr:
    """The sum of dimensions, of which there may be very many."""
    parts = [*dims]
    while len(parts) > 1:
        ends = itertools.zip_longest(parts[::2], parts[1::2])
        parts = [a if b is None else a + b for a, b in ends]
    return tidy(parts[0]) if parts else tir.Const(0)


def count(shape: Iterable[tir.Expr], symbolic: int = 64) -> int:
    """A number of elements for estimates; a symbolic dimension counts as `symbolic`."""
    dims = [1 if is_one_or_none(d) else tir.int_value(d) for d in shape]
    return prod(symbolic if d is None else d for d in dims)


@lru_cache(maxsize=512)
def is_one_or_none(dim: tir.Expr) -> bool:
    """Whether a dimension is symbolic and never more than one: that of the last element."""
    chooses = any(
        isinstance(part, tir.Min | tir.Max | tir.Select | tir.FloorMod) for part in walk(dim)
    )
    return chooses and never_exceeds(dim, tir.Const(1), ())


def bytes_of(value: Value) -> int:
    """The size of a value for estimates, of a batch of one where that is not known."""
    return count(value.shape, symbolic=1) * value.dtype.size_bytes


def dims_equal(a: tir.Expr, b: tir.Expr) -> bool:
    """Whether two dimensions are the same for all sizes."""
    return a is b or tidy(a) == tidy(b) or tir.int_value(tidy(a - b)) == 0


@lru_cache(maxsize=512)
def never_exceeds(a: tir.Expr, b: tir.Expr, shape: Shape) -> bool:
    """Whether a ≤ b for all sizes with which a tensor of this shape has elements.

    Sizes that are not in the shape may be zero.
    """
    if a is b:
        return True
    small, large = tir.int_value(a), tir.int_value(b)
    if small is not None and large is not None:
        return small <= large
    return filled(shape, variables([a, b])).prove(a <= b) is True


def filled(shape: Shape, sizes: Iterable[tir.Var]) -> Analyzer:
    """What is known of these sizes where a tensor of this shape has elements."""
    known = [tir.Const(0) <= var for var in sizes]
    dims = (dim for dim in dict.fromkeys(shape) if tir.int_value(dim) is None)
    return Analyzer().assume(*known, *(fact for dim in dims for fact in _at_least(dim, 1)))


def _at_least(expr: tir.Expr, least: int) -> Iterator[tir.Expr]:
    """What follows from `expr >= least`: of a slice `max(n - 2, 0)` that is not empty, `n >= 3`."""
    yield tir.Const(least) <= expr
    match expr:
        case tir.Add(a=a, b=tir.Const(value=more)):
            yield from _at_least(a, least - int(more))
        case tir.Sub(a=a, b=tir.Const(value=less)):
            yield from _at_least(a, least + int(less))
        case tir.FloorDiv(a=a, b=tir.Const(value=divisor)) if divisor > 0:
            yield from _at_least(a, least * int(divisor))
        case tir.Min(a=a, b=b):
            yield from _at_least(a, least)
            yield from _at_least(b, least)
        case tir.Max(a=tir.Const(value=other), b=a) | tir.Max(a=a, b=tir.Const(value=other)):
            if other < least:
                yield from _at_least(a, least)
        case tir.Mul(a=a, b=b) if least == 1 and all(never_exceeds(ZERO, d, ()) for d in (a, b)):
            yield from _at_least(a, 1)
            yield from _at_least(b, 1)


def same_shape(a: Sequence[tir.Expr], b: Sequence[tir.Expr]) -> bool:
    """Whether two shapes are the same for all sizes."""
    return len(a) == len(b) and all(map(dims_equal, a, b))


def broadcast(*shapes: Sequence[tir.Expr]) -> Shape:
    """The shape of an elementwise result by NumPy's rules.

    Of two symbolic dimensions that cannot be proved equal the first is taken: they must be equal
    when the model runs, unless one of them is the number 1. One that is never more counts as 1.
    """
    rank = max((len(s) for s in shapes), default=0)
    result: list[tir.Expr] = []
    for axis in range(-rank, 0):
        dims = [s[axis] for s in shapes if len(s) >= -axis]
        wide = [d for d in dims if tir.int_value(d) != 1]
        wide = [d for d in wide if not is_one_or_none(d)] or wide
        numbers = {n for d in wide if (n := tir.int_value(d)) is not None}
        if len(numbers) > 1:
            shown = " and ".join(f"[{', '.join(map(print_node, s))}]" for s in shapes)
            hint = "aligned at their ends, sizes are equal or 1"
            raise GraphError(G001, {"shapes": shown}, hint=hint)
        named = [d for d in wide if tir.int_value(d) is not None] or wide
        result.append(named[0] if named else tir.Const(1))
    return tuple(result)


def evaluate_size(expr: tir.Expr, sizes: Mapping[tir.Var, int]) -> int:
    """The value of a dimension when the sizes are known."""
    number = tir.int_value(expr)
    if number is not None:
        return number
    from tilewright.tensor.visit import substitute

    result = tidy(substitute(expr, {v: tir.Const(n) for v, n in sizes.items()}))
    if not isinstance(result, tir.Const):
        raise KeyError(f"the sizes of `{expr}` are not all known")
    return int(result.value)
