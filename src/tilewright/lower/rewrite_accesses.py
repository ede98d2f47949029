"""Walking a program to change the buffers and indices of its accesses, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tilewright.lower.simplify import loop_order
from tilewright.tensor import ir as tir
from tilewright.tensor.node import Node
from tilewright.tensor.visit import map_children

__all__ = ["AccessRewriter"]


class AccessRewriter:
    """Replaces `buffers`; a subclass says what becomes of the indices.

    `order` ranks the loop variables for the sums that `indices` builds.
    """

    def __init__(self, buffers: Mapping[tir.Buffer, tir.Buffer]) -> None:
        self.buffers = buffers
        self.order: dict[tir.Var, int] = {}
        self._known: dict[tir.Expr, tir.Expr] = {}

    def indices(self, buffer: tir.Buffer, indices: tuple[tir.Expr, ...]) -> tuple[tir.Expr, ...]:
        """New indices of an access to `buffer`, one of those that are replaced."""
        del buffer
        return indices

    def statement(self, stmt: tir.Stmt, depth: int = 0) -> tir.Stmt:
        """The statement with its accesses changed."""
        if type(stmt) is tir.For:
            self.order[stmt.var] = loop_order(stmt.kind, depth)
            depth += 1

        def change(part: Node) -> Node:
            return self.statement(part, depth) if isinstance(part, tir.Stmt) else self._expr(part)

        new = map_children(stmt, change)
        if type(new) is tir.Alloc and new.buffer in self.buffers:
            return new.with_fields(buffer=self.buffers[new.buffer])
        return self._access(new) if isinstance(new, (tir.Store, tir.Prefetch)) else new

    def _expr(self, expr: Node) -> Node:
        if not isinstance(expr, tir.Expr) or isinstance(expr, (tir.Const, tir.Var)):
            return expr
        found = self._known.get(expr)
        if found is None:
            found = map_children(expr, self._expr)
            if type(found) is tir.Load:
                found = self._access(found)
            self._known[expr] = found
        return found

    def _access(self, node: Any) -> Any:
        buffer = self.buffers.get(node.buffer)
        if buffer is None:
            return node
        indices = self.indices(node.buffer, node.indices)
        return node.with_fields(buffer=buffer, indices=indices)
