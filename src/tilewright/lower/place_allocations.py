"""Every intermediate buffer moves into the innermost statement that contains all of its accesses.

A buffer may move into a loop only if each iteration reads nothing but what the same iteration has
written before; a value that flows from one iteration to a later one keeps the buffer outside. What
cannot be shown is not assumed: the buffer then stays where it is, which costs only memory.

    T = alloc(f32[128])                     for i0 in range(16):
    for i0 in range(16):                        T = alloc(f32[128])
        for i1 in range(8):             →       for i1 in range(8):
            T[i0*8 + i1] = …                        T[i0*8 + i1] = …
        for i1 in range(8):                     for i1 in range(8):
            C[i0*8 + i1] = T[i0*8 + i1]             C[i0*8 + i1] = T[i0*8 + i1]
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from tilewright.lower import fold, forms
from tilewright.lower.accesses import Access, accesses_of, conjuncts
from tilewright.lower.context import Context
from tilewright.lower.extremes import Loops, extremes, fills_box
from tilewright.lower.forms import Form
from tilewright.lower.simplify import analyzer_of
from tilewright.tensor import ir as tir
from tilewright.tensor.arith import Analyzer
from tilewright.tensor.visit import find, holds, walk_stmts

__all__ = ["place_allocations"]

ZERO = tir.Const(0)


def place_allocations(func: tir.Func, context: Context) -> tir.Func:
    """Sink each `Alloc` as far as values allow."""
    del context
    found = [s for s in walk_stmts(func) if type(s) is tir.Alloc]
    if not found:
        return func
    starts: dict[tir.Buffer, tir.Stmt] = {}
    bare = _without_allocs(func.body, starts)
    accesses = accesses_of(bare, starts)
    touched: dict[int, frozenset[tir.Buffer]] = {}
    _touch(bare, frozenset(starts), touched)
    homes: dict[int, list[tir.Buffer]] = {}
    analyzers = _Analyzers(func)
    for buffer, start in starts.items():
        if not accesses[buffer]:
            continue  # nobody misses it
        home = _home(buffer, start, accesses[buffer], touched, analyzers)
        homes.setdefault(id(home), []).append(buffer)
    body = _with_allocs(bare, homes)
    return func if body == func.body else func.with_fields(body=body)


class _Analyzers:
    """Analyzers for what stands in loops; accesses side by side ask the same one."""

    def __init__(self, func: tir.Func) -> None:
        self._known: dict[tuple[tir.Var, ...], Analyzer] = {(): analyzer_of(func)}

    def within(self, loops: Sequence[tuple[tir.Var, tir.Expr]]) -> Analyzer:
        """One that knows the ranges of these loops."""
        key = tuple([var for var, _ in loops])
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self.within(loops[:-1]).bind(*loops[-1])
        return found


def _without_allocs(stmt: tir.Stmt, starts: dict[tir.Buffer, tir.Stmt]) -> tir.Stmt:
    """The statement without allocations; `starts` says where each one was."""
    if type(stmt) is tir.Alloc:
        starts[stmt.buffer] = stmt  # takes its place in the order, outermost first
        starts[stmt.buffer] = _without_allocs(stmt.body, starts)
        return starts[stmt.buffer]
    if type(stmt) is tir.Seq:  # not flattened: the statements of an allocation stay together
        return tir.Seq(tuple([_without_allocs(part, starts) for part in stmt.body]))
    return fold.map_parts(stmt, lambda part: _without_allocs(part, starts))


def _touch(
    stmt: tir.Stmt, buffers: frozenset[tir.Buffer], touched: dict[int, frozenset[tir.Buffer]]
) -> frozenset[tir.Buffer]:
    """Note for each statement which of `buffers` it accesses."""
    found: frozenset[tir.Buffer]
    match stmt:
        case tir.Seq():
            found = frozenset().union(*[_touch(part, buffers, touched) for part in stmt.body])
        case tir.For():
            found = _loaded(stmt.extent, buffers) | _touch(stmt.body, buffers, touched)
        case tir.If():
            found = _loaded(stmt.cond, buffers) | _touch(stmt.then, buffers, touched)
            if stmt.otherwise is not None:
                found |= _touch(stmt.otherwise, buffers, touched)
        case tir.Store():
            found = frozenset((stmt.buffer, *[n.buffer for n in find(stmt, tir.Load)])) & buffers
        case _:
            found = frozenset()
    touched[id(stmt)] = found
    return found


def _loaded(expr: tir.Expr, buffers: frozenset[tir.Buffer]) -> frozenset[tir.Buffer]:
    return frozenset([load.buffer for load in find(expr, tir.Load)]) & buffers


def _home(
    buffer: tir.Buffer,
    stmt: tir.Stmt,
    accesses: list[Access],
    touched: Mapping[int, frozenset[tir.Buffer]],
    analyzers: _Analyzers,
) -> tir.Stmt:
    """The statement to wrap, starting the search at `stmt`."""
    while True:
        match stmt:
            case tir.Seq():
                inside = [part for part in stmt.body if buffer in touched[id(part)]]
            case tir.For() if _may_enter(stmt, buffer):
                inside = [stmt.body] if _stays_in_iteration(stmt, accesses, analyzers) else []
            case tir.If() if not _loaded(stmt.cond, frozenset((buffer,))):
                sides = (stmt.then,) if stmt.otherwise is None else (stmt.then, stmt.otherwise)
                inside = [side for side in sides if buffer in touched[id(side)]]
            case _:
                return stmt
        if len(inside) != 1:
            return stmt
        stmt = inside[0]


def _may_enter(loop: tir.For, buffer: tir.Buffer) -> bool:
    """Not if its extent reads the buffer; and iterations of a vector loop have no own scopes."""
    is_vector = loop.kind is tir.LoopKind.VECTOR
    return not is_vector and not _loaded(loop.extent, frozenset((buffer,)))


def _stays_in_iteration(loop: tir.For, accesses: list[Access], analyzers: _Analyzers) -> bool:
    """Is everything that an iteration reads written by the same iteration before?

    The iterations of a parallel loop run in any order, so in a legal program it is. Each thread
    then gets a buffer of its own, without which iterations that fill it alike would race.
    """
    if loop.kind is tir.LoopKind.PARALLEL:
        return True
    writes = [a for a in accesses if a.writes and not _has_load(a.indices)]
    return all(
        any(_covers(w, r, loop.var, analyzers) for w in writes) for r in accesses if not r.writes
    )


def _has_load(indices: Iterable[Form]) -> bool:
    return any(holds(atom, tir.Load) for form in indices for key in form for atom in key)


def _covers(write: Access, read: Access, var: tir.Var, analyzers: _Analyzers) -> bool:
    """Does `write` store all elements of `read`, earlier in one iteration of the loop `var`?"""
    if write.number >= read.number:
        return False
    outside = next(i for i, (v, _) in enumerate(write.loops) if v is var) + 1
    shared = outside
    while (
        shared < min(len(write.loops), len(read.loops))
        and write.loops[shared][0] is read.loops[shared][0]
    ):
        shared += 1
    own = write.loops[shared:]
    moving = {v for form in write.indices for v, _ in write.loops if forms.mentions(form, v)}
    if any(v not in moving and not _runs(e, write.loops) for v, e in own):
        return False
    first = {v: ZERO for v, _ in write.loops[outside:] if v not in moving}
    if not all(_harmless(c, write, read, first) for c in write.conditions):
        return False
    own = tuple([(v, e) for v, e in own if v in moving])
    if not fills_box(write.indices, own):
        return False
    return _inside(write, own, read, read.loops[shared:], analyzers.within(write.loops[:shared]))


def _runs(extent: tir.Expr, loops: Loops) -> bool:
    """Does a loop surely have an iteration? Tiles and sizes are never empty."""
    if isinstance(extent, tir.Var):
        return all(extent is not var for var, _ in loops)
    return (tir.int_value(extent) or 0) > 0 or type(extent) is tir.TileSize


def _harmless(
    condition: tir.Expr, write: Access, read: Access, first: Mapping[tir.Var, tir.Expr]
) -> bool:
    """May a write under `condition` count as unconditional, as far as `read` is concerned?"""
    if condition in read.conditions and not holds(condition, tir.Load):
        return True
    if fold.substitute(condition, first) == tir.TRUE:  # it ran in the first of these iterations
        return True
    return all(_only_bounds(c, write) for c in conjuncts(condition))


def _only_bounds(condition: tir.Expr, write: Access) -> bool:
    """Does the condition merely say that the written element exists?"""
    if type(condition) not in (tir.Lt, tir.Le):
        return False
    slack = forms.minus(forms.form_of(condition.b), forms.form_of(condition.a))  # type: ignore[attr-defined]
    if type(condition) is tir.Le:
        slack = forms.plus(slack, forms.constant(1))
    for index, size in zip(write.indices, write.buffer.shape, strict=True):
        above = forms.minus(forms.form_of(size), index)
        below = forms.plus(index, forms.constant(1))
        if any((forms.const_of(forms.minus(slack, f)) or -1) >= 0 for f in (above, below)):
            return True
        if slack in (above, below):
            return True
    return False


def _inside(write: Access, own: Loops, read: Access, other: Loops, analyzer: Analyzer) -> bool:
    """Is the box that is read within the box that is written? No access leaves the shape."""
    for w, r, size in zip(write.indices, read.indices, write.buffer.shape, strict=True):
        written, wanted = extremes(w, own), extremes(r, other)
        if written is None:
            return False
        least: list[Form] = [{}]
        greatest = [forms.minus(forms.form_of(size), forms.constant(1))]
        if wanted is not None:
            least, greatest = [*least, wanted[0]], [*greatest, wanted[1]]
        starts, ends = [(written[0], end) for end in least], [(end, written[1]) for end in greatest]
        if not _any_at_most(starts, analyzer) or not _any_at_most(ends, analyzer):
            return False
    return True


def _any_at_most(pairs: list[tuple[Form, Form]], analyzer: Analyzer) -> bool:
    """Is a ≤ b known of some pair? A proof is looked for only where no difference is a number."""
    distances = [forms.minus(b, a) for a, b in pairs]
    numbers = [forms.const_of(distance) for distance in distances]
    if any(number is not None and number >= 0 for number in numbers):
        return True
    unknown = [d for d, number in zip(distances, numbers, strict=True) if number is None]
    return any(analyzer.prove(tir.Le(tir.Const(0), forms.expr_of(d))) is True for d in unknown)


def _with_allocs(stmt: tir.Stmt, homes: Mapping[int, list[tir.Buffer]]) -> tir.Stmt:
    """Put the allocations around the statements that were chosen."""
    if type(stmt) is tir.Seq:
        new = fold.seq(*(_with_allocs(part, homes) for part in stmt.body))
    else:
        new = fold.map_parts(stmt, lambda part: _with_allocs(part, homes))
    for buffer in reversed(homes.get(id(stmt), ())):
        new = tir.Alloc(buffer, new)
    return new
