"""Expressions of lowered programs as LLVM values: one function per node class, found in a table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from tilewright.dtypes import DType, f32, index, u64
from tilewright.errors import Code, InternalError
from tilewright.llvm import memory
from tilewright.llvm.addresses import Address, Place, locate
from tilewright.llvm.casts import Casts
from tilewright.llvm.columns import Column, column_of, turned
from tilewright.llvm.lanes import count_of_lanes, lane_of, unit_ramp
from tilewright.llvm.linear import Linear, linear
from tilewright.llvm.operators import (
    apply_binary,
    apply_call,
    apply_compare,
    fold_lanes,
    take_lanes,
)
from tilewright.llvm.registers import Registers
from tilewright.llvm.spelling import element_type, is_narrow, literal, value_type
from tilewright.llvm.writer import Region, Value, Writer
from tilewright.target import Target
from tilewright.tensor import ir as tir

__all__ = ["Expressions"]

I101 = Code("I101", "`{kind}` cannot be emitted: lowering should have removed it")

_SUMS: Final = tir.Add.kinds | tir.Sub.kinds | tir.Mul.kinds | tir.Const.kinds | tir.Var.kinds


class Expressions:
    """Values of expressions in one function.

    `places` says where buffers are, `values` what variables stand for, `versions` how often the
    memory of a buffer has been written: equal loads of one version are one load. While `contracts`,
    products may be fused with the sums that they are added to.
    """

    def __init__(self, writer: Writer, target: Target) -> None:
        self.w = writer
        self.target = target
        self.casts = Casts(writer, target)
        self.contracts = False
        self.values: dict[tir.Var, Value] = {}
        self.counts: set[tir.Var] = set()  # loop variables and sizes: never negative
        self.innermost: dict[Value, Value] = {}  # variables of loops without loops in them → start
        self.places: dict[tir.Buffer, Place] = {}
        self.registers = Registers(tir.Seq(()), ())
        self.read: set[tir.Buffer] = set()
        self.columns: dict[Column, int] = {}
        self._bases: dict[object, tuple[Address, Region]] = {}
        self._sums: dict[int, tuple[tir.Expr, Linear]] = {}  # by identity, of variables alone
        self._quotients: dict[tir.Expr, tuple[Value, Region]] = {}
        self._accesses: dict[object, memory.Access] = {}
        self._written: dict[object, int] = {}
        self._writes = 0
        self._meeting = 0

    def emit(self, expr: tir.Expr) -> Value:
        """The value of any expression."""
        found = self.values.get(expr) if type(expr) is tir.Var else None
        return found if found is not None else EMIT.get(type(expr), _refuse)(self, expr)

    def emit_sum(self, expr: tir.Expr) -> Value:
        """The value of a part of a sum, whose terms may be added up in any order, and fused."""
        match expr:
            case tir.Add(a=a, b=b) | tir.Sub(a=a, b=b):
                return _applied(self, expr, self.emit_sum(a), self.emit_sum(b), contract=True)
            case tir.Mul(a=a, b=b):
                return _applied(self, expr, self.emit(a), self.emit(b), contract=True)
            case tir.Reduce(fold=tir.Fold.ADD, value=value):
                return _folded(self, expr, self.emit_sum(value))
        return self.emit(expr)

    def count(self, var: tir.Var, value: Value) -> None:
        """Let `var`, a loop variable or a size, stand for `value`; it is never negative."""
        if var in self.counts:
            self._quotients.clear()
            self._sums.clear()
        self.counts.add(var)
        self.values[var] = value

    def let(self, var: tir.Var, value: Value) -> None:
        """Let `var` stand for `value`."""
        if var in self.values:
            self._sums.clear()
        self.values[var] = value

    def note_write(self, buffer: object) -> None:
        """Loads of `buffer` after this point are new ones."""
        self._writes += 1
        self._written[buffer] = self._writes
        self._accesses.pop(buffer, None)

    def note_meeting(self) -> None:
        """Other threads may have written any buffer that is not constant."""
        self._writes += 1
        self._meeting = self._writes
        self._accesses.clear()

    def access(self, buffer: tir.Buffer) -> memory.Access:
        """The buffer as memory operations want it."""
        found = self._accesses.get(buffer)
        if found is None:
            constant = self.places[buffer].constant
            version = 0 if constant else max(self._written.get(buffer, 0), self._meeting)
            found = self._accesses[buffer] = memory.Access(buffer, version, constant=constant)
        return found

    def address(self, buffer: tir.Buffer, where: tir.Expr) -> Address:
        """The address of one element."""
        form = self.linear(where)
        # Unrolled statements differ by constants: most of them find their pointer here.
        key = (buffer, form.key())
        known = self._bases.get(key)
        if known is None or not self.w.is_open(known[1]):
            at = locate(self.w, self.places[buffer], buffer.dtype, form, self.innermost)
            self._bases[key] = at, self.w.home(at.base)
            return at
        base = known[0]
        return Address(base.base, form.constant * buffer.dtype.size_bytes, base.alignment)

    def linear(self, where: tir.Expr) -> Linear:
        """An index as a sum. What is added to a number is mostly shared by unrolled statements."""
        more = 0
        if type(where) is tir.Add:
            number = tir.int_value(where.b)
            if number is not None:
                where, more = where.a, number
        known = self._sums.get(id(where))
        if known is not None:
            return known[1].plus(more)
        form = linear(where, self.emit)
        if not where.inside & ~_SUMS and form.is_named():
            self._sums[id(where)] = where, form
        return form.plus(more)

    def quotient(self, expr: tir.Binary) -> Value:
        """A quotient or remainder; of loop variables and sizes alone it is worth remembering."""
        known = self._quotients.get(expr)
        if known is not None and self.w.is_open(known[1]):
            return known[0]
        dtype = expr.a.dtype
        counted = dtype.scalar == index and all(
            is_nonnegative(x, self.counts) for x in (expr.a, expr.b)
        )
        if counted:
            dtype = u64.vector(dtype.lanes)  # rounds down by itself
        value = apply_binary(self.w, type(expr), dtype, self.emit(expr.a), self.emit(expr.b))
        if counted:
            self._quotients[expr] = value, self.w.home(value)
        return value

    def first_lanes(self, count: tir.Expr, lanes: int) -> Value:
        """A mask of the first `count` lanes, in integers that fill a vector of the target."""
        bits = 8 * min(8, max(1, self.target.vector_bytes // lanes))
        return memory.first_lanes(self.w, self.emit(count), lanes, 1 << (bits - 1).bit_length())

    def lane_addresses(self, buffer: tir.Buffer, where: tir.Expr) -> list[Address]:
        """One address per lane of an index vector."""
        lanes = range(where.dtype.lanes)
        return [self.address(buffer, lane_of(where, lane, self._extracted)) for lane in lanes]

    def _extracted(self, expr: tir.Expr, lane: int) -> tir.Expr:
        """A variable that stands for one lane of a vector value."""
        value = self.emit(expr)
        single = tir.Var("lane", expr.dtype.scalar)
        self.values[single] = take_lanes(self.w, value, range(lane, lane + 1), expr.dtype.lanes)
        return single


def _refuse(_: Expressions, expr: tir.Expr) -> Value:
    raise InternalError(I101, {"kind": type(expr).__name__})


def _emit_const(_: Expressions, expr: tir.Const) -> Value:
    return Value(literal(expr.value, expr.dtype), value_type(expr.dtype))


def _emit_var(_: Expressions, expr: tir.Var) -> Value:
    raise InternalError(I101, {"kind": f"free variable {expr.name}"})


def _emit_binary(e: Expressions, expr: tir.Binary) -> Value:
    return _applied(e, expr, e.emit(expr.a), e.emit(expr.b), contract=e.contracts)


def _applied(e: Expressions, expr: tir.Binary, a: Value, b: Value, *, contract: bool) -> Value:
    kind, dtype = type(expr), expr.a.dtype
    if is_narrow(dtype):  # rounded to its type at once: there is nothing to fuse
        wide = f32.vector(dtype.lanes)
        a, b = e.casts.widen(a, dtype), e.casts.widen(b, dtype)
        return e.casts.narrow(apply_binary(e.w, kind, wide, a, b), dtype)
    return apply_binary(e.w, kind, dtype, a, b, contract=contract)


def _emit_division(e: Expressions, expr: tir.Binary) -> Value:
    return e.quotient(expr)


def _emit_compare(e: Expressions, expr: tir.Compare) -> Value:
    dtype = expr.a.dtype
    count = count_of_lanes(expr)
    if count is not None:
        return e.first_lanes(count, dtype.lanes)
    a, b = e.emit(expr.a), e.emit(expr.b)
    if is_narrow(dtype):
        a, b, dtype = e.casts.widen(a, dtype), e.casts.widen(b, dtype), f32.vector(dtype.lanes)
    return apply_compare(e.w, type(expr), dtype, a, b)


def _emit_not(e: Expressions, expr: tir.Not) -> Value:
    value = e.emit(expr.value)
    ones = literal(-1, expr.dtype) if not expr.dtype.is_bool else literal(True, expr.dtype)  # noqa: FBT003
    return e.w.binary("xor", value, Value(ones, value.type))


def _emit_neg(e: Expressions, expr: tir.Neg) -> Value:
    value = e.emit(expr.value)
    if is_narrow(expr.dtype):
        return e.w.binary("xor", value, Value(literal(-0x8000, _bits(expr.dtype)), value.type))
    if expr.dtype.is_float:
        return e.w.pure(value.type, f"fneg {value.typed}", value)
    return e.w.binary("sub", Value(literal(0, expr.dtype), value.type), value)


def _bits(dtype: DType) -> DType:
    """The integer as wide as a float."""
    return DType(index.kind, dtype.bits, dtype.lanes)


def _emit_cast(e: Expressions, expr: tir.Cast) -> Value:
    return e.casts.cast(e.emit(expr.value), expr.value.dtype, expr.dtype)


def _emit_reinterpret(e: Expressions, expr: tir.Reinterpret) -> Value:
    value, source = e.emit(expr.value), expr.value.dtype
    if source.is_bool or expr.dtype.is_bool:
        return e.w.convert("zext" if source.is_bool else "trunc", value, element_type(expr.dtype))
    kind = value_type(expr.dtype)
    return (
        value if kind == value.type else e.w.pure(kind, f"bitcast {value.typed} to {kind}", value)
    )


def _emit_select(e: Expressions, expr: tir.Select) -> Value:
    if type(expr.cond) is tir.Call and expr.cond.name == "unlikely":
        return _emit_seldom(e, expr)
    return e.w.select(e.emit(expr.cond), e.emit(expr.if_true), e.emit(expr.if_false))


def _emit_seldom(e: Expressions, expr: tir.Select) -> Value:
    """A choice that branches around the first value as long as no lane takes it."""
    w, lanes = e.w, expr.cond.dtype.lanes
    condition, usual = e.emit(expr.cond), e.emit(expr.if_false)
    some = condition
    if lanes > 1:
        mask = w.pure(f"i{lanes}", f"bitcast {condition.typed} to i{lanes}", condition)
        some = w.pure("i1", f"icmp ne {mask.typed}, 0", mask)
    before, seldom, behind = w.block, w.fresh("seldom"), w.fresh("seldom.end")
    w.line(f"br i1 {some.text}, label %{seldom}, label %{behind}")
    with w.inside(is_loop=False) as region:
        w.label(seldom)
        chosen = w.select(condition, e.emit(expr.if_true), usual)
        end = w.block
        w.line(f"br label %{behind}")
    w.region.lines += region.lines
    w.label(behind)
    return w.joined((usual, before), (chosen, end))


def _emit_load(e: Expressions, expr: tir.Load) -> Value:
    buffer, (where,) = expr.buffer, expr.indices
    if buffer in e.registers:
        return e.registers.read(e.w, buffer, where)
    e.read.add(buffer)
    lanes = where.dtype.lanes
    if type(where) is tir.Prefix:
        start, mask = e.address(buffer, where.base), e.first_lanes(where.count, lanes)
        return memory.load_prefix(e.w, e.access(buffer), start, lanes, mask)
    if lanes == 1:
        return memory.load_vector(e.w, e.access(buffer), e.address(buffer, where), 1)
    first = unit_ramp(where)
    if first is not None:
        return memory.load_vector(e.w, e.access(buffer), e.address(buffer, first), lanes)
    if type(where) is tir.Broadcast:
        single = memory.load_vector(e.w, e.access(buffer), e.address(buffer, where.value), 1)
        return memory.broadcast(e.w, single, expr.dtype)
    at = e.lane_addresses(buffer, where)
    tile = e.columns.get(column_of(buffer, at)) if e.columns else None
    if tile is None:
        return memory.gather(e.w, e.access(buffer), at)
    access, skip = e.access(buffer), tile - at[0].offset_bytes
    rows = [memory.load_vector(e.w, access, row, lanes, skip) for row in at]
    return turned(e.w, rows, buffer.dtype.size_bytes)[-skip // buffer.dtype.size_bytes]


def _emit_call(e: Expressions, expr: tir.Call) -> Value:
    if expr.name in ("thread", "threads"):
        return e.casts.cast(Value(f"%{expr.name}", "i64"), index, expr.dtype)
    if expr.name == "contracted":
        return _emit_contracted(e, expr.args[0])
    args, dtype = [e.emit(arg) for arg in expr.args], expr.dtype
    if expr.name == "unlikely":
        return args[0]
    if expr.name.startswith("llvm."):
        return e.w.call(expr.name, value_type(dtype), *args)
    if not is_narrow(dtype):
        return apply_call(e.w, expr.name, dtype, args, has_fma=e.target.fma)
    args = [e.casts.widen(arg, dtype) for arg in args]
    wide = apply_call(e.w, expr.name, f32.vector(dtype.lanes), args, has_fma=e.target.fma)
    return e.casts.narrow(wide, dtype)


def _emit_contracted(e: Expressions, expr: tir.Expr) -> Value:
    around, e.contracts = e.contracts, True
    value = e.emit(expr)
    e.contracts = around
    return value


def _emit_let(e: Expressions, expr: tir.Let) -> Value:
    e.let(expr.var, e.emit(expr.value))
    return e.emit(expr.body)


def _emit_ramp(e: Expressions, expr: tir.Ramp) -> Value:
    stride = tir.int_value(expr.stride)
    if stride is not None:
        return memory.ramp(e.w, e.emit(expr.base), stride, expr.dtype)
    step = memory.broadcast(e.w, e.emit(expr.stride), expr.dtype)
    counts = memory.ramp(e.w, Value("0", element_type(expr.dtype)), 1, expr.dtype)
    start = memory.broadcast(e.w, e.emit(expr.base), expr.dtype)
    return e.w.binary("add", start, e.w.binary("mul", step, counts))


def _emit_broadcast(e: Expressions, expr: tir.Broadcast) -> Value:
    return memory.broadcast(e.w, e.emit(expr.value), expr.dtype)


def _emit_reduce(e: Expressions, expr: tir.Reduce) -> Value:
    return _folded(e, expr, e.emit(expr.value))


def _folded(e: Expressions, expr: tir.Reduce, value: Value) -> Value:
    dtype = expr.value.dtype
    if dtype.lanes == 1:
        return value
    if not is_narrow(dtype):
        return fold_lanes(e.w, expr.fold, dtype, value)
    wide = fold_lanes(e.w, expr.fold, f32.vector(dtype.lanes), e.casts.widen(value, dtype))
    return e.casts.narrow(wide, dtype.scalar)


def is_nonnegative(expr: tir.Expr, counts: set[tir.Var]) -> bool:
    """Whether an index is plainly not negative, where none of `counts` is."""
    match expr:
        case tir.Const(value=number):
            return number >= 0
        case tir.Var():
            return expr in counts
        case tir.Broadcast(value=value):
            return is_nonnegative(value, counts)
        case tir.FloorMod(b=b):
            return is_nonnegative(b, counts)
        case tir.Max(a=a, b=b):
            return is_nonnegative(a, counts) or is_nonnegative(b, counts)
        case tir.Add(a=a, b=b) | tir.Mul(a=a, b=b) | tir.FloorDiv(a=a, b=b) | tir.Min(a=a, b=b):
            return is_nonnegative(a, counts) and is_nonnegative(b, counts)
        case tir.Ramp(base=a, stride=b):
            return is_nonnegative(a, counts) and is_nonnegative(b, counts)
    return False


EMIT: Final[dict[type[tir.Expr], Callable[[Expressions, Any], Value]]] = {
    tir.Const: _emit_const,
    tir.Var: _emit_var,
    tir.Not: _emit_not,
    tir.Neg: _emit_neg,
    tir.Cast: _emit_cast,
    tir.Reinterpret: _emit_reinterpret,
    tir.Select: _emit_select,
    tir.Load: _emit_load,
    tir.Call: _emit_call,
    tir.Let: _emit_let,
    tir.Ramp: _emit_ramp,
    tir.Broadcast: _emit_broadcast,
    tir.Reduce: _emit_reduce,
    tir.FloorDiv: _emit_division,
    tir.FloorMod: _emit_division,
    **dict.fromkeys((tir.Eq, tir.Ne, tir.Lt, tir.Le), _emit_compare),
    **dict.fromkeys((tir.Add, tir.Sub, tir.Mul, tir.Div, tir.Min, tir.Max), _emit_binary),
    **dict.fromkeys((tir.BitAnd, tir.BitOr, tir.BitXor), _emit_binary),
    **dict.fromkeys((tir.ShiftLeft, tir.ShiftRight), _emit_binary),
}
