"""Does a block do what an instruction means? Compared as algebra, whatever the loops are called.

The values are compared as trees (operands of commutative operations in either order); then every
axis of the meaning must be one loop of the block, such that all indices agree: the index of each
access is split into a part that the tile's loops do not touch (where the operand begins) and a
linear part (how each dimension of the operand moves in the buffer).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations

from tilewright.intrin.intrinsic import Axis, Operand, TensorIntrinsic
from tilewright.tensor import ir as tir
from tilewright.tensor.visit import children, free_vars

__all__ = ["Match", "Mismatch", "Placed", "TileLoop", "match"]

COMMUTATIVE = (tir.Add, tir.Mul, tir.Min, tir.Max)


@dataclass(frozen=True, slots=True)
class TileLoop:
    """A loop of the tile that is to be matched."""

    var: tir.Var
    extent: int
    kind: tir.IterKind


@dataclass(frozen=True, slots=True, eq=False)
class Placed:
    """An operand in the program: element `e` is `buffer[base + Σ steps[d] * e[d]]`."""

    buffer: tir.Buffer
    base: tuple[tir.Expr, ...]
    steps: tuple[tuple[int, ...], ...]  # for each dimension of the operand, one vector

    def at(self, indices: Sequence[tir.Expr]) -> tuple[tir.Expr, ...]:
        """The indices in the buffer of an element, or a vector of elements, of the operand."""
        found = list(self.base)
        for index, steps in zip(indices, self.steps, strict=True):
            for d, step in enumerate(steps):
                if step:
                    found[d] = _moved(found[d], index, step)
        return tuple(found)


@dataclass(frozen=True, slots=True, eq=False)
class Match:
    """Where each operand lies."""

    placed: dict[tir.Buffer, Placed]


@dataclass(frozen=True, slots=True)
class Mismatch:
    """Why there is no match: `reason` is one of value, dtype, axes, index, dense."""

    reason: str
    expected: str
    found: str


_RANK = ("value", "dtype", "axes", "index", "dense")
"""Later reasons come from candidates that fit better; the best one is reported."""


def match(
    intrinsic: TensorIntrinsic, loops: Sequence[TileLoop], store: tir.Store
) -> Match | Mismatch:
    """Find each operand of `intrinsic` in `store`, which runs in `loops`."""
    wanted = [a for a in intrinsic.meaning.axes if a.extent != 1]
    given = [loop for loop in loops if loop.extent != 1]
    units = {loop.var: tir.Const(0) for loop in loops if loop.extent == 1}
    best: Mismatch | None = None
    for accesses in unified(intrinsic.meaning.store, store):
        if isinstance(accesses, Mismatch):
            best = _better(best, accesses)
            continue
        for assignment in _assignments(wanted, given):
            result = _placed(intrinsic, accesses, assignment, units)
            if isinstance(result, Match):
                return result
            best = _better(best, result)
        if best is None or best.reason in ("value", "dtype"):
            best = Mismatch("axes", _axes_text(wanted), _axes_text(given))
    return best or Mismatch("value", "the same computation", "another one")


def _better(old: Mismatch | None, new: Mismatch) -> Mismatch:
    return new if old is None or _RANK.index(new.reason) > _RANK.index(old.reason) else old


def _axes_text(axes: Sequence[Axis | TileLoop]) -> str:
    parts = [f"{a.var.name}: {a.kind.value}({a.extent})" for a in axes]
    return ", ".join(parts) or "no loops"


Accesses = tuple[tuple[tir.Buffer, tuple[tir.Expr, ...], tir.Buffer, tuple[tir.Expr, ...]], ...]
"""(operand, its indices, buffer, its indices) for every access."""


def unified(meaning: tir.Store, store: tir.Store) -> Iterator[Accesses | Mismatch]:
    """Every way to read `store` as an instance of `meaning`."""
    target = (meaning.buffer, meaning.indices, store.buffer, store.indices)
    if meaning.buffer.dtype != store.buffer.dtype:
        yield _dtype_differs(meaning.buffer, store.buffer)
        return
    for rest in _same(meaning.value, store.value):
        yield rest if isinstance(rest, Mismatch) else (target, *rest)


def _dtype_differs(expected: tir.Buffer, found: tir.Buffer) -> Mismatch:
    what = f"{expected.dtype.name} for operand `{expected.name}`"
    return Mismatch("dtype", what, f"{found.dtype.name} in `{found.name}`")


def _same(wanted: tir.Expr, given: tir.Expr) -> Iterator[Accesses | Mismatch]:
    if type(wanted) is tir.Load and type(given) is tir.Load:
        if wanted.dtype == given.dtype:
            yield ((wanted.buffer, wanted.indices, given.buffer, given.indices),)
        else:
            yield _dtype_differs(wanted.buffer, given.buffer)
        return
    if type(wanted) is not type(given):
        yield Mismatch("value", _kind_text(wanted), _kind_text(given))
        return
    if type(wanted) is tir.Const:
        yield () if wanted == given else Mismatch("value", str(wanted.value), str(_value(given)))
        return
    if wanted.dtype != given.dtype or _call_name(wanted) != _call_name(given):
        yield Mismatch("dtype", f"a value of {wanted.dtype.name}", f"one of {given.dtype.name}")
        return
    parts = [p for p in children(wanted) if isinstance(p, tir.Expr)]
    others = [p for p in children(given) if isinstance(p, tir.Expr)]
    orders = [others, others[::-1]] if isinstance(wanted, COMMUTATIVE) else [others]
    for order in orders:
        yield from _all_same(parts, order)


def _value(given: tir.Expr) -> object:
    return given.value if type(given) is tir.Const else given


def _call_name(expr: tir.Expr) -> str:
    return expr.name if type(expr) is tir.Call else ""


def _kind_text(expr: tir.Expr) -> str:
    return f"a {type(expr).__name__.lower()}"


def _all_same(
    wanted: Sequence[tir.Expr], given: Sequence[tir.Expr]
) -> Iterator[Accesses | Mismatch]:
    if not wanted:
        yield ()
        return
    for first in _same(wanted[0], given[0]):
        if isinstance(first, Mismatch):
            yield first
            continue
        for rest in _all_same(wanted[1:], given[1:]):
            yield rest if isinstance(rest, Mismatch) else (*first, *rest)


def _assignments(
    axes: Sequence[Axis], loops: Sequence[TileLoop]
) -> Iterator[dict[tir.Var, tir.Var]]:
    """Every way to give each axis a loop of its extent and kind."""
    if len(axes) != len(loops):
        return
    for order in permutations(loops):
        pairs = list(zip(axes, order, strict=True))
        if all(a.extent == o.extent and a.kind is o.kind for a, o in pairs):
            yield {a.var: o.var for a, o in pairs}


def _placed(
    intrinsic: TensorIntrinsic,
    accesses: Accesses,
    loop_of: Mapping[tir.Var, tir.Var],
    units: Mapping[tir.Var, tir.Expr],
) -> Match | Mismatch:
    placed: dict[tir.Buffer, Placed] = {}
    operands = {o.buffer: o for o in intrinsic.operands}
    for operand, wanted, buffer, given in accesses:
        here = _place(operands[operand], wanted, buffer, given, loop_of, units)
        if isinstance(here, Mismatch):
            return here
        before = placed.setdefault(operand, here)
        if (before.buffer, before.base, before.steps) != (here.buffer, here.base, here.steps):
            what = f"one place for operand `{operand.name}`"
            return Mismatch("index", what, f"`{before.buffer.name}` and `{here.buffer.name}`")
    return Match(placed)


def _place(
    operand: Operand,
    wanted: tuple[tir.Expr, ...],
    buffer: tir.Buffer,
    given: tuple[tir.Expr, ...],
    loop_of: Mapping[tir.Var, tir.Var],
    units: Mapping[tir.Var, tir.Expr],
) -> Placed | Mismatch:
    name = operand.buffer.name
    loops = set(loop_of.values())
    forms = [linear_form(index, loops | units.keys()) for index in given]
    if any(form is None for form in forms):
        return Mismatch("index", "indices linear in the loops", f"another index of `{buffer.name}`")
    base = tuple(form.rest for form in forms if form is not None)
    columns = {v: tuple(f.factors.get(v, 0) for f in forms if f is not None) for v in loops}
    axis_forms = [linear_form(index, set(loop_of)) for index in wanted]
    steps: list[tuple[int, ...]] = []
    for form in axis_forms:
        assert form is not None, "the meaning of an intrinsic has linear indices"
        unit = next((a for a, factor in form.factors.items() if factor == 1), None)
        steps.append(columns[loop_of[unit]] if unit is not None else (0,) * len(given))
    for axis, loop in loop_of.items():
        expected = [0] * len(given)
        for form, step in zip(axis_forms, steps, strict=True):
            factor = form.factors.get(axis, 0) if form is not None else 0
            expected = [e + factor * s for e, s in zip(expected, step, strict=True)]
        if tuple(expected) != columns[loop]:
            what = f"`{name}` to move by {expected} along `{axis.name}`"
            return Mismatch("index", what, f"`{buffer.name}` moves by {list(columns[loop])}")
    for form, extent, step in zip(axis_forms, operand.buffer.shape, steps, strict=True):
        if form is not None and not form.factors and tir.int_value(extent) != 1 and any(step):
            return Mismatch("index", f"a step along every dimension of `{name}`", "none")
    return _densely(operand, Placed(buffer, base, tuple(steps)))


def _densely(operand: Operand, placed: Placed) -> Placed | Mismatch:
    """Check that the last dimensions of the operand lie one after another in memory."""
    shape = [tir.int_value(d) or 1 for d in operand.buffer.shape]
    expected = 1
    for d in range(len(shape) - 1, len(shape) - 1 - operand.dense, -1):
        found = _distance(placed.buffer, placed.steps[d])
        if found != expected and shape[d] != 1:
            what = f"elements of `{operand.buffer.name}` {expected} apart along dimension {d}"
            apart = "an unknown distance" if found is None else f"{found}"
            return Mismatch("dense", what, f"{apart} apart in `{placed.buffer.name}`")
        expected *= shape[d]
    return placed


def _distance(buffer: tir.Buffer, step: tuple[int, ...]) -> int | None:
    """How many elements apart two elements are in memory; None if that depends on a size."""
    total, stride = 0, 1
    for extent, move in zip(reversed(buffer.shape), reversed(step), strict=True):
        if move and stride == 0:
            return None
        total += move * stride
        stride *= tir.int_value(extent) or 0
    return total


@dataclass(frozen=True, slots=True)
class Linear:
    """Σ factors[v] * v + rest."""

    factors: dict[tir.Var, int]
    rest: tir.Expr


def linear_form(expr: tir.Expr, variables: set[tir.Var]) -> Linear | None:
    """Separate `variables` from the rest; None if the expression is not linear in them."""
    if isinstance(expr, tir.Var) and expr in variables:
        return Linear({expr: 1}, tir.Const(0))
    if variables.isdisjoint(free_vars(expr)):
        return Linear({}, expr)
    match expr:
        case tir.Add() | tir.Sub():
            a, b = linear_form(expr.a, variables), linear_form(expr.b, variables)
            if a is None or b is None:
                return None
            sign = 1 if type(expr) is tir.Add else -1
            factors = dict(a.factors)
            for var, factor in b.factors.items():
                factors[var] = factors.get(var, 0) + sign * factor
            kept = {v: f for v, f in factors.items() if f}
            return Linear(kept, a.rest + b.rest if sign > 0 else a.rest - b.rest)
        case tir.Mul():
            for part, other in ((expr.a, expr.b), (expr.b, expr.a)):
                number = tir.int_value(other)
                form = linear_form(part, variables) if number is not None else None
                if form is not None and number is not None:
                    scaled = {v: f * number for v, f in form.factors.items() if f * number}
                    return Linear(scaled, form.rest * number)
    return None


def _moved(base: tir.Expr, index: tir.Expr, step: int) -> tir.Expr:
    """`base + index * step`, where the index may be a vector."""
    if isinstance(index, tir.Ramp):
        return tir.Ramp(base + index.base * step, index.stride * step, index.lanes)
    return base + index * step
