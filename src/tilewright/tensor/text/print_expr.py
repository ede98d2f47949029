"""Expressions as text: Python's own operators and precedence, no parenthesis that is not needed.

Bare integers are of the index type and bare floats are `f32`; other literals carry their type
(`i8(3)`, `f64(0.5)`). `f32(x)` is a conversion.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from tilewright.dtypes import DTYPES, DType, f32, index
from tilewright.tensor import ir as tir
from tilewright.tensor.layout import LayoutStep
from tilewright.tensor.node import Node
from tilewright.tensor.text.names import Names

__all__ = ["ATOM", "RESERVED_CALLS", "ExprPrinter", "quoted"]

OR, AND, NOT, COMPARE, UNARY, ATOM = 1, 2, 3, 4, 11, 20

# Python's precedence of each binary operator; `min` and `max` print as calls.
PRECEDENCE: Final[dict[type[tir.Binary], int]] = {
    tir.Eq: COMPARE,
    tir.Ne: COMPARE,
    tir.Lt: COMPARE,
    tir.Le: COMPARE,
    tir.BitOr: 5,
    tir.BitXor: 6,
    tir.BitAnd: 7,
    tir.ShiftLeft: 8,
    tir.ShiftRight: 8,
    tir.Add: 9,
    tir.Sub: 9,
    tir.Mul: 10,
    tir.Div: 10,
    tir.FloorDiv: 10,
    tir.FloorMod: 10,
    tir.Min: ATOM,
    tir.Max: ATOM,
}

# Words that mean something other than a function call; such a function prints as `call("min", …)`.
RESERVED_CALLS: Final = frozenset(
    {"min", "max", "select", "cast", "reinterpret", "neg", "let", "ramp", "prefix"}
    | {"broadcast", "call"}
    | {"tile_start", "tile_size", "cover", "block", "alloc", "init", "reads", "writes", "where"}
    | {"notes", "barrier", "expr", "layout", "range", "S", "R"}
    | {"parallel", "vectorized", "unrolled"}
    | {f"reduce_{fold.value}" for fold in tir.Fold}
)


class ExprPrinter:
    """Text of expressions, regions, shapes and annotations, with names from `names`."""

    def __init__(self, names: Names) -> None:
        self.names = names

    def text(self, expr: tir.Expr, least: int = 0) -> str:
        """The text of `expr`, in parentheses if it binds weaker than `least`."""
        text, precedence = self._render(expr)
        return text if precedence >= least else f"({text})"

    def _render(self, expr: tir.Expr) -> tuple[str, int]:
        if isinstance(expr, tir.Var):
            return self.names.of(expr), ATOM
        if isinstance(expr, tir.Binary):
            return self._binary(expr)
        return _RENDER[type(expr)](self, expr)

    def _binary(self, expr: tir.Binary) -> tuple[str, int]:
        kind = type(expr)
        if kind is tir.Min or kind is tir.Max:
            return f"{expr.symbol}({self.text(expr.a)}, {self.text(expr.b)})", ATOM
        symbol, level = expr.symbol, PRECEDENCE[kind]
        if expr.dtype.is_bool and kind is tir.BitAnd:
            symbol, level = "and", AND
        elif expr.dtype.is_bool and kind is tir.BitOr:
            symbol, level = "or", OR
        left = level + (level == COMPARE)  # `a < b < c` would be a chain
        return f"{self.text(expr.a, left)} {symbol} {self.text(expr.b, level + 1)}", level

    def literal(self, expr: tir.Const) -> tuple[str, int]:
        value, dtype = expr.value, expr.dtype
        if dtype.is_bool:
            return repr(bool(value)), ATOM
        if dtype.is_float:
            value = float(value)
            if not math.isfinite(value):
                return f'{dtype.name}("{"nan" if math.isnan(value) else value}")', ATOM
        text = repr(value)
        if dtype in (index, f32):
            return text, UNARY if text.startswith("-") else ATOM
        return f"{dtype.name}({text})", ATOM

    def negation(self, expr: tir.Neg) -> tuple[str, int]:
        if type(expr.value) is tir.Const:  # `-1.0` is the literal
            return f"neg({self.text(expr.value)})", ATOM
        return f"-{self.text(expr.value, UNARY)}", UNARY

    def inversion(self, expr: tir.Not) -> tuple[str, int]:
        if expr.dtype.is_bool:
            return f"not {self.text(expr.value, NOT)}", NOT
        return f"~{self.text(expr.value, UNARY)}", UNARY

    def cast(self, expr: tir.Cast) -> tuple[str, int]:
        inside = self.text(expr.value)
        if type(expr.value) is tir.Const and not inside.endswith(")"):  # `f32(0)` is the literal
            return f"cast({expr.dtype.name}, {inside})", ATOM
        return f"{expr.dtype.name}({inside})", ATOM

    def call(self, expr: tir.Call) -> tuple[str, int]:
        parts = [self.text(a) for a in expr.args]
        if expr.dtype != (expr.args[0].dtype if expr.args else index):
            parts.append(f"dtype={expr.dtype.name}")
        plain = expr.name.isidentifier() and expr.name not in RESERVED_CALLS
        if plain and expr.name.partition("x")[0] not in DTYPES:
            return f"{expr.name}({', '.join(parts)})", ATOM
        return f"call({', '.join([quoted(expr.name), *parts])})", ATOM

    def access(self, buffer: tir.Buffer, indices: tuple[tir.Expr, ...]) -> str:
        """`A[i, j]`; `A[()]` for a buffer without dimensions."""
        inside = ", ".join([self.text(i) for i in indices]) or "()"
        return f"{self.names.of(buffer)}[{inside}]"

    def region(self, region: tir.Region) -> str:
        """`A[i, 0:16, j * 4:j * 4 + 4]`."""
        inside = ", ".join([self._range(r) for r in region.ranges]) or "()"
        return f"{self.names.of(region.buffer)}[{inside}]"

    def _range(self, span: tir.Range) -> str:
        start = self.text(span.start)
        if tir.int_value(span.extent) == 1:
            return start
        stop = span.extent if tir.int_value(span.start) == 0 else tir.Add(span.start, span.extent)
        return f"{start}:{self.text(stop)}"

    def cover(self, cover: tir.Cover) -> str:
        """`cover((6, 21), (2, 1))`: tile size and number of tiles of each segment."""
        parts = [f"({size}, {self.text(count)})" for size, count in cover.segments]
        return f"cover({', '.join(parts)})"

    def buffer_type(self, buffer: tir.Buffer) -> str:
        """`f32[8, 16]`, with the layout steps behind `@` if there are some."""
        shape = ", ".join([self.text(d) for d in buffer.shape]) or "()"
        text = f"{buffer.dtype.name}[{shape}]"
        if buffer.layout:
            text += f" @ layout({', '.join([self.value(step) for step in buffer.layout])})"
        return text

    def value(self, value: object) -> str:
        """A note's value or a layout step's field."""
        match value:
            case LayoutStep():
                inside = ", ".join([self.value(getattr(value, n)) for n in value.fields])
                return f"{type(value).__name__}({inside})"
            case tir.Cover():
                return self.cover(value)
            case tir.Expr():
                return f"expr({self.text(value)})"
            case DType():
                return value.name
            case str():
                return quoted(value)
            case tuple():
                inside = ", ".join([self.value(v) for v in value])
                return f"({inside},)" if len(value) == 1 else f"({inside})"
        return repr(value)

    def notes(self, notes: tuple[tuple[str, object], ...]) -> list[str]:
        """Keyword arguments, one for each note."""
        return [
            f"{key}={self.value(value)}"
            if key.isidentifier()
            else f"**{{{quoted(key)}: {self.value(value)}}}"
            for key, value in notes
        ]

    def other(self, node: Node) -> str:
        """Text of a part that is neither expression nor statement."""
        match node:
            case tir.Region():
                return self.region(node)
            case tir.Range():
                return self._range(node)
            case tir.Cover():
                return self.cover(node)
            case tir.Buffer():
                return f"{self.names.of(node)}: {self.buffer_type(node)}"
            case tir.Iter():
                return f"{self.names.of(node.var)} = {node.kind.value}({self.text(node.extent)})"
        return repr(node)


def quoted(text: str) -> str:
    """A string literal, in double quotes where that needs no escape."""
    inside = repr(text)
    return inside if '"' in text or "'" in text else f'"{inside[1:-1]}"'


def _call(name: str, *fields: str) -> Callable[[ExprPrinter, tir.Expr], tuple[str, int]]:
    """A rule that prints a node as a call with these fields as arguments."""

    def render(printer: ExprPrinter, expr: tir.Expr) -> tuple[str, int]:
        values = [getattr(expr, field) for field in fields]
        parts = [
            printer.text(v)
            if isinstance(v, tir.Expr)
            else printer.cover(v)
            if isinstance(v, tir.Cover)
            else v.name
            if isinstance(v, DType)
            else repr(v)
            for v in values
        ]
        return f"{name}({', '.join(parts)})", ATOM

    return render


def _let(printer: ExprPrinter, expr: tir.Let) -> tuple[str, int]:
    value = printer.text(expr.value)
    return f"let({printer.names.of(expr.var)} := {value}, {printer.text(expr.body)})", ATOM


def _load(printer: ExprPrinter, expr: tir.Load) -> tuple[str, int]:
    return printer.access(expr.buffer, expr.indices), ATOM


def _reduce(printer: ExprPrinter, expr: tir.Reduce) -> tuple[str, int]:
    return f"reduce_{expr.fold.value}({printer.text(expr.value)})", ATOM


_RENDER: Final[dict[type[tir.Expr], Callable[..., tuple[str, int]]]] = {
    tir.Const: ExprPrinter.literal,
    tir.Neg: ExprPrinter.negation,
    tir.Not: ExprPrinter.inversion,
    tir.Cast: ExprPrinter.cast,
    tir.Call: ExprPrinter.call,
    tir.Load: _load,
    tir.Let: _let,
    tir.Reduce: _reduce,
    tir.Select: _call("select", "cond", "if_true", "if_false"),
    tir.Reinterpret: _call("reinterpret", "dtype", "value"),
    tir.Ramp: _call("ramp", "base", "stride", "lanes"),
    tir.Prefix: _call("prefix", "base", "count", "lanes"),
    tir.Broadcast: _call("broadcast", "value", "lanes"),
    tir.TileStart: _call("tile_start", "cover", "tile"),
    tir.TileSize: _call("tile_size", "cover", "tile"),
}
