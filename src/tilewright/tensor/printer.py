"""Programs as Python-like text, at every level; `parser.py` reads it back to an equal program.

    def matmul(A: f32[4, 8], B: f32[8, 6], C: f32[4, 6]):
        for i in range(4):
            for j in parallel(6):
                for k in range(8):
                    with block("C", vi=S(4, i), vj=S(6, j), vk=R(8, k)):
                        reads(A[vi, vk], B[vk, vj])
                        writes(C[vi, vj])
                        with init():
                            C[vi, vj] = 0.0
                        C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]

The text is valid Python syntax but never executed. A buffer made by `T = alloc(…)` lives to the end
of the enclosing statements; where it ends earlier, `with alloc(…) as T:` shows its scope.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tilewright.tensor import ir as tir
from tilewright.tensor.node import Node
from tilewright.tensor.regions import sizes
from tilewright.tensor.text.names import Names, identifier
from tilewright.tensor.text.print_expr import ExprPrinter, quoted
from tilewright.tensor.visit import children, walk

__all__ = ["LOOP_WORDS", "print_func", "print_node"]

WIDTH = 100
INDENT = "    "

LOOP_WORDS: Final = {
    tir.LoopKind.SERIAL: "range",
    tir.LoopKind.PARALLEL: "parallel",
    tir.LoopKind.VECTOR: "vectorized",
    tir.LoopKind.UNROLLED: "unrolled",
}


def print_func(func: tir.Func, marks: Mapping[str, object] | None = None) -> str:
    """The text of a program, with `# <- label` behind the line of each marked node.

    A mark may be a statement, a buffer, a variable or an expression by identity.
    """
    printer = _Printer(func, marks or {})
    printer.func(func)
    return "\n".join(printer.lines)


def print_node(node: Node, marks: Mapping[str, object] | None = None) -> str:
    """The text of any single node: a program, a statement, an expression, a region, a buffer."""
    if isinstance(node, tir.Func):
        return print_func(node, marks)
    printer = _Printer(node, marks or {})
    if isinstance(node, tir.Stmt):
        printer.statement(node, 0)
        return "\n".join(printer.lines)
    return printer.expr.text(node) if isinstance(node, tir.Expr) else printer.expr.other(node)


class _Printer:
    def __init__(self, root: Node, marks: Mapping[str, object]) -> None:
        self.lines: list[str] = []
        self.names = Names(root)
        self.expr = ExprPrinter(self.names)
        self.labels: dict[int, list[str]] = {}
        for label, node in marks.items():
            self.labels.setdefault(id(node), []).append(label)
        self.bound = _bound(root) if marks else set()

    def emit(self, depth: int, text: str, *owners: Node | None) -> None:
        """Add a line; `owners` are the nodes whose marks appear behind it."""
        found = [label for node in owners for label in self.labels.get(id(node), ())]
        comment = f"  # <- {', '.join(dict.fromkeys(found))}" if found else ""
        first, *rest = text.split("\n")
        self.lines.append(INDENT * depth + first + comment)
        self.lines += [INDENT * depth + line for line in rest]

    def inside(self, *parts: Node) -> list[Node]:
        """Everything that a mark on this line could mean; costs nothing without marks.

        A variable is marked where it is bound, and where it is used only if nothing binds it.
        """
        if not self.labels:
            return []
        return [n for part in parts for n in walk(part) if n not in self.bound]

    def func(self, func: tir.Func) -> None:
        for size in sizes(func):
            self.names.of(size)
        params = [f"{self.names.of(p)}: {self.expr.buffer_type(p)}" for p in func.params]
        head = f"def {identifier(func.name)}"
        owners = (func, *func.params, *sizes(func))
        self.emit(0, _wrapped(head, params, "", WIDTH) + ":", *owners)
        self.statement(func.body, 1)

    def statement(self, stmt: tir.Stmt, depth: int, *, last: bool = True) -> None:
        """`last`: nothing follows in the same list of statements."""
        match stmt:
            case tir.For():
                self.loop(stmt, depth)
            case tir.Block():
                self.block(stmt, depth)
            case tir.Store():
                text = (
                    f"{self.expr.access(stmt.buffer, stmt.indices)} = {self.expr.text(stmt.value)}"
                )
                self.emit(depth, text, *self.inside(stmt))
            case tir.Seq():
                self.sequence(stmt, depth)
            case tir.If():
                self.condition(stmt, depth, "if")
            case tir.Alloc():
                self.alloc(stmt, depth, last=last)
            case tir.Barrier():
                self.emit(depth, "barrier()", stmt)
            case tir.Prefetch():
                access = self.expr.access(stmt.buffer, stmt.indices)
                self.emit(depth, f"prefetch({access})", *self.inside(stmt))
            case _:
                raise TypeError(f"{type(stmt).__name__} is not a statement of the tensor IR")

    def sequence(self, seq: tir.Seq, depth: int) -> None:
        if not seq.body:
            self.emit(depth, "pass", seq)
        for part in seq.body:
            self.statement(part, depth, last=part is seq.body[-1])

    def loop(self, loop: tir.For, depth: int) -> None:
        arguments = [self.expr.text(loop.extent), *self.expr.notes(loop.notes)]
        head = f"for {self.names.of(loop.var)} in {LOOP_WORDS[loop.kind]}({', '.join(arguments)}):"
        self.emit(depth, head, loop, loop.var, *self.inside(loop.extent))
        self.statement(loop.body, depth + 1)

    def alloc(self, alloc: tir.Alloc, depth: int, *, last: bool) -> None:
        inside = self.expr.buffer_type(alloc.buffer)
        if alloc.buffer.scope is not tir.Scope.MEMORY:
            inside += f', "{alloc.buffer.scope.value}"'
        name = self.names.of(alloc.buffer)
        if last:
            self.emit(depth, f"{name} = alloc({inside})", alloc, alloc.buffer)
            self.statement(alloc.body, depth)
        else:
            self.emit(depth, f"with alloc({inside}) as {name}:", alloc, alloc.buffer)
            self.statement(alloc.body, depth + 1)

    def condition(self, stmt: tir.If, depth: int, word: str) -> None:
        head = f"{word} {self.expr.text(stmt.cond)}:"
        self.emit(depth, head, stmt, *self.inside(stmt.cond))
        self.statement(stmt.then, depth + 1)
        if isinstance(stmt.otherwise, tir.If):
            self.condition(stmt.otherwise, depth, "elif")
        elif stmt.otherwise is not None:
            self.emit(depth, "else:")
            self.statement(stmt.otherwise, depth + 1)

    def block(self, block: tir.Block, depth: int) -> None:
        bindings = [self.expr.text(b) for b in block.bindings]  # named before the iterators
        variables = [i.var for i in block.iters]
        arguments = [quoted(block.name)]
        bindings += ["..."] * (len(block.iters) - len(bindings))  # errors show ill-formed programs
        for it, bound in zip(block.iters, bindings, strict=False):
            extent = self.expr.text(it.extent)
            arguments.append(f"{self.names.of(it.var)}={it.kind.value}({extent}, {bound})")
        tail = ""
        if block.predicate != tir.TRUE:
            tail += f", where({self.expr.text(block.predicate)})"
        if block.notes:
            tail += f", notes({', '.join(self.expr.notes(block.notes))})"
        owners = [n for part in _signature(block) for n in self.inside(part)]
        head = _wrapped("with block", arguments, tail, WIDTH - len(INDENT) * depth)
        self.emit(depth, head + ":", block, *variables, *owners)
        self.regions("reads", block.reads, depth + 1)
        self.regions("writes", block.writes, depth + 1, always=True)
        if block.init is not None:
            self.emit(depth + 1, "with init():")
            self.statement(block.init, depth + 2)
        self.statement(block.body, depth + 1)
        self.names.release(variables)

    def regions(
        self, word: str, regions: tuple[tir.Region, ...], depth: int, *, always: bool = False
    ) -> None:
        if regions or always:
            parts = [self.expr.region(r) for r in regions]
            text = _wrapped(word, parts, "", WIDTH - len(INDENT) * depth)
            self.emit(depth, text, *self.inside(*regions))


def _bound(root: Node) -> set[Node]:
    found: set[Node] = set(sizes(root)) if isinstance(root, tir.Func) else set()
    body = root.body if isinstance(root, tir.Func) else root
    return found | {n.var for n in walk(body) if isinstance(n, (tir.For, tir.Iter, tir.Let))}


def _signature(block: tir.Block) -> list[Node]:
    hidden = (*block.reads, *block.writes)
    return [c for c in children(block) if not isinstance(c, tir.Stmt) and c not in hidden]


def _wrapped(head: str, arguments: list[str], tail: str, width: int) -> str:
    """`head(arguments)tail` on one line if it fits, else the arguments filled into several."""
    text = f"{head}({', '.join(arguments)}){tail}"
    if len(text) < width or len(arguments) < 2:
        return text
    lines, line = [], INDENT
    for argument in arguments:
        if len(line) + len(argument) + 1 > max(width, 60) and line.strip():
            lines.append(line.rstrip())
            line = INDENT
        line += f"{argument}, "
    return "\n".join([f"{head}(", *lines, line.rstrip(), f"){tail}"])
