"""The text being parsed, and errors that point into it."""

from __future__ import annotations

import ast

from tilewright.errors import Code, ParseError

__all__ = ["Source", "number_of", "parts_of"]

P001 = Code("P001", "the text is not valid Python syntax")
P002 = Code("P002", "expected the text of one program, `def name(A: f32[8, 8], …):`")
P003 = Code("P003", "the name `{name}` is not defined here")
P004 = Code("P004", "this is not a statement of the tensor IR")
P005 = Code("P005", "this is not an expression of the tensor IR")
P006 = Code("P006", "`{word}` takes {expected}")
P007 = Code("P007", "this is not the type of a buffer")
P008 = Code("P008", "this is not an iterator of a block")
P009 = Code("P009", "the literal does not fit its type")
P010 = Code("P010", "`{word}` is not a kind of loop")
P011 = Code("P011", "the name `{name}` is already in use here")
P012 = Code("P012", "the layout step `{step}` is not known")


class Source:
    """The text being parsed; errors show its line with a caret."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.lines = text.splitlines()

    def error(
        self, code: Code, at: ast.AST | tuple[int, int], hint: str = "", **facts: object
    ) -> ParseError:
        """The error `code` at a syntax node or a (line, column), both counted from one."""
        if isinstance(at, ast.AST):
            line, column = getattr(at, "lineno", 1), getattr(at, "col_offset", 0) + 1
        else:
            line, column = at
        where = {"line": line, "column": column}
        excerpt = _Excerpt(self.lines, line, column)
        return ParseError(code, where | facts, hint=hint, program=excerpt)


class _Excerpt:
    """One line of text with a caret; stands where other errors show a program."""

    def __init__(self, lines: list[str], line: int, column: int) -> None:
        self.line = lines[line - 1] if 0 < line <= len(lines) else ""
        self.column = column

    def marked_text(self, marks: object) -> str:
        """The excerpt; there is nothing to mark but the caret."""
        del marks
        return f"{self.line}\n{' ' * (self.column - 1)}^"


def number_of(tree: ast.expr) -> object:
    """The number or string that a literal stands for; None for anything else."""
    match tree:
        case ast.Constant(value=bool() | int() | float() | str()):
            return tree.value
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)):
            return None if isinstance(value, bool) else -value
    return None


def parts_of(tree: ast.expr) -> list[ast.expr]:
    """The elements of a tuple; anything else by itself."""
    return tree.elts if isinstance(tree, ast.Tuple) else [tree]
