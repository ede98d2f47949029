"""Names are the handles of a schedule: of loops (their variable's name), blocks and buffers.

`Schedule` makes them unique once; afterwards every primitive takes fresh names from `fresh`, which
depend on the program's structure only. A trace therefore means the same on every replay, and reads
like the program that a person sees printed.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import NamedTuple, NoReturn

from tilewright.errors import Code, ScheduleError
from tilewright.schedule.nests import replace_buffer
from tilewright.tensor import ir as tir
from tilewright.tensor.visit import substitute, walk

__all__ = ["Namer", "Names", "fresh", "names_of", "uniquely_named"]

S001 = Code("S001", "there is no {kind} `{name}`")
S005 = Code("S005", "`{name}` names both a loop and a block")


@dataclass(slots=True)
class Names:
    """Everything in a program that can be named."""

    func: tir.Func
    loops: dict[str, tir.For] = field(default_factory=dict)
    blocks: dict[str, tir.Block] = field(default_factory=dict)
    buffers: dict[str, tir.Buffer] = field(default_factory=dict)
    taken: set[str] = field(default_factory=set)

    def loop(self, name: str) -> tir.For:
        return self.loops.get(name) or self._missing("loop", name, self.loops)

    def block(self, name: str) -> tir.Block:
        return self.blocks.get(name) or self._missing("block", name, self.blocks)

    def buffer(self, name: str) -> tir.Buffer:
        return self.buffers.get(name) or self._missing("buffer", name, self.buffers)

    def loop_or_block(self, name: str) -> tir.For | tir.Block:
        if name in self.loops and name in self.blocks:
            hint = "rename one of them in the program"
            raise ScheduleError(S005, {"name": name}, program=self.func, hint=hint)
        found = self.loops.get(name) or self.blocks.get(name)
        return found or self._missing("loop or block", name, {**self.loops, **self.blocks})

    def _missing(self, kind: str, name: object, known: Mapping[str, object]) -> NoReturn:
        close = difflib.get_close_matches(str(name), known, n=3, cutoff=0.4)
        hint = "use a name of the printed program; steps return the names that they make"
        if close:
            hint = f"did you mean {', '.join(f'`{c}`' for c in close)}?"
        facts = {"kind": kind, "name": name, f"{kind}s": ", ".join(known) or "none"}
        raise ScheduleError(S001, facts, hint=hint, program=self.func)


def names_of(func: tir.Func) -> Names:
    """Index the names of a program; O(statements of new nests), and at once for the last program.

    A step asks several times: to find its handles, and for fresh names.
    """
    global _last  # noqa: PLW0603 (one entry; programs are values, so it can never be stale)
    names = _last
    if names is None or names.func is not func:
        names = _last = _indexed(func)
    return names


_last: Names | None = None


def _indexed(func: tir.Func) -> Names:
    loops: dict[str, tir.For] = {}
    blocks: dict[str, tir.Block] = {}
    buffers = {b.name: b for b in func.params}
    for nest in _top_statements(func, buffers):
        own = _index_of(nest)
        loops.update(own.loops)
        blocks.update(own.blocks)
        buffers.update(own.buffers)
    return Names(func, loops, blocks, buffers, {*loops, *blocks, *buffers, *_size_names(func)})


def _top_statements(func: tir.Func, buffers: dict[str, tir.Buffer]) -> list[tir.Stmt]:
    """The nests of a program; the allocations around them go into `buffers`."""
    found: list[tir.Stmt] = []
    stack: list[tir.Stmt] = [func.body]
    while stack:
        stmt = stack.pop()
        if type(stmt) is tir.Alloc:
            buffers[stmt.buffer.name] = stmt.buffer
            stack.append(stmt.body)
        elif type(stmt) is tir.Seq:
            stack += stmt.body[::-1]
        else:
            found.append(stmt)
    return found


class _Index(NamedTuple):
    """The names inside of one nest, which stays alive."""

    nest: tir.Stmt
    loops: dict[str, tir.For]
    blocks: dict[str, tir.Block]
    buffers: dict[str, tir.Buffer]


_indices: dict[int, _Index] = {}
_MOST_INDICES = 512


def _index_of(nest: tir.Stmt) -> _Index:
    """The names in a nest, remembered: a step changes one nest or two, and all others stay."""
    found = _indices.get(id(nest))
    if found is None:
        if len(_indices) >= _MOST_INDICES:
            _indices.clear()
        found = _Index(nest, {}, {}, {})
        _fill(found)  # before other threads see it
        _indices[id(nest)] = found
    return found


def _fill(index: _Index) -> None:
    _, loops, blocks, buffers = index
    stack: list[tir.Stmt] = [index.nest]
    while stack:
        stmt = stack.pop()
        while type(stmt) is tir.For:
            loops[stmt.var.name] = stmt
            stmt = stmt.body
        if type(stmt) is tir.Block:
            blocks[stmt.name] = stmt
            if stmt.init is not None and type(stmt.init) is not tir.Store:
                stack.append(stmt.init)
            if type(stmt.body) is not tir.Store:
                stack.append(stmt.body)
        elif type(stmt) is tir.Seq:
            stack += stmt.body[::-1]
        elif type(stmt) is tir.Alloc:
            buffers[stmt.buffer.name] = stmt.buffer
            stack.append(stmt.body)
        elif type(stmt) is tir.If:
            stack += [stmt.then] if stmt.otherwise is None else [stmt.otherwise, stmt.then]


def _size_names(func: tir.Func) -> set[str]:
    return {
        node.name
        for param in func.params
        for dim in param.shape
        if type(dim) is not tir.Const
        for node in walk(dim)
        if isinstance(node, tir.Var)
    }


def fresh(func: tir.Func | Names, wanted: str, *also_taken: str) -> str:
    """`wanted` itself if no loop, block or buffer has it, else with the first free number."""
    names = func if isinstance(func, Names) else names_of(func)
    taken = names.taken.union(also_taken)
    if wanted not in taken:
        return wanted
    number = 1
    while f"{wanted}_{number}" in taken:
        number += 1
    return f"{wanted}_{number}"


class Namer:
    """Gives fresh names one after another; no two are the same."""

    __slots__ = ("_given", "_names")

    def __init__(self, func: tir.Func | Names) -> None:
        self._names = func if isinstance(func, Names) else names_of(func)
        self._given: set[str] = set()

    def __call__(self, wanted: str) -> str:
        name = fresh(self._names, wanted, *self._given)
        self._given.add(name)
        return name


def uniquely_named(func: tir.Func) -> tir.Func:
    """The same program with every loop, block and buffer name used once.

    A block may carry the name of the buffer it computes: they are looked up in different tables.
    Loops and buffers are both variables of the text, so there no name can stand for one of each.
    """
    loops, blocks, buffers = _size_names(func), set[str](), {p.name for p in func.params}
    renamed: dict[tir.Buffer, tir.Buffer] = {}

    def visit(stmt: tir.Stmt) -> tir.Stmt:
        changed: tir.Stmt = stmt
        match stmt:
            case tir.For():
                var, body = stmt.var, stmt.body
                name = _unique(var.name, loops, buffers)
                if name != var.name:
                    var = tir.Var(name, var.dtype)
                    body = substitute(body, {stmt.var: var})
                changed = stmt.with_fields(var=var, body=visit(body))
            case tir.Block():
                name = _unique(stmt.name, blocks)
                init = None if stmt.init is None else visit(stmt.init)
                changed = stmt.with_fields(name=name, body=visit(stmt.body), init=init)
            case tir.Seq():
                changed = stmt.with_fields(body=_same(stmt.body, tuple(map(visit, stmt.body))))
            case tir.Alloc():
                name = _unique(stmt.buffer.name, buffers, loops)
                if name != stmt.buffer.name:
                    renamed[stmt.buffer] = stmt.buffer.with_fields(name=name)
                changed = stmt.with_fields(body=visit(stmt.body))
            case tir.If():
                other = None if stmt.otherwise is None else visit(stmt.otherwise)
                changed = stmt.with_fields(then=visit(stmt.then), otherwise=other)
        return changed

    body = visit(func.body)
    done = func if body is func.body else tir.Func(func.name, func.params, body)
    return replace_buffer(done, renamed) if renamed else done


def _unique(name: str, seen: set[str], also_taken: AbstractSet[str] = frozenset()) -> str:
    result, number = name, 1
    while result in seen or result in also_taken:
        result, number = f"{name}_{number}", number + 1
    seen.add(result)
    return result


def _same(old: tuple[tir.Stmt, ...], new: tuple[tir.Stmt, ...]) -> tuple[tir.Stmt, ...]:
    return old if all(a is b for a, b in zip(old, new, strict=True)) else new
