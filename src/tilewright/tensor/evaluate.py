"""Values of expressions, as NumPy scalars and (after lowering) arrays of lanes.

Each expression is turned once into nested Python functions, so that the interpreter does not look
at the same tree again for every iteration.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from tilewright.dtypes import DType
from tilewright.errors import Code, ProgramError
from tilewright.tensor import ir as tir
from tilewright.tensor.functions import FUNCTIONS, apply
from tilewright.tensor.to_integer import to_integer

__all__ = ["Evaluator", "Memory"]

V201 = Code("V201", "`{buffer}` is accessed outside of its shape")
V202 = Code("V202", "an element of `{buffer}` is read before it is written")
V206 = Code("V206", "the value of variable `{variable}` is not known")
V207 = Code("V207", "the function `{function}` is not known")

_HINTS: Final = {
    V201: "keep the index inside of the buffer, also on the side of a select that is not taken",
    V202: "write the element first: nothing has a value by itself",
}

Thunk = Callable[[], Any]


@dataclass
class Memory:
    """The elements of a buffer, and which of them have a value (None: all)."""

    data: np.ndarray
    defined: np.ndarray | None

    @staticmethod
    def undefined(shape: tuple[int, ...], dtype: DType) -> Memory:
        """Elements without values."""
        return Memory(np.zeros(shape, dtype.numpy), np.zeros(shape, np.bool_))

    def is_defined(self) -> bool:
        return self.defined is None or bool(self.defined.all())

    def first_undefined(self) -> tuple[int, ...]:
        """Where the first element without a value is."""
        assert self.defined is not None
        return tuple(int(i) for i in np.argwhere(~self.defined)[0])


class Evaluator:
    """Holds the values of variables and the memory of buffers while a program runs."""

    def __init__(self, func: tir.Func) -> None:
        self.func = func
        self.values: dict[tir.Var, Any] = {}
        self.memory: dict[tir.Buffer, Memory] = {}
        # By identity: the expressions live as long as the program that is run.
        self._thunks: dict[int, tuple[tir.Expr, Thunk]] = {}

    def value(self, expr: tir.Expr) -> Any:
        """The value of `expr` now."""
        found = self._thunks.get(id(expr))
        if found is None:
            found = self._thunks[id(expr)] = (expr, self.thunk(expr))
        return found[1]()

    def thunk(self, expr: tir.Expr) -> Thunk:
        """A function that evaluates `expr` each time it is called."""
        if isinstance(expr, tir.Binary):
            return self._binary(expr)
        return _THUNKS[tir.Var if isinstance(expr, tir.Var) else type(expr)](self, expr)

    def position(self, access: tir.Load | tir.Store) -> Thunk:
        """A function that gives the indices of an access, checked against the shape."""
        buffer = access.buffer
        thunks = [self.thunk(i) for i in access.indices]
        scalar = all(i.dtype.lanes == 1 for i in access.indices)

        def find() -> tuple[Any, ...]:
            where = tuple([index() for index in thunks])
            for at, length in zip(where, self.memory[buffer].data.shape, strict=True):
                inside = 0 <= at < length if scalar else np.all((at >= 0) & (at < length))
                if not inside:
                    self._refuse(V201, buffer, where, access)
            return where

        return find

    def _refuse(
        self, code: Code, buffer: tir.Buffer, where: Any, access: tir.Expr | tir.Stmt
    ) -> None:
        facts = {
            "buffer": buffer.name,
            "index": ", ".join(str(i) for i in where),
            "shape": list(self.memory[buffer].data.shape),
        }
        scalars = [f"{v.name} = {x}" for v, x in self.values.items() if np.ndim(x) == 0]
        if scalars:
            facts["variables"] = ", ".join(scalars)
        marks, hint = {"access": access}, _HINTS[code]
        raise ProgramError(code, facts, program=self.func, marks=marks, hint=hint)

    def _variable(self, expr: tir.Var) -> Thunk:
        values = self.values

        def get() -> Any:
            try:
                return values[expr]
            except KeyError:
                facts, marks = {"variable": expr.name}, {"here": expr}
                hint = "bind it by a loop or an iterator, or give its value in `sizes_given`"
                raise ProgramError(V206, facts, program=self.func, marks=marks, hint=hint) from None

        return get

    def _constant(self, expr: tir.Const) -> Thunk:
        value = expr.dtype.numpy.type(expr.value)
        return lambda: value

    def _binary(self, expr: tir.Binary) -> Thunk:
        a, b, apply_both = self.thunk(expr.a), self.thunk(expr.b), _OPERATORS[type(expr)]
        return lambda: apply_both(a(), b())

    def _not(self, expr: tir.Not) -> Thunk:
        value, change = self.thunk(expr.value), np.logical_not if expr.dtype.is_bool else np.invert
        return lambda: change(value())

    def _neg(self, expr: tir.Neg) -> Thunk:
        value = self.thunk(expr.value)
        return lambda: np.negative(value())

    def _cast(self, expr: tir.Cast) -> Thunk:
        value, dtype = self.thunk(expr.value), expr.dtype.numpy
        if expr.value.dtype.is_float and expr.dtype.is_integer and not expr.dtype.is_small:
            return lambda: to_integer(value(), expr.dtype)[()]
        if expr.value.dtype.is_small:  # ml_dtypes does not convert every type to every other
            wide = expr.value.dtype.computed.numpy
            return lambda: value().astype(wide).astype(dtype)
        return lambda: value().astype(dtype)

    def _reinterpret(self, expr: tir.Reinterpret) -> Thunk:
        value, dtype = self.thunk(expr.value), expr.dtype.numpy
        return lambda: np.asarray(value()).view(dtype)[()]

    def _select(self, expr: tir.Select) -> Thunk:
        cond, yes, no = (self.thunk(e) for e in (expr.cond, expr.if_true, expr.if_false))

        def choose() -> Any:
            where, a, b = cond(), yes(), no()
            if np.ndim(where):
                return np.where(where, a, b)
            return a if where else b

        return choose

    def _load(self, expr: tir.Load) -> Thunk:
        buffer, position = expr.buffer, self.position(expr)

        def load() -> Any:
            memory, where = self.memory[buffer], position()
            if memory.defined is not None and not np.all(memory.defined[where]):
                self._refuse(V202, buffer, where, expr)
            return memory.data[where]

        def load_one() -> Any:
            memory, where = self.memory[buffer], position()
            if memory.defined is not None and not memory.defined[where]:
                self._refuse(V202, buffer, where, expr)
            return memory.data[where]

        def load_prefix() -> Any:
            found = load()
            lanes = np.zeros(expr.dtype.lanes, found.dtype)
            lanes[: len(found)] = found
            return lanes

        if any(type(i) is tir.Prefix for i in expr.indices):
            return load_prefix
        return load_one if expr.dtype.lanes == 1 else load

    def _call(self, expr: tir.Call) -> Thunk:
        if expr.name not in FUNCTIONS:
            hint = "say what it means with `tensor.functions.register`"
            facts, marks = {"function": expr.name}, {"here": expr}
            raise ProgramError(V207, facts, hint=hint, program=self.func, marks=marks)
        args, name, dtype = [self.thunk(a) for a in expr.args], expr.name, expr.dtype
        return lambda: apply(name, [a() for a in args], dtype)

    def _tile(self, expr: tir.TileStart | tir.TileSize) -> Thunk:
        tile, which = self.thunk(expr.tile), int(type(expr) is tir.TileSize)
        segments = [(size, self.thunk(count)) for size, count in expr.cover.segments]

        def find() -> Any:
            number, position, size = int(tile()), 0, 1
            for size, count in segments:
                here = int(count())
                if number < here:
                    break
                position, number = position + here * size, number - here
            return np.int64((position + number * size, size)[which])

        return find

    def _let(self, expr: tir.Let) -> Thunk:
        value, body, values, var = (
            self.thunk(expr.value),
            self.thunk(expr.body),
            self.values,
            expr.var,
        )

        def bind() -> Any:
            values[var] = value()
            return body()

        return bind

    def _ramp(self, expr: tir.Ramp) -> Thunk:
        base, stride = self.thunk(expr.base), self.thunk(expr.stride)
        steps = np.arange(expr.lanes, dtype=expr.base.dtype.numpy)
        return lambda: base() + stride() * steps

    def _prefix(self, expr: tir.Prefix) -> Thunk:
        """The indices of the lanes that are on, and no others."""
        base, count, lanes = self.thunk(expr.base), self.thunk(expr.count), expr.lanes
        return lambda: base() + np.arange(min(max(int(count()), 0), lanes))

    def _broadcast(self, expr: tir.Broadcast) -> Thunk:
        value, lanes = self.thunk(expr.value), expr.lanes
        return lambda: np.repeat(np.asarray(value()), lanes)

    def _reduce(self, expr: tir.Reduce) -> Thunk:
        value, fold = self.thunk(expr.value), _FOLDS[expr.fold]

        def combine() -> Any:
            lanes = value()
            return fold.reduce(lanes, dtype=lanes.dtype)

        return combine


_OPERATORS: Final[dict[type[tir.Binary], Callable[[Any, Any], Any]]] = {
    tir.Add: operator.add,
    tir.Sub: operator.sub,
    tir.Mul: operator.mul,
    tir.Div: operator.truediv,
    tir.FloorDiv: operator.floordiv,
    tir.FloorMod: operator.mod,
    tir.Min: np.minimum,
    tir.Max: np.maximum,
    tir.BitAnd: operator.and_,
    tir.BitOr: operator.or_,
    tir.BitXor: operator.xor,
    tir.ShiftLeft: operator.lshift,
    tir.ShiftRight: operator.rshift,
    tir.Eq: operator.eq,
    tir.Ne: operator.ne,
    tir.Lt: operator.lt,
    tir.Le: operator.le,
}

_FOLDS: Final = {
    tir.Fold.ADD: np.add,
    tir.Fold.MUL: np.multiply,
    tir.Fold.MIN: np.minimum,
    tir.Fold.MAX: np.maximum,
}

_THUNKS: Final[dict[type[tir.Expr], Callable[[Evaluator, Any], Thunk]]] = {
    tir.Var: Evaluator._variable,
    tir.Const: Evaluator._constant,
    tir.Not: Evaluator._not,
    tir.Neg: Evaluator._neg,
    tir.Cast: Evaluator._cast,
    tir.Reinterpret: Evaluator._reinterpret,
    tir.Select: Evaluator._select,
    tir.Load: Evaluator._load,
    tir.Call: Evaluator._call,
    tir.TileStart: Evaluator._tile,
    tir.TileSize: Evaluator._tile,
    tir.Let: Evaluator._let,
    tir.Ramp: Evaluator._ramp,
    tir.Prefix: Evaluator._prefix,
    tir.Broadcast: Evaluator._broadcast,
    tir.Reduce: Evaluator._reduce,
}
