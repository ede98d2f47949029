"""Annotations in the text: values of notes, covers and layout steps."""

from __future__ import annotations

import ast

from tilewright.tensor import ir as tir
from tilewright.tensor.layout import LayoutStep
from tilewright.tensor.text.parse_expr import ExprParser
from tilewright.tensor.text.source import P005, P006, P007, P012, number_of, parts_of

__all__ = ["ValueParser"]


class ValueParser(ExprParser):
    """Adds what may stand in notes and layouts."""

    def value(self, tree: ast.expr) -> object:
        """A note's value or a layout step's field."""
        match tree:
            case ast.Constant() | ast.UnaryOp(op=ast.USub(), operand=ast.Constant()):
                return tree.value if isinstance(tree, ast.Constant) else number_of(tree)
            case ast.Tuple(elts=parts):
                return tuple(self.value(part) for part in parts)
            case ast.Call(func=ast.Name(id="cover")):
                return self.cover(tree)
            case ast.Call(func=ast.Name(id="expr"), args=[inside], keywords=[]):
                return self.expr(inside)
            case ast.Call(func=ast.Name(id=name)):
                return self.layout_step(tree, name)
            case ast.Name(id=name) if self.dtype(name) is not None:
                return self.dtype(name)
        hint = "a note is a number, a text, a type, a layout step, `expr(…)` or a tuple of such"
        raise self.source.error(P005, tree, hint, found=ast.unparse(tree))

    def notes(self, keywords: list[ast.keyword]) -> tuple[tuple[str, object], ...]:
        """Notes from keyword arguments; `**{"a.b": 1}` for keys that are no names."""
        found: list[tuple[str, object]] = []
        for keyword in keywords:
            match keyword:
                case ast.keyword(arg=str() as key, value=value):
                    found.append((key, self.value(value)))
                case ast.keyword(arg=None, value=ast.Dict(keys=[ast.Constant(value=str() as key)])):
                    found.append((key, self.value(keyword.value.values[0])))  # type: ignore[attr-defined]
                case _:
                    raise self.source.error(P005, keyword.value, "a note is written `key=value`")
        return tuple(found)

    def make_buffer(
        self,
        name: str,
        tree: ast.expr,
        scope: tir.Scope = tir.Scope.MEMORY,
        *,
        new_sizes: bool = False,
    ) -> tir.Buffer:
        """The buffer of type `tree`; with `new_sizes`, unknown names in its shape are sizes."""
        steps: tuple[LayoutStep, ...] = ()
        match tree:
            case ast.BinOp(
                left=plain, op=ast.MatMult(), right=ast.Call(func=ast.Name(id="layout"))
            ):
                call = tree.right
                assert isinstance(call, ast.Call)
                steps = tuple(self.layout_step(step, _word(step)) for step in call.args)
                tree = plain
        match tree:
            case ast.Subscript(value=ast.Name() as element, slice=shape):
                if new_sizes:
                    self.declare_sizes(shape)
                return tir.Buffer(
                    name, self.indices(shape), self.dtype_argument(element), scope, steps
                )
        hint = "a type is written `f32[8, 16]`, and `f32[()]` without dimensions"
        raise self.source.error(P007, tree, hint, found=ast.unparse(tree))

    def declare_sizes(self, shape: ast.expr) -> None:
        for part in parts_of(shape):
            for tree in ast.walk(part):
                if (
                    isinstance(tree, ast.Name)
                    and tree.id not in self.names
                    and not _is_called(part, tree)
                ):
                    self.names[tree.id] = tir.Var(tree.id)

    def layout_step(self, tree: ast.expr, name: str) -> LayoutStep:
        kind = _layout_steps().get(name)
        if kind is None or not isinstance(tree, ast.Call) or tree.keywords:
            known = ", ".join(sorted(_layout_steps())) or "none"
            raise self.source.error(P012, tree, f"known: {known}", step=name)
        if len(tree.args) > len(kind.fields):
            expected = f"at most {len(kind.fields)} arguments"
            hint = f"write `{name}({', '.join(kind.fields)})`"
            facts = {"expected": expected, "found": len(tree.args)}
            raise self.source.error(P006, tree, hint, word=name, **facts)
        made: LayoutStep = kind(*(self.value(a) for a in tree.args))
        return made


def _word(tree: ast.expr) -> str:
    match tree:
        case ast.Call(func=ast.Name(id=name)):
            return name
    return ast.unparse(tree)


def _is_called(root: ast.AST, name: ast.Name) -> bool:
    return any(isinstance(t, ast.Call) and t.func is name for t in ast.walk(root))


def _layout_steps() -> dict[str, type[LayoutStep]]:
    """All classes of layout steps by name, however they are registered."""
    found: dict[str, type[LayoutStep]] = {}
    open_ends: list[type[LayoutStep]] = [LayoutStep]
    while open_ends:
        for kind in open_ends.pop().__subclasses__():
            open_ends.append(kind)
            if "own_fields" in kind.__dict__:  # made by `node`, not its undecorated original
                found[kind.__name__] = kind
    return found
