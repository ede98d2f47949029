"""Type rules of expressions: which dtypes meet where. Part of `verify.py`.

Storage types (`f16`, `bf16` and smaller ones) only move: they are loaded, stored, selected and
converted, never computed with.
Every rule is local to one node; scopes are the caller's business (`Scope`).
"""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches
from typing import Any, Final, NoReturn

from tilewright.dtypes import DType, index
from tilewright.errors import Code, ProgramError
from tilewright.tensor import ir as tir
from tilewright.tensor.functions import FUNCTIONS
from tilewright.tensor.visit import free_vars

__all__ = ["ExprChecker", "require_typed"]

V001 = Code("V001", "the variable `{variable}` is used where it is not defined")
V002 = Code("V002", "a block sees only its own iterators, but uses `{variable}` from outside")
V003 = Code("V003", "the variable `{variable}` is bound twice")
V004 = Code("V004", "the buffer `{buffer}` is used where it does not exist")
V006 = Code("V006", "`{buffer}` has {expected} dimensions, but {found} indices are given")
V007 = Code("V007", "an index of `{buffer}` is not of the index type")
V008 = Code("V008", "the operands of `{operation}` differ in type")
V009 = Code("V009", "`{operation}` computes with the storage type {found}")
V010 = Code("V010", "`{operation}` is not defined on {found}")
V011 = Code("V011", "a condition is not a bool")
V013 = Code("V013", "the two sides of a select differ in type")
V021 = Code("V021", "the call of `{function}` does not fit the function")
V022 = Code("V022", "a conversion cannot change the number of lanes or bits")
V023 = Code("V023", "the literal {found} does not fit its type")
V025 = Code("V025", "vectors of different lengths meet in `{operation}`")
V030 = Code("V030", "a cover needs tiles of positive size and counts of the index type")
V031 = Code("V031", "the type of `{operation}` does not follow from its operands")
V032 = Code("V032", "`{operation}` needs {expected}")

ONE_INDEX = "give one index for each dimension"
ONE_LENGTH = "keep vectors of one length, and repeat scalars with `broadcast`"
OWN_TYPE = "leave the type out where the node is made: it follows from the operands"
COVER = "write `cover((tile size, number of tiles), …)`, with sizes above zero"


def require_typed(expr: tir.Expr) -> None:
    """A `ProgramError` if types do not fit somewhere in an expression that stands for itself."""
    checker = ExprChecker(tir.Func("expression", (), tir.Seq(())))
    checker.visible |= free_vars(expr)
    checker.expr(expr)


class ExprChecker:
    """Checks expressions; `statement` is what an error marks."""

    def __init__(self, func: tir.Func) -> None:
        self.func = func
        self.statement: tir.Stmt | None = None
        self.visible: set[tir.Var] = set()
        self.outside: set[tir.Var] = set()  # defined, but hidden by the block around
        self.buffers: set[tir.Buffer] = set(func.params)

    def refuse(self, code: Code, hint: str = "", mark: object = None, **facts: object) -> NoReturn:
        place = mark if mark is not None else self.statement
        marks = {"here": place} if place is not None else {}
        raise ProgramError(code, facts, hint=hint, program=self.func, marks=marks)

    def expr(self, expr: tir.Expr) -> None:
        """`expr` and everything inside it is well typed."""
        kind = type(expr)
        if kind is tir.Var:
            if expr not in self.visible:
                self.unknown(expr)  # type: ignore[arg-type]
        elif kind is tir.Const:
            self.literal(expr)  # type: ignore[arg-type]
        elif isinstance(expr, tir.Binary):
            self.binary(expr)
        else:
            _RULES[tir.Var if isinstance(expr, tir.Var) else kind](self, expr)

    def unknown(self, var: tir.Var) -> None:
        if var in self.visible:
            return
        if var in self.outside:
            hint = "bind an iterator of the block to it"
            self.refuse(V002, hint, variable=var.name)
        hint = "bind it by a loop or an iterator, or give a parameter that has it as a dimension"
        self.refuse(V001, hint, variable=var.name)

    def bind(self, var: tir.Var) -> None:
        """From here on `var` is visible; a variable has one binder."""
        if var in self.visible or var in self.outside:
            self.refuse(V003, "use a new variable", variable=var.name)
        self.visible.add(var)

    def index(self, expr: tir.Expr, buffer: tir.Buffer) -> None:
        if type(expr) is tir.Prefix:
            _prefix(self, expr)
        else:
            self.expr(expr)
        if expr.dtype.scalar != index:
            facts = {"expected": index, "found": expr.dtype, "index": _text(expr)}
            self.refuse(V007, "convert it with `.to(i64)`", buffer=buffer.name, **facts)

    def condition(self, expr: tir.Expr) -> None:
        self.expr(expr)
        if not expr.dtype.is_bool:
            self.refuse(V011, "compare it, for example with `.ne(0)`", found=expr.dtype)

    def access(self, buffer: tir.Buffer, indices: tuple[tir.Expr, ...]) -> int:
        """The buffer exists and the indices fit; returns the number of lanes."""
        if buffer not in self.buffers:
            self.refuse(V004, "allocate it, or make it a parameter", buffer=buffer.name)
        if len(indices) != len(buffer.shape):
            facts = {"expected": len(buffer.shape), "found": len(indices)}
            self.refuse(V006, ONE_INDEX, buffer=buffer.name, **facts)
        for part in indices:
            self.index(part, buffer)
        lanes = {i.dtype.lanes for i in indices} - {1}
        if len(lanes) > 1:
            self.refuse(V025, ONE_LENGTH, operation=buffer.name, found=sorted(lanes))
        return lanes.pop() if lanes else 1

    def literal(self, const: tir.Const) -> None:
        value, dtype = const.value, const.dtype
        if dtype.is_float:
            fits = isinstance(value, float)
        elif dtype.is_bool:
            fits = isinstance(value, bool)
        else:
            fits = type(value) is int and dtype.min_value <= value <= dtype.max_value
        if not fits or dtype.lanes != 1:
            hint = "write a value of that type, or use a wider one"
            self.refuse(V023, hint, expected=dtype, found=repr(value))

    def binary(self, expr: tir.Binary) -> None:
        a, b = expr.a, expr.b
        self.expr(a)
        self.expr(b)
        if a.dtype != b.dtype:
            code, hint = V008, f"convert one of them, for example with `.to({a.dtype.scalar})`"
            if a.dtype.scalar == b.dtype.scalar:
                code, hint = V025, ONE_LENGTH
            found = f"{a.dtype} and {b.dtype}"
            self.refuse(code, hint, operation=expr.symbol, found=found, expression=_text(expr))
        self.allowed(expr.symbol, a.dtype, _ALLOWED[type(expr)])
        if expr.dtype != type(expr)(a, b).dtype:
            self.refuse(V031, OWN_TYPE, operation=expr.symbol, found=expr.dtype)

    def allowed(self, operation: str, dtype: DType, kinds: str) -> None:
        """`kinds` has a letter for each allowed kind of dtype: i(nteger), f(loat), b(ool)."""
        kind = "f" if dtype.is_float else "b" if dtype.is_bool else "i"
        if dtype.is_stored and kind in kinds:
            wide = dtype.computed.scalar
            hint = f"convert it to {wide} first, for example with `.to({wide})`"
            self.refuse(V009, hint, operation=operation, found=dtype.scalar)
        if kind not in kinds:
            expected = " or ".join(_KIND_WORDS[k] for k in kinds)
            hint = f"convert to {expected} first, or use another operation"
            if operation == "/":
                hint = "write `//` for the quotient of integers, or convert to floats first"
            self.refuse(V010, hint, operation=operation, expected=expected, found=dtype)


def _text(expr: tir.Expr) -> str:
    from tilewright.tensor.printer import print_node  # only when an error is made

    return print_node(expr)


_KIND_WORDS: Final = {"i": "integers", "f": "floats", "b": "bools"}

_ALLOWED: Final[dict[type[tir.Binary], str]] = {
    **dict.fromkeys((tir.Add, tir.Sub, tir.Mul, tir.Min, tir.Max, tir.Lt, tir.Le), "if"),
    **dict.fromkeys((tir.BitAnd, tir.BitOr, tir.BitXor), "ib"),
    **dict.fromkeys((tir.FloorDiv, tir.FloorMod, tir.ShiftLeft, tir.ShiftRight), "i"),
    **dict.fromkeys((tir.Eq, tir.Ne), "ifb"),
    tir.Div: "f",
}


def _not(check: ExprChecker, expr: tir.Not) -> None:
    check.expr(expr.value)
    check.allowed("not", expr.dtype, "ib")


def _neg(check: ExprChecker, expr: tir.Neg) -> None:
    check.expr(expr.value)
    check.allowed("-", expr.dtype, "if")


def _cast(check: ExprChecker, expr: tir.Cast) -> None:
    check.expr(expr.value)
    if expr.dtype.lanes != expr.value.dtype.lanes:
        expected = f"{expr.value.dtype.lanes} lanes"
        check.refuse(
            V022, "a cast changes the type of each lane", expected=expected, found=expr.dtype
        )


def _reinterpret(check: ExprChecker, expr: tir.Reinterpret) -> None:
    check.expr(expr.value)
    old, new = expr.value.dtype, expr.dtype
    # The number of lanes may change: four i16 are the bits of one i64.
    if old.bits * old.lanes != new.bits * new.lanes or new.is_bool:
        hint = "choose a type of as many bits, or convert the value with `.to(…)`"
        check.refuse(V022, hint, expected=f"{old.bits * old.lanes} bits", found=new)


def _select(check: ExprChecker, expr: tir.Select) -> None:
    check.condition(expr.cond)
    check.expr(expr.if_true)
    check.expr(expr.if_false)
    if expr.if_true.dtype != expr.if_false.dtype:
        hint = f"convert one of them, for example with `.to({expr.if_true.dtype})`"
        check.refuse(V013, hint, found=f"{expr.if_true.dtype} and {expr.if_false.dtype}")
    if expr.cond.dtype.lanes not in (1, expr.dtype.lanes):
        found = [expr.cond.dtype.lanes, expr.dtype.lanes]
        check.refuse(V025, ONE_LENGTH, operation="select", found=found)


def _load(check: ExprChecker, expr: tir.Load) -> None:
    lanes = check.access(expr.buffer, expr.indices)
    if expr.dtype != expr.buffer.dtype.vector(lanes):
        check.refuse(V031, OWN_TYPE, operation=expr.buffer.name, found=expr.dtype)


def _call(check: ExprChecker, expr: tir.Call) -> None:
    if expr.name.startswith("llvm."):  # its signature stands in `intrin/llvm_calls.py`
        for arg in expr.args:
            check.expr(arg)
        return
    function = FUNCTIONS.get(expr.name)
    if function is None:
        close = get_close_matches(expr.name, FUNCTIONS, n=1)
        hint = f"did you mean `{close[0]}`?" if close else f"known: {', '.join(sorted(FUNCTIONS))}"
        check.refuse(V021, hint, function=expr.name, expected="a known function")
    for arg in expr.args:
        check.expr(arg)
    if len(expr.args) != function.arity:
        facts = {"expected": f"{function.arity} arguments", "found": len(expr.args)}
        hint = "give the function as many arguments as it takes"
        check.refuse(V021, hint, function=expr.name, **facts)
    if any(a.dtype != expr.dtype for a in expr.args):
        found = ", ".join(a.dtype.name for a in expr.args)
        facts = {"expected": f"arguments of {expr.dtype}", "found": found}
        hint = f"convert the arguments with `.to({expr.dtype})`"
        check.refuse(V021, hint, function=expr.name, **facts)
    check.allowed(expr.name, expr.dtype, function.kinds)


def _tile(check: ExprChecker, expr: tir.TileStart | tir.TileSize) -> None:
    check.expr(expr.tile)
    if expr.tile.dtype != index:
        check.refuse(V030, COVER, expected=index, found=expr.tile.dtype)
    for size, count in expr.cover.segments:
        check.expr(count)
        if size <= 0 or count.dtype != index:
            check.refuse(V030, COVER, found=f"size {size}, count of {count.dtype}")


def _let(check: ExprChecker, expr: tir.Let) -> None:
    check.expr(expr.value)
    if expr.var.dtype != expr.value.dtype:
        facts = {"expected": expr.value.dtype, "found": expr.var.dtype}
        check.refuse(V031, OWN_TYPE, operation=expr.var.name, **facts)
    check.bind(expr.var)
    check.expr(expr.body)
    check.visible.discard(expr.var)


def _ramp(check: ExprChecker, expr: tir.Ramp) -> None:
    check.expr(expr.base)
    check.expr(expr.stride)
    scalar = expr.base.dtype.lanes == 1 and expr.base.dtype == expr.stride.dtype
    if not scalar or not expr.base.dtype.is_integer or expr.lanes < 2:
        found = f"{expr.base.dtype}, {expr.stride.dtype}, {expr.lanes} lanes"
        expected = "integers and two lanes or more"
        hint = "a ramp counts the lanes of an index: `ramp(i * 8, 1, 8)`"
        check.refuse(V032, hint, operation="ramp", expected=expected, found=found)


def _prefix(check: ExprChecker, expr: tir.Prefix) -> None:
    check.expr(expr.base)
    check.expr(expr.count)
    if expr.base.dtype != index or expr.count.dtype != index or expr.lanes < 2:
        found = f"{expr.base.dtype}, {expr.count.dtype}, {expr.lanes} lanes"
        expected = "two indices and two lanes or more"
        hint = "a prefix is an index whose first lanes are on: `prefix(i * 8, n - i * 8, 8)`"
        check.refuse(V032, hint, operation="prefix", expected=expected, found=found)


def _prefix_as_value(check: ExprChecker, expr: tir.Prefix) -> None:
    found, hint = _text(expr), "count lanes with `ramp(0, 1, 8)`, and compare them with the bound"
    check.refuse(V032, hint, operation="prefix", expected="the index of an access", found=found)


def _broadcast(check: ExprChecker, expr: tir.Broadcast) -> None:
    check.expr(expr.value)
    if expr.value.dtype.lanes != 1 or expr.lanes < 2:
        found = f"{expr.value.dtype}, {expr.lanes} lanes"
        expected = "a scalar and two lanes or more"
        hint = "`broadcast(x, 8)` repeats a scalar"
        check.refuse(V032, hint, operation="broadcast", expected=expected, found=found)


def _reduce(check: ExprChecker, expr: tir.Reduce) -> None:
    check.expr(expr.value)
    if expr.value.dtype.lanes == 1:
        found = expr.value.dtype
        word, hint = f"reduce_{expr.fold.value}", "use the scalar as it is"
        check.refuse(V032, hint, operation=word, expected="a vector", found=found)
    check.allowed(f"reduce_{expr.fold.value}", expr.value.dtype, "if")


_RULES: Final[dict[type[tir.Expr], Callable[[ExprChecker, Any], None]]] = {
    tir.Var: ExprChecker.unknown,
    tir.Not: _not,
    tir.Neg: _neg,
    tir.Cast: _cast,
    tir.Reinterpret: _reinterpret,
    tir.Select: _select,
    tir.Load: _load,
    tir.Call: _call,
    tir.TileStart: _tile,
    tir.TileSize: _tile,
    tir.Let: _let,
    tir.Ramp: _ramp,
    tir.Prefix: _prefix_as_value,
    tir.Broadcast: _broadcast,
    tir.Reduce: _reduce,
}
