"""Loops are cut where what happens inside changes, so that no iteration has to ask.

Three reasons to cut, one mechanism:

* tiles of a cover: an unrolled or vectorised loop whose extent is `TileSize(cover, t)` needs a
  constant, so the loop over t is cut at the borders of the cover's segments;
* inits: `if k == 0: S` at the start of a loop over k moves in front of it;
* conditions: predicates and padding, affine in the loop variable, hold in one part of the loop,
  fail in another, and are asked only in the (mostly empty) part between. An unrolled loop is taken
  apart if each of its iterations has a vector loop inside change at a place of its own. A condition
  on a digit of the variable (`v % 2`, what fusing leaves of an inner loop) comes and goes along the
  loop: there a test of the digit selects the specialised body.

    for t in range(22):                           for t in range(21):
        for i in unrolled(TileSize(21×6 + 2, t))      for i in unrolled(6): …
            …                             →       for i in unrolled(2): …

A parallel loop stays whole, as its iterations must be dealt to the threads as one range: there a
test selects the specialised body. Only tiles must be cut; conditions are left alone where the
copies would make the program too long.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tilewright.lower import fold, forms
from tilewright.lower.accesses import conjuncts
from tilewright.lower.conditions import comparisons, spans
from tilewright.lower.context import Context
from tilewright.lower.counts import counted
from tilewright.lower.digit_cases import chosen_by_digit, digit_cases
from tilewright.lower.extremes import Loops
from tilewright.lower.forms import Form
from tilewright.lower.lower_tiles import tile_borders, tile_facts
from tilewright.lower.quasi_linear import bounds_of
from tilewright.lower.simplify import analyzer_of, simplified, simplified_within
from tilewright.tensor import ir as tir
from tilewright.tensor.arith import Analyzer
from tilewright.tensor.visit import children, find, free_vars, holds, walk_stmts

__all__ = ["cut_loops"]

MAX_STATEMENTS = 1024
"""Conditions are not cut if all copies together, unrolled, would have more statements than this."""

Known = Mapping[tir.Expr, tir.Expr]


@dataclass(frozen=True, slots=True)
class Cut:
    """Borders inside a loop, and what is known between them."""

    borders: tuple[Form, ...]
    known: tuple[Known, ...]
    must: bool = False


@dataclass(frozen=True, slots=True)
class Piece:
    """Iterations [start, end) of a loop, with a body of their own."""

    start: Form
    end: Form
    body: tir.Stmt


def cut_loops(func: tir.Func, context: Context) -> tir.Func:
    """Cut every loop that wants it, outer loops first."""
    del context
    if not holds(func.body, tir.If, tir.Select, tir.TileSize):
        return func
    body = _statement(func.body, analyzer_of(func), 1)
    if body is func.body:
        return func
    return func.with_fields(body=simplified(body, func))


def _statement(stmt: tir.Stmt, analyzer: Analyzer, copies: int) -> tir.Stmt:
    """`copies` counts how often the loops around have already been multiplied."""
    if type(stmt) is tir.For:
        return _loop(stmt, analyzer, copies)
    return fold.map_parts(stmt, lambda part: _statement(part, analyzer, copies))


def _loop(loop: tir.For, analyzer: Analyzer, copies: int) -> tir.Stmt:
    init, loop = _init_in_front(loop)
    pieces = _cut_at_tiles(loop, Piece({}, forms.form_of(loop.extent), loop.body), analyzer)
    many = copies * len(pieces)
    if loop.kind is not tir.LoopKind.UNROLLED:
        pieces = [_tested_digits(loop, p, many) for p in pieces]
        pieces = [new for p in pieces for new in _cut_at_conditions(loop, p, analyzer, many)]
    elif len(pieces) == 1 and _shifts_conditions(loop, copies):
        pieces = _single_iterations(loop)
    copies *= len(pieces)
    if len(pieces) == 1:
        body = _statement(pieces[0].body, analyzer.bind(loop.var, loop.extent), copies)
        return fold.seq(init, _hoisted(loop, body))
    if loop.kind is tir.LoopKind.PARALLEL:
        return fold.seq(init, _selected(loop, pieces, analyzer, copies))
    return fold.seq(init, *(_part(loop, piece, analyzer, copies) for piece in pieces))


def _part(loop: tir.For, piece: Piece, analyzer: Analyzer, copies: int) -> tir.Stmt:
    """One piece as a loop from zero (or no loop at all, if it is one iteration)."""
    extent = analyzer.simplify(forms.expr_of(forms.minus(piece.end, piece.start)))
    start = forms.expr_of(piece.start)
    if tir.int_value(extent) == 1:
        return _statement(fold.copied(piece.body, {loop.var: start}), analyzer, copies)
    if loop.kind is tir.LoopKind.SERIAL and _is_single(piece):
        some = fold.fold_binary(tir.Lt, tir.Const(0), extent)
        alone = _statement(fold.copied(piece.body, {loop.var: start}), analyzer, copies)
        return fold.branch(some, alone, None)
    var = tir.Var(loop.var.name)
    body = fold.copied(piece.body, {loop.var: fold.fold_binary(tir.Add, start, var)})
    new = tir.For(var, extent, body, loop.kind, loop.notes)
    return _hoisted(new, _statement(body, analyzer.bind(var, extent), copies))


def _is_single(piece: Piece) -> bool:
    """Is it one iteration at most? The tile that is not full, for example."""
    found = bounds_of(counted(forms.expr_of(forms.minus(piece.end, piece.start))))
    return found is not None and found[1] <= 1


def _selected(loop: tir.For, pieces: Sequence[Piece], analyzer: Analyzer, copies: int) -> tir.Stmt:
    """The whole loop, whose iterations find their piece by a test; each piece knows its range."""
    result: tir.Stmt | None = None
    for piece in reversed(pieces):
        start, end = forms.expr_of(piece.start), forms.expr_of(piece.end)
        body = fold.copied(piece.body, {loop.var: start} if _is_single(piece) else {})
        here = analyzer.bind(loop.var, loop.extent)
        for known in (tir.Le(start, loop.var), tir.Lt(loop.var, end)):
            here = here.assume(known)
        body = simplified_within(_statement(body, here, copies), here)
        result = body if result is None else fold.branch(tir.Lt(loop.var, end), body, result)
    assert result is not None
    return fold.loop(loop, loop.extent, result)


def _hoisted(loop: tir.For, body: tir.Stmt) -> tir.Stmt:
    """The loop with a new body; a test that no iteration changes moves outside."""
    if type(body) is not tir.If or loop.var in free_vars(body.cond) or holds(body.cond, tir.Load):
        return fold.loop(loop, loop.extent, body)
    then = fold.loop(loop, loop.extent, body.then)
    if body.otherwise is None:
        return fold.branch(body.cond, then, None)
    var = tir.Var(loop.var.name)
    other = fold.substitute(body.otherwise, {loop.var: var})
    return fold.branch(body.cond, then, fold.loop(loop.with_fields(var=var), loop.extent, other))


def _cut_at_conditions(loop: tir.For, whole: Piece, analyzer: Analyzer, copies: int) -> list[Piece]:
    """Cut at one comparison after the other, as long as the pieces still contain them."""
    pieces, seen = [whole], set[tir.Expr]()
    for comparison, inner in comparisons(whole.body):
        if comparison in seen or loop.var not in free_vars(comparison):
            continue
        seen.add(comparison)
        if _belongs_inside(comparison, loop, inner):
            continue
        cut = _condition_cut(comparison, loop, inner, analyzer)
        if cut is None or _is_left_to_lanes(cut, comparison, loop, inner):
            continue
        new = [part for piece in pieces for part in _cut(loop, piece, cut, analyzer)]
        weight = sum(_weight(piece.body) for piece in new)
        if len(new) <= len(pieces) or weight * copies <= MAX_STATEMENTS:
            pieces = new
    return pieces


def _tested_digits(loop: tir.For, piece: Piece, copies: int) -> Piece:
    """A test of each digit of the loop variable that decides a comparison inside."""
    body, seen = piece.body, set[tir.Expr]()
    for comparison, inner in comparisons(piece.body):
        if comparison in seen or _belongs_inside(comparison, loop, inner):
            continue
        seen.add(comparison)
        cases = digit_cases(comparison, loop, inner)
        if cases and _weight(body) * len(cases) * copies <= MAX_STATEMENTS:
            body = chosen_by_digit(body, cases)
    return piece if body is piece.body else Piece(piece.start, piece.end, body)


def _shifts_conditions(loop: tir.For, copies: int) -> bool:
    """Whether each iteration of an unrolled loop has a vector loop inside cut at places of its own.

    Elements that a copy sorts by their remainder are inside of a border from another place on for
    each remainder.
    """
    times = tir.int_value(loop.extent) or 0
    if times < 2 or _weight(loop) * copies > MAX_STATEMENTS:
        return False
    vectors = {
        s.var for s in walk_stmts(loop.body) if type(s) is tir.For and s.kind is tir.LoopKind.VECTOR
    }
    used = (free_vars(comparison) for comparison, _ in comparisons(loop.body))
    return any(loop.var in found and not vectors.isdisjoint(found) for found in used)


def _single_iterations(loop: tir.For) -> list[Piece]:
    """An unrolled loop, unrolled already."""
    times = tir.int_value(loop.extent) or 0
    places = [forms.constant(k) for k in range(times + 1)]
    return [Piece(k, after, loop.body) for k, after in itertools.pairwise(places)]


def _belongs_inside(comparison: tir.Compare, loop: tir.For, inner: Loops) -> bool:
    """Is it better asked by a loop further in that is a small part of this loop's body?

    Cutting here would copy all stages of the body for the sake of one.
    """
    used = free_vars(comparison)
    wanted = [var for var, _ in inner if var in used]
    stages = [s for s in walk_stmts(loop.body) if type(s) is tir.For and s.var in wanted]
    serial = [s for s in stages if s.kind is tir.LoopKind.SERIAL]
    return bool(serial) and 2 * _weight(serial[-1]) < _weight(loop.body)


def _is_left_to_lanes(cut: Cut, comparison: tir.Compare, loop: tir.For, inner: Loops) -> bool:
    """Is it better asked by vectors that are a small part of this loop's body?

    Where a symbolic size ends in the midst of a vector, copies into and out of register tiles ask.
    The tiles themselves need not, and nothing tells the cut that no piece lies behind the end.
    """
    if all(forms.const_of(border) is not None for border in cut.borders):
        return False
    asking = {var for var, _ in inner} & free_vars(comparison)
    vectors = [
        s
        for s in walk_stmts(loop.body)
        if type(s) is tir.For and s.kind is tir.LoopKind.VECTOR and s.var in asking
    ]
    return bool(vectors) and 2 * _weight(vectors[-1]) < _weight(loop.body)


def _condition_cut(
    comparison: tir.Compare, loop: tir.For, inner: Loops, analyzer: Analyzer
) -> Cut | None:
    """Where the comparison changes; None if that is not known well enough to be of use."""
    found = spans(comparison, loop, inner)
    if found is None:
        return None
    first, last = found.borders
    constant = all(forms.const_of(b) is not None for b in found.borders)
    if not constant and None in found.values and first != last and _moves(found.borders, analyzer):
        return None  # parts of unknown length in every iteration of an outer loop
    known: list[Known] = [{} if v is None else {comparison: _CONSTANTS[v]} for v in found.values]
    return Cut(found.borders, tuple(known), must=False)


def _moves(borders: Sequence[Form], analyzer: Analyzer) -> bool:
    """Do the borders depend on loops outside?"""
    atoms = {atom for border in borders for key in border for atom in key}
    return any(var in analyzer.extents for atom in atoms for var in free_vars(atom))


_CONSTANTS = {True: tir.TRUE, False: fold.FALSE}


def _cut(loop: tir.For, piece: Piece, cut: Cut, analyzer: Analyzer) -> list[Piece]:
    """`piece` cut at the borders that lie in it; in one piece if that is not worth while."""
    if not cut.must and not _contains(piece.body, cut.known):
        return [piece]
    ends = [_clamped(border, piece, analyzer) for border in cut.borders]
    parts = [
        (start, end, known)
        for start, end, known in zip(
            [piece.start, *ends], [*ends, piece.end], cut.known, strict=True
        )
        if not _at_most(end, start, analyzer)
    ]
    if len(parts) <= 1:
        known = parts[0][2] if parts else cut.known[0]  # without iterations anything holds
        return [Piece(piece.start, piece.end, fold.resolved(piece.body, known))]
    if loop.kind in (tir.LoopKind.SERIAL, tir.LoopKind.PARALLEL) or _is_constant(loop, parts):
        return [Piece(s, e, fold.resolved(piece.body, known)) for s, e, known in parts]
    if loop.kind is tir.LoopKind.VECTOR and not cut.must:
        return [piece]
    return [Piece(piece.start, piece.end, _chosen(loop.var, piece.body, parts))]


def _contains(body: tir.Stmt, known: Sequence[Known]) -> bool:
    wanted = {comparison for facts in known for comparison in facts}
    return any(comparison in wanted for comparison, _ in comparisons(body))


def _is_constant(loop: tir.For, parts: Sequence[tuple[Form, Form, Known]]) -> bool:
    """May a vector loop be cut here? Its parts must have constant extents, as it has itself."""
    if loop.kind is not tir.LoopKind.VECTOR:
        return False
    return all(forms.const_of(form) is not None for start, end, _ in parts for form in (start, end))


def _clamped(border: Form, piece: Piece, analyzer: Analyzer) -> Form:
    """The border, moved into the piece."""
    if _at_most(border, piece.start, analyzer):
        return piece.start
    if _at_most(piece.end, border, analyzer):
        return piece.end
    result = forms.expr_of(border)
    if not _at_most(piece.start, border, analyzer):
        result = tir.maximum(result, forms.expr_of(piece.start))
    if not _at_most(border, piece.end, analyzer):
        result = tir.minimum(result, forms.expr_of(piece.end))
    return forms.form_of(result)


def _at_most(a: Form, b: Form, analyzer: Analyzer) -> bool:
    """Is a ≤ b known?"""
    distance = forms.minus(b, a)
    found = bounds_of(counted(forms.expr_of(distance)))
    if found is not None:
        return found[0] >= 0
    return analyzer.prove(tir.Le(tir.Const(0), forms.expr_of(distance))) is True


def _chosen(var: tir.Var, body: tir.Stmt, parts: Sequence[tuple[Form, Form, Known]]) -> tir.Stmt:
    """A test of the loop variable selects the specialised body."""
    *others, (_, _, known) = parts
    result = fold.resolved(body, known)
    for _, end, facts in reversed(others):
        special = fold.copied(fold.resolved(body, facts), {})
        result = fold.branch(fold.fold_binary(tir.Lt, var, forms.expr_of(end)), special, result)
    return result


def _init_in_front(loop: tir.For) -> tuple[tir.Stmt, tir.For]:
    """`for k: { if k == 0: I; S }` is `I; for k: S`, if there is a first iteration."""
    body = loop.body
    if type(body) is not tir.Seq or loop.kind is tir.LoopKind.PARALLEL:
        return fold.NOTHING, loop
    first, rest = body.body[0], body.body[1:]
    if type(first) is not tir.If or first.otherwise is not None:
        return fold.NOTHING, loop
    if tir.Eq(loop.var, tir.Const(0)) not in conjuncts(first.cond):
        return fold.NOTHING, loop
    alone: tir.Stmt = fold.substitute(first, {loop.var: tir.Const(0)})
    if (tir.int_value(loop.extent) or 0) < 1:
        alone = fold.branch(tir.Lt(tir.Const(0), loop.extent), alone, None)
    return alone, loop.with_fields(body=fold.seq(*rest))


def _cut_at_tiles(loop: tir.For, piece: Piece, analyzer: Analyzer) -> list[Piece]:
    """Cut for one cover after the other; a cut may show that this loop chooses further tiles."""
    tile = _wanted_tile(loop.var, piece.body)
    if tile is None:
        return [piece]
    parts = forms.split(forms.form_of(tile.tile), loop.var)
    factor = None if parts is None else forms.const_of(parts[0])
    if parts is None or factor not in (1, -1):
        tested = Piece(piece.start, piece.end, _tested(tile, piece.body))
        return _cut_at_tiles(loop, tested, analyzer)
    facts: tuple[Known, ...] = tile_facts(tile.cover, tile.tile)
    borders = [forms.minus(border, parts[1]) for border in tile_borders(tile.cover)]
    if factor == -1:
        borders = [forms.plus(forms.scaled(b, -1), forms.constant(1)) for b in reversed(borders)]
        facts = tuple(reversed(facts))
    cut = Cut(tuple(borders), facts, must=True)
    new = _cut(loop, piece, cut, analyzer)
    return [last for part in new for last in _cut_at_tiles(loop, part, analyzer)]


def _wanted_tile(var: tir.Var, body: tir.Stmt) -> tir.TileSize | None:
    """A tile, chosen by this loop and no inner one, whose size must become a constant."""
    if not holds(body, tir.TileSize):
        return None
    inside = {s.var for s in walk_stmts(body) if type(s) is tir.For}
    for stmt in walk_stmts(body):
        if type(stmt) is tir.For and stmt.kind in (tir.LoopKind.UNROLLED, tir.LoopKind.VECTOR):
            for node in find(stmt.extent, tir.TileSize):
                chosen_by = free_vars(node.tile)
                if var in chosen_by and inside.isdisjoint(chosen_by):
                    return node
    return None


def _tested(node: tir.TileSize, body: tir.Stmt) -> tir.Stmt:
    """The tile number does not follow the loop one by one: every iteration asks for its segment."""
    *facts, last = tile_facts(node.cover, node.tile)
    result = fold.resolved(body, last)
    for border, known in zip(reversed(tile_borders(node.cover)), reversed(facts), strict=True):
        test = fold.fold_binary(tir.Lt, node.tile, forms.expr_of(border))
        result = fold.branch(test, fold.copied(fold.resolved(body, known), {}), result)
    return result


def _weight(stmt: tir.Stmt) -> int:
    """About how many statements this becomes when unrolled."""
    match stmt:
        case tir.Store(buffer=buffer, indices=indices, value=value):
            # What is masked in a fold stays as it is, which takes no statement.
            return 0 if value == tir.Load(buffer, indices) else 1
        case tir.For(kind=kind, extent=extent):
            inner = _weight(stmt.body)
            times = tir.int_value(extent) or max(
                (size for n in find(extent, tir.TileSize) for size, _ in n.cover.segments),
                default=1,
            )
            if kind is tir.LoopKind.UNROLLED:
                return inner * times
            return inner * max(1, times // 8) if kind is tir.LoopKind.VECTOR else inner
    return sum(_weight(c) for c in children(stmt) if isinstance(c, tir.Stmt))
