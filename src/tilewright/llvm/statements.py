"""Statements of lowered programs as LLVM blocks.

Loops are rotated: the body runs, then the variable is compared; a test in front guards only loops
that may have no iteration. LLVM is told not to unroll or vectorise them, since a schedule has
decided both. A parallel loop is divided by thread number into contiguous shares.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

from tilewright.errors import Code, InternalError
from tilewright.llvm import memory
from tilewright.llvm.addresses import Place
from tilewright.llvm.columns import column_of, columns_of
from tilewright.llvm.effects import NOTHING, Effects, Known, effects_of
from tilewright.llvm.expressions import Expressions
from tilewright.llvm.lanes import unit_ramp
from tilewright.llvm.registers import Cell, Registers
from tilewright.llvm.spelling import identifier, memory_type
from tilewright.llvm.writer import Value, Writer
from tilewright.target import Target
from tilewright.tensor import ir as tir
from tilewright.tensor.visit import find

__all__ = ["Statements"]

I102 = Code("I102", "`{kind}` cannot be emitted: lowering should have removed it")
I103 = Code("I103", "buffer `{name}` has no place: neither an offset nor a constant size")

STACK_ALIGNMENT: Final = 64
FIRST_LOOP_NOTE: Final = 3
"""Number of the first loop's metadata; what is before it belongs to the whole module."""


class Statements(Expressions):
    """Writes the statements of one function."""

    def __init__(self, writer: Writer, target: Target, body: tir.Stmt) -> None:
        super().__init__(writer, target)
        self.written: set[tir.Buffer] = set()
        self.loops = 0
        self._effects: Known = {}
        self._free_slots: dict[tuple[str, int], list[str]] = {}
        self.in_parallel = False
        effects_of(body, self._effects)

    def use_registers(self, body: tir.Stmt) -> None:
        """Keep buffers of `body` in registers where they have no place yet and can be."""
        self.registers = Registers(body, self.places)

    def run(self, stmt: tir.Stmt) -> None:
        """Write one statement."""
        RUN.get(type(stmt), _refuse)(self, stmt)

    def effects(self, stmt: tir.Stmt | None) -> Effects:
        """What a statement of this function writes."""
        if stmt is None:
            return NOTHING
        return self._effects.get(id(stmt)) or effects_of(stmt, self._effects)

    def expect_columns(self, body: Sequence[tir.Stmt]) -> None:
        """Find strided loads of neighbouring statements that are columns of square tiles."""
        stores = [part for part in body if type(part) is tir.Store]
        lanes = max([part.indices[0].dtype.lanes for part in stores], default=1)
        if lanes == 1 or lanes & (lanes - 1) or len(stores) < lanes:
            return
        strided = [
            load
            for part in stores
            for load in find(part.value, tir.Load)
            if type(load.indices[0]) is tir.Ramp
            and load.dtype.lanes == lanes
            and not load.dtype.is_bool
            and unit_ramp(load.indices[0]) is None
        ]
        if len(strided) < lanes:
            return
        wanted = []
        for load in strided:
            at = self.lane_addresses(load.buffer, load.indices[0])
            wanted.append((column_of(load.buffer, at), load.dtype.scalar.size_bytes))
        self.columns |= columns_of(wanted)

    def forget(self, effects: Effects) -> None:
        """Code with these effects runs here: what was loaded before it does not hold after it."""
        for buffer in effects.writes:
            self.note_write(buffer)
        if effects.meets:
            self.note_meeting()

    def loop(self, stmt: tir.For, start: Value, end: Value) -> None:
        """`for var in [start, end)`; a test in front unless both are constants."""
        cells = self.registers.written_by(stmt)
        if start.text[0] != "%" and end.text[0] != "%":
            self._rotated(stmt, start, end, cells)
            return
        w, hint = self.w, identifier(stmt.var.name)
        enough = w.compare("icmp slt", start, end)
        before, unchanged = w.block, self.registers.values(cells)
        inside, behind = w.fresh(f"{hint}.some"), w.fresh(f"{hint}.none")
        w.line(f"br i1 {enough.text}, label %{inside}, label %{behind}")
        with w.inside(is_loop=False) as guarded:
            w.label(inside)
            self._rotated(stmt, start, end, cells)
            w.line(f"br label %{behind}")
        w.region.lines += guarded.lines
        ways = (unchanged, before), (self.registers.values(cells), w.block)
        w.label(behind)
        self.join(cells, *ways)

    def join(self, cells: Sequence[Cell], *ways: tuple[Sequence[Value], str]) -> None:
        """A block begins that is reached in several ways, with the values of cells by each."""
        joined = []
        for values in zip(*(values for values, _ in ways), strict=True):
            blocks = [block for _, block in ways]
            joined.append(self.w.joined(*zip(values, blocks, strict=True)))
        self.registers.hold(cells, joined)

    def _rotated(self, stmt: tir.For, start: Value, end: Value, cells: Sequence[Cell]) -> None:
        w, effects = self.w, self.effects(stmt.body)
        before, hint = w.block, identifier(stmt.var.name)
        name, label, behind = w.fresh(hint), w.fresh(f"{hint}.loop"), w.fresh(f"{hint}.done")
        self.forget(effects)
        self.loops += 1
        notes = FIRST_LOOP_NOTE + self.loops - 1
        writes = None if effects.meets else effects.writes
        first = self.registers.values(cells)
        with w.inside(is_loop=True, writes=writes) as body:
            w.label(label)
            head = len(body.lines)
            variable = Value(f"%{name}", "i64", body.depth)
            self.count(stmt.var, variable)
            if not effects.loops:
                self.innermost[variable] = start
            held = [w.carried(value.type) for value in first]
            self.registers.hold(cells, held)
            self.run(stmt.body)
            last = self.registers.values(cells)
            for pointer, _, step in body.moving:
                w.line(f"{pointer}.next = getelementptr i8, ptr {pointer}, i64 {step}")
            w.line(f"%{name}.next = add nuw nsw i64 %{name}, 1")
            w.line(f"%{name}.last = icmp eq i64 %{name}.next, {end.text}")
            w.line(f"br i1 %{name}.last, label %{behind}, label %{label}, !llvm.loop !{notes}")
            phis = [(variable, start.text, f"{variable.text}.next")]
            phis += [(Value(p, "ptr"), at.text, f"{p}.next") for p, at, _ in body.moving]
            phis += [(a, b.text, c.text) for a, b, c in zip(held, first, last, strict=True)]
            body.lines[head:head] = [
                f"{phi.text} = phi {phi.type} [ {old}, %{before} ], [ {new}, %{w.block} ]"
                for phi, old, new in phis
            ]
        w.line(f"br label %{label}")
        w.region.lines += body.lines
        w.label(behind)
        self.registers.hold(cells, [Value(x.text, x.type, w.region.depth) for x in last])

    def branch(self, stmt: tir.Stmt, label: str, behind: str) -> str:
        """A statement in a block of its own that goes on at `behind`; the block where it ends."""
        with self.w.inside(is_loop=False) as region:
            self.w.label(label)
            self.run(stmt)
            self.w.line(f"br label %{behind}")
        self.w.region.lines += region.lines
        return self.w.block

    def share(self, extent: Value) -> tuple[Value, Value]:
        """The part of `[0, extent)` that belongs to this thread."""
        thread, threads = Value("%thread", "i64"), Value("%threads", "i64")
        w = self.w
        start = w.binary("udiv", w.binary("mul", extent, thread), threads)
        following = w.binary("add", thread, 1)
        return start, w.binary("udiv", w.binary("mul", extent, following), threads)

    def stack(self, buffer: tir.Buffer) -> tuple[Place, tuple[str, int]]:
        """A stack slot for a buffer of constant size; slots of dead buffers are used again."""
        sizes = [tir.int_value(extent) for extent in buffer.shape]
        if None in sizes:
            raise InternalError(I103, {"name": buffer.name})
        count = math.prod(size for size in sizes if size is not None)
        slot = (memory_type(buffer.dtype), max(count, 1))
        free = self._free_slots.setdefault(slot, [])
        if free:
            name = free.pop()
        else:
            name = f"%{self.w.fresh(identifier(buffer.name))}.slot"
            kind = f"[{slot[1]} x {slot[0]}]"
            self.w.slots.append(f"{name} = alloca {kind}, align {STACK_ALIGNMENT}")
        return Place(Value(name, "ptr"), STACK_ALIGNMENT), slot

    def release(self, place: Place, slot: tuple[str, int]) -> None:
        """The slot may serve another buffer."""
        self._free_slots[slot].append(place.pointer.text)


def _refuse(_: Statements, stmt: tir.Stmt) -> None:
    raise InternalError(I102, {"kind": type(stmt).__name__})


def _run_for(s: Statements, stmt: tir.For) -> None:
    if stmt.kind not in (tir.LoopKind.SERIAL, tir.LoopKind.PARALLEL):
        raise InternalError(I102, {"kind": f"{stmt.kind.value} loop {stmt.var.name}"})
    if stmt.kind is tir.LoopKind.PARALLEL and not s.in_parallel:
        s.in_parallel = True
        s.loop(stmt, *s.share(s.emit(stmt.extent)))
        s.in_parallel = False
        return
    count = tir.int_value(stmt.extent)
    if count == 1:
        s.count(stmt.var, Value("0", "i64"))
        s.run(stmt.body)
    elif count is None or count > 0:
        s.loop(stmt, Value("0", "i64"), s.emit(stmt.extent))


def _run_seq(s: Statements, stmt: tir.Seq) -> None:
    s.expect_columns(stmt.body)
    for part in stmt.body:
        s.run(part)


def _run_if(s: Statements, stmt: tir.If) -> None:
    condition = s.emit(stmt.cond)
    then, behind = s.w.fresh("if.then"), s.w.fresh("if.end")
    otherwise = s.w.fresh("if.else") if stmt.otherwise is not None else behind
    s.w.line(f"br i1 {condition.text}, label %{then}, label %{otherwise}")
    cells = s.registers.written_by(stmt)
    before, end = s.registers.values(cells), s.w.block
    then_end = s.branch(stmt.then, then, behind)
    changed = s.registers.values(cells)
    s.registers.hold(cells, before)
    if stmt.otherwise is not None:
        end = s.branch(stmt.otherwise, otherwise, behind)
    s.w.label(behind)
    s.join(cells, (changed, then_end), (s.registers.values(cells), end))


def _accumulates(stmt: tir.Store) -> bool:
    """Whether it adds to the element that it stores to: a step of a sum."""
    if not stmt.buffer.dtype.is_float:
        return False
    match stmt.value:
        case tir.Add(a=first, b=last) | tir.Sub(a=first, b=last):
            while isinstance(first, tir.Add):  # vectors of several lengths are added one by one
                first = first.a
            return _is_own(first, stmt) or _is_own(last, stmt)
    return False


def _is_own(part: tir.Expr, stmt: tir.Store) -> bool:
    return type(part) is tir.Load and part.buffer is stmt.buffer and part.indices == stmt.indices


def _run_store(s: Statements, stmt: tir.Store) -> None:
    buffer, (where,) = stmt.buffer, stmt.indices
    value, lanes = (s.emit_sum if _accumulates(stmt) else s.emit)(stmt.value), where.dtype.lanes
    if lanes > 1 and stmt.value.dtype.lanes == 1:
        value = memory.broadcast(s.w, value, buffer.dtype.vector(lanes))
    if buffer in s.registers:
        s.registers.write(buffer, where, value)
        return
    start = where if lanes == 1 else unit_ramp(where)
    s.written.add(buffer)
    if type(where) is tir.Prefix:
        at, mask = s.address(buffer, where.base), s.first_lanes(where.count, lanes)
        memory.store_prefix(s.w, s.access(buffer), at, value, mask)
    elif start is not None:
        memory.store_vector(s.w, s.access(buffer), s.address(buffer, start), value, lanes)
    else:
        memory.scatter(s.w, s.access(buffer), s.lane_addresses(buffer, where), value)
    s.note_write(buffer)


def _run_alloc(s: Statements, stmt: tir.Alloc) -> None:
    if stmt.buffer in s.places:  # in an arena
        s.run(stmt.body)
        return
    if stmt.buffer in s.registers:
        s.registers.enter(stmt.buffer)
        s.run(stmt.body)
        s.registers.leave(stmt.buffer)
        return
    place, slot = s.stack(stmt.buffer)
    s.places[stmt.buffer] = place
    s.run(stmt.body)
    del s.places[stmt.buffer]
    s.release(place, slot)


def _run_barrier(s: Statements, _: tir.Barrier) -> None:
    s.w.line("call void %barrier(ptr %context)")
    s.note_meeting()


def _run_prefetch(s: Statements, stmt: tir.Prefetch) -> None:
    s.w.declare("llvm.prefetch.p0", "void", "ptr", "i32", "i32", "i32")
    pointer = s.address(stmt.buffer, stmt.indices[0]).pointer(s.w)
    s.w.line(f"call void @llvm.prefetch.p0(ptr {pointer.text}, i32 0, i32 2, i32 1)")


RUN: Final[dict[type[tir.Stmt], Callable[[Statements, Any], None]]] = {
    tir.For: _run_for,
    tir.Seq: _run_seq,
    tir.If: _run_if,
    tir.Store: _run_store,
    tir.Alloc: _run_alloc,
    tir.Barrier: _run_barrier,
    tir.Prefetch: _run_prefetch,
}
