"""Random damage to scheduled programs, to see that validation notices it.

A mutation changes loops, bindings, kinds or the order of statements without asking whether that is
legal. What validation still accepts must compute the same as before.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from hypothesis import strategies as st

from tilewright.tensor import ir as tir
from tilewright.tensor.build import seq
from tilewright.tensor.visit import replace_node, substitute, walk_stmts

__all__ = ["MUTATIONS", "mutated"]

Draw = st.DrawFn
Mutation = Callable[[st.DrawFn, tir.Func], tir.Func | None]


@st.composite
def mutated(draw: st.DrawFn, func: tir.Func) -> tuple[str, tir.Func]:
    """The name of a mutation, and the program after it (the same if it does not apply)."""
    name = draw(st.sampled_from(list(MUTATIONS)))
    return name, MUTATIONS[name](draw, func) or func


def _loops(func: tir.Func) -> list[tir.For]:
    return [s for s in walk_stmts(func) if type(s) is tir.For]


def _blocks(func: tir.Func) -> list[tir.Block]:
    return [s for s in walk_stmts(func) if type(s) is tir.Block and s.bindings]


def _run_at_once(draw: Draw, func: tir.Func) -> tir.Func | None:
    loops = _loops(func)
    if not loops:
        return None
    loop = draw(st.sampled_from(loops))
    return replace_node(func, loop, loop.with_fields(kind=tir.LoopKind.PARALLEL))


def _change_extent(draw: Draw, func: tir.Func) -> tir.Func | None:
    loops = _loops(func)
    if not loops:
        return None
    loop = draw(st.sampled_from(loops))
    extent = loop.extent + draw(st.sampled_from([-1, 1]))
    return replace_node(func, loop, loop.with_fields(extent=extent))


def _change_binding(draw: Draw, func: tir.Func) -> tir.Func | None:
    blocks = _blocks(func)
    if not blocks:
        return None
    block = draw(st.sampled_from(blocks))
    at = draw(st.integers(0, len(block.bindings) - 1))
    old, extent = block.bindings[at], block.iters[at].extent
    options = [old + 1, old - 1, old * 2, old // 2, extent - 1 - old, (old + 1) % extent]
    options += [other for n, other in enumerate(block.bindings) if n != at]
    new = draw(st.sampled_from(options))
    bindings = (*block.bindings[:at], new, *block.bindings[at + 1 :])
    return replace_node(func, block, block.with_fields(bindings=bindings))


def _swap_bindings(draw: Draw, func: tir.Func) -> tir.Func | None:
    blocks = [b for b in _blocks(func) if len(b.bindings) > 1]
    if not blocks:
        return None
    block = draw(st.sampled_from(blocks))
    order = draw(st.permutations(block.bindings))
    return replace_node(func, block, block.with_fields(bindings=tuple(order)))


def _change_predicate(draw: Draw, func: tir.Func) -> tir.Func | None:
    blocks = _blocks(func)
    if not blocks:
        return None
    block = draw(st.sampled_from(blocks))
    guard = draw(st.sampled_from(block.bindings)) < draw(st.integers(1, 8))
    predicate = draw(st.sampled_from([tir.TRUE, guard]))
    return replace_node(func, block, block.with_fields(predicate=predicate))


def _swap_statements(draw: Draw, func: tir.Func) -> tir.Func | None:
    sequences = [s for s in walk_stmts(func) if type(s) is tir.Seq]
    if not sequences:
        return None
    sequence = draw(st.sampled_from(sequences))
    return replace_node(func, sequence, tir.Seq(tuple(draw(st.permutations(sequence.body)))))


def _swap_loops(draw: Draw, func: tir.Func) -> tir.Func | None:
    outer = [s for s in _loops(func) if type(s.body) is tir.For]
    if not outer:
        return None
    loop = draw(st.sampled_from(outer))
    inner = loop.body
    assert isinstance(inner, tir.For)
    moved = inner.with_fields(body=loop.with_fields(body=inner.body))
    return replace_node(func, loop, moved)


def _repeat(draw: Draw, func: tir.Func) -> tir.Func | None:
    parts: list[tir.Stmt] = [*_loops(func), *_blocks(func)]
    if not parts:
        return None
    part = draw(st.sampled_from(parts))
    return replace_node(func, part, tir.For(tir.Var("again"), tir.Const(2), part))


def _join_loops(draw: Draw, func: tir.Func) -> tir.Func | None:
    """Two neighbouring loops become one, whether or not the second needs all of the first."""
    pairs = [
        (sequence, n)
        for sequence in walk_stmts(func)
        if type(sequence) is tir.Seq
        for n in range(len(sequence.body) - 1)
        if type(sequence.body[n]) is tir.For and type(sequence.body[n + 1]) is tir.For
    ]
    if not pairs:
        return None
    sequence, n = draw(st.sampled_from(pairs))
    first, second = sequence.body[n : n + 2]
    assert isinstance(first, tir.For)
    assert isinstance(second, tir.For)
    body = seq(first.body, substitute(second.body, {second.var: first.var}))
    joined = first.with_fields(body=body)
    parts = (*sequence.body[:n], joined, *sequence.body[n + 2 :])
    return replace_node(func, sequence, seq(*parts))


def _move_in(draw: Draw, func: tir.Func) -> tir.Func | None:
    """A statement goes into the loop behind it, and is repeated there."""
    pairs = [
        (sequence, n)
        for sequence in walk_stmts(func)
        if type(sequence) is tir.Seq
        for n in range(len(sequence.body) - 1)
        if type(sequence.body[n + 1]) is tir.For
    ]
    if not pairs:
        return None
    sequence, n = draw(st.sampled_from(pairs))
    first, loop = sequence.body[n : n + 2]
    assert isinstance(loop, tir.For)
    moved = loop.with_fields(body=seq(first, loop.body))
    return replace_node(func, sequence, seq(*sequence.body[:n], moved, *sequence.body[n + 2 :]))


MUTATIONS: Final[dict[str, Mutation]] = {
    "run at once": _run_at_once,
    "change extent": _change_extent,
    "change binding": _change_binding,
    "swap bindings": _swap_bindings,
    "change predicate": _change_predicate,
    "swap statements": _swap_statements,
    "swap loops": _swap_loops,
    "repeat": _repeat,
    "join loops": _join_loops,
    "move in": _move_in,
}
