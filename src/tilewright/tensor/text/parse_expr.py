"""Expressions of the tensor IR from Python syntax trees. Nothing is ever evaluated.

Operators build the plain node (no folding), so that text which was printed from a program gives the
same program. In text written by hand, a bare number takes the type of its partner: `A[i] * 2`.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from difflib import get_close_matches
from typing import Final

from tilewright.dtypes import DTYPES, DType, boolean, f32, index
from tilewright.errors import ParseError
from tilewright.tensor import ir as tir
from tilewright.tensor.text.parse_calls import CALLS
from tilewright.tensor.text.source import P003, P005, P006, P007, P009, Source, number_of, parts_of

__all__ = ["ExprParser"]

BINARY: Final[dict[type[ast.operator], type[tir.Binary]]] = {
    ast.Add: tir.Add,
    ast.Sub: tir.Sub,
    ast.Mult: tir.Mul,
    ast.Div: tir.Div,
    ast.FloorDiv: tir.FloorDiv,
    ast.Mod: tir.FloorMod,
    ast.BitAnd: tir.BitAnd,
    ast.BitOr: tir.BitOr,
    ast.BitXor: tir.BitXor,
    ast.LShift: tir.ShiftLeft,
    ast.RShift: tir.ShiftRight,
}

COMPARE: Final[dict[type[ast.cmpop], Callable[[tir.Expr, tir.Expr], tir.Expr]]] = {
    ast.Eq: tir.Eq,
    ast.NotEq: tir.Ne,
    ast.Lt: tir.Lt,
    ast.LtE: tir.Le,
    ast.Gt: lambda a, b: tir.Lt(b, a),
    ast.GtE: lambda a, b: tir.Le(b, a),
}

EXPRESSIONS = "arithmetic, single comparisons, accesses by index and calls are"
COVER = "a cover is written `cover((6, 21), (2, 1))`"


class ExprParser:
    """Turns syntax trees into expressions; `names` holds what is in scope."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.names: dict[str, tir.Var | tir.Buffer] = {}

    def expr(self, tree: ast.expr) -> tir.Expr:
        """The expression that `tree` means."""
        match tree:
            case ast.Constant() | ast.UnaryOp(op=ast.USub(), operand=ast.Constant()):
                return self.literal(tree)
            case ast.Name(id=name):
                return self.variable(tree, name)
            case ast.BinOp(left=left, op=op, right=right) if type(op) in BINARY:
                return BINARY[type(op)](*self.pair(left, right))
            case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in COMPARE:
                return COMPARE[type(op)](*self.pair(left, right))
            case ast.BoolOp(op=op, values=[first, *rest]):
                result = self.expr(first)
                kind = tir.BitAnd if isinstance(op, ast.And) else tir.BitOr
                for part in rest:
                    result = kind(result, self.expr(part))
                return result
            case ast.UnaryOp(op=ast.USub(), operand=value):
                return tir.Neg(self.expr(value))
            case ast.UnaryOp(op=ast.Not() | ast.Invert(), operand=value):
                return tir.Not(self.expr(value))
            case ast.Subscript(value=ast.Name(id=name), slice=where):
                return tir.Load(self.buffer(tree, name), self.indices(where))
            case ast.Call(func=ast.Name(id=name)):
                return self.call(tree, name)
        raise self.source.error(P005, tree, EXPRESSIONS, found=ast.unparse(tree))

    def pair(self, left: ast.expr, right: ast.expr) -> tuple[tir.Expr, tir.Expr]:
        a, b = self.expr(left), self.expr(right)
        if a.dtype != b.dtype:
            a, b = self.lifted(left, a, b.dtype), self.lifted(right, b, a.dtype)
        return a, b

    def lifted(self, tree: ast.expr, value: tir.Expr, dtype: DType) -> tir.Expr:
        """A bare number in the type of its partner; anything else as it is."""
        bare = type(value) is tir.Const and not isinstance(tree, ast.Call)
        if not bare or value.dtype == dtype or value.dtype.is_bool or dtype.is_bool:
            return value
        if dtype.lanes > 1 or (dtype.is_integer and value.dtype.is_float):
            return value
        return self.number(tree, value.value, dtype)  # type: ignore[attr-defined]  # a Const

    def literal(self, tree: ast.expr) -> tir.Expr:
        value = number_of(tree)
        if isinstance(value, bool):
            return tir.Const(value, boolean)
        if isinstance(value, int):
            return self.number(tree, value, index)
        if isinstance(value, float):
            return tir.Const(value, f32)
        raise self.source.error(P005, tree, EXPRESSIONS, found=ast.unparse(tree))

    def number(self, tree: ast.AST, value: object, dtype: DType) -> tir.Const:
        """`value` as a literal of `dtype`."""
        if dtype.lanes == 1 and dtype.is_float and isinstance(value, (int, float, str)):
            try:
                return tir.Const(float(value), dtype)
            except ValueError:
                pass
        elif dtype.lanes == 1 and isinstance(value, int):
            is_bool = type(value) is bool
            if is_bool == dtype.is_bool and dtype.min_value <= value <= max(dtype.max_value, 1):
                return tir.Const(value, dtype)
        hint = "write a value of this type, or use another type"
        raise self.source.error(P009, tree, hint, expected=dtype.name, found=repr(value))

    def variable(self, tree: ast.AST, name: str) -> tir.Var:
        found = self.names.get(name)
        if not isinstance(found, tir.Var):
            hint = f"`{name}` is a buffer: give indices"
            raise self.unknown(tree, name, hint if found is not None else "")
        return found

    def buffer(self, tree: ast.AST, name: str) -> tir.Buffer:
        found = self.names.get(name)
        if not isinstance(found, tir.Buffer):
            hint = f"`{name}` is a number, not a buffer"
            raise self.unknown(tree, name, hint if found is not None else "")
        return found

    def unknown(self, tree: ast.AST, name: str, hint: str) -> ParseError:
        """The error for a name that means nothing here, or something else."""
        close = get_close_matches(name, self.names, n=1)
        known = f"did you mean `{close[0]}`?" if close else f"known here: {', '.join(self.names)}"
        return self.source.error(P003, tree, hint or known, name=name)

    def indices(self, tree: ast.expr) -> tuple[tir.Expr, ...]:
        return tuple(self.expr(part) for part in parts_of(tree))

    def region(self, tree: ast.expr) -> tir.Region:
        """`A[i, 0:16]`."""
        match tree:
            case ast.Subscript(value=ast.Name(id=name), slice=where):
                ranges = tuple(self.span(part) for part in parts_of(where))
                return tir.Region(self.buffer(tree, name), ranges)
        raise self.source.error(
            P005, tree, "a region is written `A[i, 0:16]`", found=ast.unparse(tree)
        )

    def span(self, tree: ast.expr) -> tir.Range:
        if not isinstance(tree, ast.Slice):
            return tir.Range(self.expr(tree), tir.Const(1))
        if tree.lower is None or tree.upper is None or tree.step is not None:
            raise self.source.error(
                P005, tree, "a range is written `start:stop`", found=ast.unparse(tree)
            )
        start, stop = self.expr(tree.lower), self.expr(tree.upper)
        if tir.int_value(start) == 0:
            return tir.Range(start, stop)
        if type(stop) is tir.Add and stop.a == start:
            return tir.Range(start, stop.b)
        return tir.Range(start, stop - start)

    def call(self, tree: ast.Call, word: str) -> tir.Expr:
        dtype = self.dtype(word)
        if dtype is not None:
            return self.conversion(tree, word, dtype)
        rule = CALLS.get(word)
        if rule is not None:
            return rule(self, tree, word)
        return self.function(tree, word, tree.args)

    def arguments(self, tree: ast.Call, word: str, count: int) -> list[ast.expr]:
        if len(tree.args) != count or tree.keywords:
            expected = f"{count} argument{'s' if count != 1 else ''}"
            hint = f"write `{word}({', '.join('abc'[:count])})`"
            raise self.source.error(
                P006, tree, hint, word=word, expected=expected, found=ast.unparse(tree)
            )
        return tree.args

    def conversion(self, tree: ast.Call, word: str, dtype: DType) -> tir.Expr:
        (inside,) = self.arguments(tree, word, 1)
        value = number_of(inside)
        return (
            tir.Cast(dtype, self.expr(inside)) if value is None else self.number(tree, value, dtype)
        )

    def function(self, tree: ast.Call, name: str, args: list[ast.expr]) -> tir.Expr:
        values = tuple(self.expr(a) for a in args)
        dtype = values[0].dtype if values else index
        for keyword in tree.keywords:
            if keyword.arg != "dtype":
                expected, hint = "no keyword but `dtype`", "pass the arguments by position"
                raise self.source.error(P006, tree, hint, word=name, expected=expected)
            dtype = self.dtype_argument(keyword.value)
        return tir.Call(name, values, dtype)

    def dtype(self, name: str) -> DType | None:
        """`f32` or `f32x8`; None if it is no type."""
        base, _, lanes = name.partition("x")
        if base not in DTYPES or (lanes and not lanes.isdecimal()):
            return None
        return DTYPES[base].vector(int(lanes)) if lanes else DTYPES[base]

    def dtype_argument(self, tree: ast.expr) -> DType:
        dtype = self.dtype(tree.id) if isinstance(tree, ast.Name) else None
        if dtype is None:
            raise self.source.error(
                P007, tree, f"known: {', '.join(DTYPES)}", found=ast.unparse(tree)
            )
        return dtype

    def integer(self, tree: ast.expr) -> int:
        value = number_of(tree)
        if type(value) is not int:
            facts = {"expected": "an integer", "found": ast.unparse(tree)}
            raise self.source.error(P009, tree, "write a whole number", **facts)
        return value

    def cover(self, tree: ast.expr) -> tir.Cover:
        """`cover((6, 21), (2, 1))`."""
        match tree:
            case ast.Call(func=ast.Name(id="cover"), args=args, keywords=[]):
                segments = []
                for part in args:
                    if not isinstance(part, ast.Tuple) or len(part.elts) != 2:
                        expected = "pairs (tile size, number of tiles)"
                        raise self.source.error(P006, part, COVER, word="cover", expected=expected)
                    segments.append((self.integer(part.elts[0]), self.expr(part.elts[1])))
                return tir.Cover(tuple(segments))
        raise self.source.error(P005, tree, COVER)
