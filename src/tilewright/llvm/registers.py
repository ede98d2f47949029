"""Small buffers as SSA values: no memory, and no pass of LLVM that would have to find that out.

    acc[0:8] = 0                     for k in range(64):       %acc  = phi [ 0, … ], [ %next, … ]
    for k in range(64):         →        acc[0:8] = fma(…)     %next = fma(…, %acc)
        acc[0:8] = fma(…, acc[0:8])

Lowering has unrolled what works on register tiles, so that their indices are constants. A *cell* is
what one store writes: a scalar or a vector. A buffer whose cells do not overlap, and which nobody
reads or writes at an index that varies, is the current value of each of its cells. Loops carry the
cells that they write, and the ways of a condition join theirs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from itertools import pairwise

from tilewright.llvm.lanes import unit_ramp
from tilewright.llvm.memory import broadcast, shuffled
from tilewright.llvm.operators import take_lanes
from tilewright.llvm.spelling import value_type
from tilewright.llvm.writer import Value, Writer
from tilewright.tensor import ir as tir
from tilewright.tensor.visit import find

__all__ = ["Cell", "Registers"]

Cell = tuple[tir.Buffer, int]
"""A buffer, and the index of the first element."""

_Span = tuple[int, int]  # first element, number of elements


class Registers:
    """The cells of one function, with the values that they hold where code is being written."""

    def __init__(self, body: tir.Stmt, placed: Collection[tir.Buffer]) -> None:
        """Buffers that are `placed` have memory already, which others may see."""
        self.lanes = _cells_of(body, placed)
        self._values: dict[Cell, Value] = {}
        self._open: set[tir.Buffer] = set()
        self._written: dict[int, dict[Cell, None]] = {}
        if self.lanes:
            self._note_written(body)

    def __contains__(self, buffer: tir.Buffer) -> bool:
        return buffer in self.lanes

    def enter(self, buffer: tir.Buffer) -> None:
        """The buffer exists from here on; its cells hold nothing yet."""
        self._open.add(buffer)

    def leave(self, buffer: tir.Buffer) -> None:
        """The buffer is gone."""
        self._open.discard(buffer)
        for start in self.lanes[buffer]:
            self._values.pop((buffer, start), None)

    def written_by(self, stmt: tir.Stmt) -> list[Cell]:
        """The cells that exist here and that a loop or a condition writes, in a fixed order."""
        return [cell for cell in self._written.get(id(stmt), ()) if cell[0] in self._open]

    def values(self, cells: Iterable[Cell]) -> list[Value]:
        """What cells hold here."""
        return [self._held(cell) for cell in cells]

    def hold(self, cells: Sequence[Cell], values: Sequence[Value]) -> None:
        """Let cells hold these values from here on."""
        self._values.update(zip(cells, values, strict=True))

    def write(self, buffer: tir.Buffer, where: tir.Expr, value: Value) -> None:
        """A store."""
        span = _span(where)
        assert span is not None, "cells are written at constant indices"
        self._values[buffer, span[0]] = value

    def read(self, w: Writer, buffer: tir.Buffer, where: tir.Expr) -> Value:
        """A load; of a cell, of a part of one, or of several."""
        if type(where) is tir.Broadcast:
            same = buffer.dtype.vector(where.dtype.lanes)
            return broadcast(w, self.read(w, buffer, where.value), same)
        span = _span(where)
        assert span is not None, "cells are read at constant indices"
        start, count = span
        if self.lanes[buffer].get(start) == count:
            return self._held((buffer, start))
        return self._assembled(w, buffer, start, count)

    def _held(self, cell: Cell) -> Value:
        value = self._values.get(cell)
        if value is None:
            buffer, start = cell
            return Value("poison", value_type(buffer.dtype.vector(self.lanes[buffer][start])))
        return value

    def _assembled(self, w: Writer, buffer: tir.Buffer, start: int, count: int) -> Value:
        result = Value("poison", value_type(buffer.dtype.vector(count)))
        for first, lanes in self.lanes[buffer].items():
            begin, end = max(first, start), min(first + lanes, start + count)
            if begin >= end:
                continue
            part = self._held((buffer, first))
            if end - begin < lanes:
                part = take_lanes(w, part, range(begin - first, end - first), lanes)
            if end - begin == count:
                return part
            result = _with_part(w, result, count, part, range(begin - start, end - start))
        return result

    def _note_written(self, stmt: tir.Stmt | None) -> dict[Cell, None]:
        """Cells by the loop or condition that writes them; a dictionary, for the order."""
        found: dict[Cell, None] = {}
        match stmt:
            case tir.Store(buffer=buffer, indices=(where,)) if buffer in self.lanes:
                span = _span(where)
                assert span is not None
                found[buffer, span[0]] = None
            case tir.Seq(body=parts):
                for part in parts:
                    found.update(self._note_written(part))
            case tir.Alloc(body=body):
                found = self._note_written(body)
            case tir.For(body=body):
                found = self._note_written(body)
                self._written[id(stmt)] = found
            case tir.If(then=then, otherwise=otherwise):
                found = self._note_written(then) | self._note_written(otherwise)
                self._written[id(stmt)] = found
        return found


def _with_part(w: Writer, whole: Value, count: int, part: Value, where: range) -> Value:
    """A vector of `count` lanes with some of them replaced."""
    if len(where) == 1:
        text = f"insertelement {whole.typed}, {part.typed}, i64 {where[0]}"
        return w.pure(whole.type, text, whole, part)
    lanes = ["i32 poison"] * count
    lanes[where.start : where.stop] = [f"i32 {lane}" for lane in range(len(where))]
    text = f"shufflevector {part.typed}, {part.type} poison, <{count} x i32> <{', '.join(lanes)}>"
    wide = w.pure(whole.type, text, part)
    if whole.text == "poison":
        return wide
    return shuffled(w, whole, wide, [lane + count * (lane in where) for lane in range(count)])


def _cells_of(body: tir.Stmt, placed: Collection[tir.Buffer]) -> dict[tir.Buffer, dict[int, int]]:
    """Buffers that can be values: first elements of their cells, with numbers of lanes."""
    stored: dict[tir.Buffer, set[_Span]] = {
        alloc.buffer: set()
        for alloc in find(body, tir.Alloc)
        if alloc.buffer not in placed and None not in map(tir.int_value, alloc.buffer.shape)
    }
    if not stored:
        return {}
    refused = {prefetch.buffer for prefetch in find(body, tir.Prefetch)}
    for store in find(body, tir.Store):
        if store.buffer in stored:
            span = _span(store.indices[0])
            if span is None:
                refused.add(store.buffer)
            else:
                stored[store.buffer].add(span)
    for load in find(body, tir.Load):
        if load.buffer in stored:
            (where,) = load.indices
            if _span(where.value if type(where) is tir.Broadcast else where) is None:
                refused.add(load.buffer)
    return {
        buffer: dict(sorted(spans))
        for buffer, spans in stored.items()
        if buffer not in refused and not _overlap(sorted(spans))
    }


def _overlap(spans: Sequence[_Span]) -> bool:
    return any(a + lanes > b for (a, lanes), (b, _) in pairwise(spans))


def _span(where: tir.Expr) -> _Span | None:
    """What an index or a vector of adjacent ones touches, if it is constant."""
    base = unit_ramp(where) if where.dtype.lanes > 1 else where
    start = tir.int_value(base) if base is not None else None
    return None if start is None else (start, where.dtype.lanes)
