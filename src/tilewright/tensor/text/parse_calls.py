"""Words that look like calls in the text: `min(a, b)`, `select(…)`, `ramp(…)`, `let(x := …, …)`."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from tilewright.dtypes import DType
from tilewright.tensor import ir as tir
from tilewright.tensor.text.source import P006

if TYPE_CHECKING:
    from tilewright.tensor.text.parse_expr import ExprParser

__all__ = ["CALLS"]

Rule = Callable[["ExprParser", ast.Call, str], tir.Expr]


def _of_values(build: Callable[..., tir.Expr], count: int, *, alike: tuple[int, ...] = ()) -> Rule:
    """`word(a, b, …)`; the arguments numbered in `alike` have one type."""

    def parse(parser: ExprParser, tree: ast.Call, word: str) -> tir.Expr:
        trees = parser.arguments(tree, word, count)
        values = [parser.expr(a) for a in trees]
        for one, other in (alike, alike[::-1]) if alike else ():
            values[one] = parser.lifted(trees[one], values[one], values[other].dtype)
        return build(*values)

    return parse


def _with_lanes(build: Callable[..., tir.Expr], count: int) -> Rule:
    def parse(parser: ExprParser, tree: ast.Call, word: str) -> tir.Expr:
        *values, lanes = parser.arguments(tree, word, count)
        return build(*(parser.expr(v) for v in values), parser.integer(lanes))

    return parse


def _with_dtype(build: Callable[[DType, tir.Expr], tir.Expr]) -> Rule:
    def parse(parser: ExprParser, tree: ast.Call, word: str) -> tir.Expr:
        dtype, value = parser.arguments(tree, word, 2)
        return build(parser.dtype_argument(dtype), parser.expr(value))

    return parse


def _with_cover(build: Callable[[tir.Cover, tir.Expr], tir.Expr]) -> Rule:
    def parse(parser: ExprParser, tree: ast.Call, word: str) -> tir.Expr:
        cover, tile = parser.arguments(tree, word, 2)
        return build(parser.cover(cover), parser.expr(tile))

    return parse


def _fold(fold: tir.Fold) -> Rule:
    return _of_values(lambda value: tir.Reduce(fold, value), 1)


def _let(parser: ExprParser, tree: ast.Call, word: str) -> tir.Expr:
    bound, body = parser.arguments(tree, word, 2)
    if not isinstance(bound, ast.NamedExpr):
        expected, hint = "a binding and a body", "write `let(x := value, body)`"
        raise parser.source.error(P006, tree, hint, word=word, expected=expected)
    value = parser.expr(bound.value)
    name = bound.target.id
    var, before = tir.Var(name, value.dtype), parser.names.get(name)
    parser.names[name] = var
    result = tir.Let(var, value, parser.expr(body))
    if before is None:
        del parser.names[name]
    else:
        parser.names[name] = before
    return result


def _named_call(parser: ExprParser, tree: ast.Call, word: str) -> tir.Expr:
    match tree.args:
        case [ast.Constant(value=str() as name), *rest]:
            return parser.function(tree, name, rest)
    expected, hint = "the name of a function first", 'write `call("exp", x)`'
    raise parser.source.error(P006, tree, hint, word=word, expected=expected)


CALLS: Final[dict[str, Rule]] = {
    "min": _of_values(tir.Min, 2, alike=(0, 1)),
    "max": _of_values(tir.Max, 2, alike=(0, 1)),
    "select": _of_values(tir.Select, 3, alike=(1, 2)),
    "neg": _of_values(tir.Neg, 1),
    "cast": _with_dtype(tir.Cast),
    "reinterpret": _with_dtype(tir.Reinterpret),
    "ramp": _with_lanes(tir.Ramp, 3),
    "prefix": _with_lanes(tir.Prefix, 3),
    "broadcast": _with_lanes(tir.Broadcast, 2),
    "tile_start": _with_cover(tir.TileStart),
    "tile_size": _with_cover(tir.TileSize),
    "let": _let,
    "call": _named_call,
    **{f"reduce_{fold.value}": _fold(fold) for fold in tir.Fold},
}
