"""Programs from text: the inverse of `printer.py`, through Python's own syntax trees.

`parse(print_func(f))` is structurally equal to `f` for every well-formed program. Text written by
hand may leave out `reads` and `writes`, which then follow from the block's body. Nothing is
evaluated, and whether the program makes sense is the question of `verify.py`.
"""

from __future__ import annotations

import ast
import textwrap

from tilewright.tensor import ir as tir
from tilewright.tensor.printer import LOOP_WORDS
from tilewright.tensor.regions import block_regions
from tilewright.tensor.text.parse_values import ValueParser
from tilewright.tensor.text.source import (
    P001,
    P002,
    P004,
    P005,
    P006,
    P008,
    P010,
    P011,
    Source,
)

__all__ = ["parse"]

LOOP_KINDS = {word: kind for kind, word in LOOP_WORDS.items()}
ALLOC = 'write `T = alloc(f32[8, 8], "register")`'


def parse(text: str) -> tir.Func:
    """The program that `text` describes."""
    source = Source(textwrap.dedent(text))
    try:
        module = ast.parse(source.text)
        match module.body:
            case [ast.FunctionDef() as tree]:
                return _Parser(source).func(tree)
    except SyntaxError as error:
        at, hint = (error.lineno or 1, error.offset or 1), "mend the text here or just before"
        raise source.error(P001, at, hint, found=error.msg) from None
    except (RecursionError, MemoryError, ValueError) as error:
        found = str(error) or "text that is nested too deeply"
        raise source.error(P001, (1, 1), "write a shorter expression", found=found) from None
    second = module.body[1] if len(module.body) > 1 else (1, 1)
    raise source.error(P002, second, "write one `def`, and nothing beside it")


class _Parser(ValueParser):
    def func(self, tree: ast.FunctionDef) -> tir.Func:
        plain = ast.arguments([], tree.args.args, None, [], [], None, [])
        if ast.dump(plain) != ast.dump(tree.args) or tree.decorator_list:
            raise self.source.error(
                P002, tree, "parameters are plain: no defaults, stars or decorators"
            )
        for arg in tree.args.args:
            if arg.annotation is None:
                raise self.source.error(P002, arg, f"write the type: `{arg.arg}: f32[8, 8]`")
            param = self.make_buffer(arg.arg, arg.annotation, new_sizes=True)
            self.define(arg, arg.arg, param)
        params = tuple(self.names[arg.arg] for arg in tree.args.args)
        return tir.Func(tree.name, params, self.statements(tree.body))  # type: ignore[arg-type]

    def define(self, tree: ast.AST, name: str, thing: tir.Var | tir.Buffer) -> None:
        if name in self.names:
            raise self.source.error(P011, tree, "give it another name", name=name)
        self.names[name] = thing

    def statements(self, trees: list[ast.stmt]) -> tir.Stmt:
        """A list of statements; what follows an `alloc` is inside it."""
        before = dict(self.names)
        parts: list[tir.Stmt] = []
        for number, tree in enumerate(trees):
            match tree:
                case ast.Pass():
                    continue
                case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call() as call):
                    buffer = self.alloc(call, name)
                    parts.append(tir.Alloc(buffer, self.statements(trees[number + 1 :])))
                    break
            parts.append(self.statement(tree))
        self.names = before
        return parts[0] if len(parts) == 1 else tir.Seq(tuple(parts))

    def statement(self, tree: ast.stmt) -> tir.Stmt:
        match tree:
            case ast.Assign(targets=[ast.Subscript(value=ast.Name(id=name), slice=where)]):
                buffer = self.buffer(tree, name)
                value = self.lifted(tree.value, self.expr(tree.value), buffer.dtype)
                return tir.Store(buffer, self.indices(where), value)
            case ast.For(target=ast.Name(id=name), iter=ast.Call() as call, orelse=[]):
                return self.loop(tree, name, call)
            case ast.If(test=test, body=body, orelse=orelse):
                cond, then = self.expr(test), self.statements(body)
                return tir.If(cond, then, self.statements(orelse) if orelse else None)
            case ast.With(
                items=[ast.withitem(context_expr=ast.Call() as call, optional_vars=None), *more]
            ):
                return self.block(tree, call, more)
            case ast.With(
                items=[ast.withitem(ast.Call() as call, optional_vars=ast.Name(id=name))], body=body
            ):
                before = dict(self.names)
                alloc = tir.Alloc(self.alloc(call, name), self.statements(body))
                self.names = before
                return alloc
            case ast.Expr(value=ast.Call(func=ast.Name(id="barrier"), args=[], keywords=[])):
                return tir.Barrier()
            case ast.Expr(
                value=ast.Call(
                    func=ast.Name(id="prefetch"),
                    args=[ast.Subscript(value=ast.Name(id=name), slice=where)],
                    keywords=[],
                )
            ):
                return tir.Prefetch(self.buffer(tree, name), self.indices(where))
        hint = "loops, blocks, stores, `if`, `alloc`, `barrier()` and `prefetch(…)` are"
        raise self.source.error(P004, tree, hint, found=ast.unparse(tree).partition("\n")[0])

    def alloc(self, call: ast.Call, name: str) -> tir.Buffer:
        match call:
            case ast.Call(func=ast.Name(id="alloc"), args=[kind, *rest], keywords=[]) if (
                len(rest) < 2
            ):
                scope = tir.Scope.MEMORY
                if rest:
                    words = {s.value: s for s in tir.Scope}
                    word = rest[0].value if isinstance(rest[0], ast.Constant) else None
                    if word not in words:
                        expected = " or ".join(f'"{w}"' for w in words) + " second"
                        raise self.source.error(
                            P006, rest[0], ALLOC, word="alloc", expected=expected
                        )
                    scope = words[str(word)]
                buffer = self.make_buffer(name, kind, scope)
                self.define(call, name, buffer)
                return buffer
        raise self.source.error(P004, call, ALLOC, found=ast.unparse(call))

    def loop(self, tree: ast.For, name: str, call: ast.Call) -> tir.For:
        word = ast.unparse(call.func)
        if word not in LOOP_KINDS:
            raise self.source.error(P010, call, f"known: {', '.join(LOOP_KINDS)}", word=word)
        if len(call.args) != 1:
            expected, hint = "one extent; loops run from zero", "add the start to the indices"
            raise self.source.error(
                P006, call, hint, word=word, expected=expected, found=ast.unparse(call)
            )
        extent, notes = self.expr(call.args[0]), self.notes(call.keywords)
        before, var = dict(self.names), tir.Var(name)
        self.define(tree, name, var)
        body = self.statements(tree.body)
        self.names = before
        return tir.For(var, extent, body, LOOP_KINDS[word], notes)

    def block(self, tree: ast.With, call: ast.Call, more: list[ast.withitem]) -> tir.Block:
        match call:
            case ast.Call(func=ast.Name(id="block"), args=[ast.Constant(value=str() as name)]):
                pass
            case _:
                hint = 'write `with block("C", vi=S(128, i)):`'
                raise self.source.error(P004, call, hint, found=ast.unparse(call))
        parts = [self.iterator(keyword) for keyword in call.keywords]
        predicate, notes = self.clauses(more)
        before = dict(self.names)
        for (it, _), keyword in zip(parts, call.keywords, strict=True):
            self.define(keyword.value, str(keyword.arg), it.var)
        iters, bindings = tuple(i for i, _ in parts), tuple(b for _, b in parts)
        regions, rest = self.regions(tree.body)
        init = None
        match rest:
            case [
                ast.With(items=[ast.withitem(ast.Call(func=ast.Name(id="init")))]) as first,
                *rest,
            ]:
                init = self.statements(first.body)
        body = self.statements(rest)
        self.names = before
        reads, writes = regions or block_regions(iters, body, init)
        return tir.Block(name, iters, bindings, reads, writes, body, init, predicate, notes)

    def iterator(self, keyword: ast.keyword) -> tuple[tir.Iter, tir.Expr]:
        match keyword:
            case ast.keyword(
                arg=str() as name,
                value=ast.Call(func=ast.Name(id="S" | "R" as kind), args=[extent, at], keywords=[]),
            ):
                it = tir.Iter(tir.Var(name), self.expr(extent), tir.IterKind(kind))
                return it, self.expr(at)
        hint = "write `vi=S(extent, binding)`, or `R` for a reduction"
        raise self.source.error(P008, keyword.value, hint, found=ast.unparse(keyword.value))

    def clauses(self, items: list[ast.withitem]) -> tuple[tir.Expr, tuple[tuple[str, object], ...]]:
        """`where(…)` and `notes(…)` behind a block."""
        predicate: tir.Expr = tir.TRUE
        notes: tuple[tuple[str, object], ...] = ()
        for item in items:
            match item.context_expr:
                case ast.Call(func=ast.Name(id="where"), args=[cond], keywords=[]):
                    predicate = self.expr(cond)
                case ast.Call(func=ast.Name(id="notes"), args=[], keywords=keywords):
                    notes = self.notes(keywords)
                case other:
                    hint = "only `where(…)` and `notes(…)` may follow"
                    raise self.source.error(P004, other, hint, found=ast.unparse(other))
        return predicate, notes

    def regions(
        self, trees: list[ast.stmt]
    ) -> tuple[tuple[tuple[tir.Region, ...], tuple[tir.Region, ...]] | None, list[ast.stmt]]:
        """(reads, writes) at the head of a block's body if they are written out, and the rest."""
        found: dict[str, tuple[tir.Region, ...]] = {}
        for number, tree in enumerate(trees):
            match tree:
                case ast.Expr(value=ast.Call(func=ast.Name(id="reads" | "writes" as word)) as call):
                    if call.keywords or word in found:
                        raise self.source.error(
                            P005, tree, f"`{word}` appears once and lists regions"
                        )
                    found[word] = tuple(self.region(part) for part in call.args)
                case _:
                    trees = trees[number:]
                    break
        else:
            trees = []
        return ((found.get("reads", ()), found.get("writes", ())) if found else None), trees
