"""Make one iterator of several iterators of a block, and one loop of their loops."""

from __future__ import annotations

from itertools import pairwise

from tilewright.errors import Code, ScheduleError
from tilewright.schedule.checks import require_serial, require_sole_block
from tilewright.schedule.handles import fresh, names_of
from tilewright.schedule.nests import loops_around
from tilewright.schedule.primitive import Edit, primitive
from tilewright.schedule.primitives.fuse import digits
from tilewright.tensor import ir as tir
from tilewright.tensor.arith import Analyzer
from tilewright.tensor.build import make_block
from tilewright.tensor.node import Node
from tilewright.tensor.visit import free_vars, replace_node, rewrite, substitute

__all__ = ["ITERATORS", "S430", "Tidy", "fuse_iters", "own_loops"]

S430 = Code("S430", "block `{block}` has no such iterators")
S431 = Code("S431", "iterators `{first}` and `{second}` of block `{block}` differ in kind")
S432 = Code("S432", "the iterators of block `{block}` are not loops directly inside each other")

ITERATORS = "iterators are the names before `=` in the head of the block, not its loops"


@primitive
def fuse_iters(func: tir.Func, block: tir.Block, iterators: tuple[str, ...]) -> Edit:
    """Let one iterator count through all values of several; indices are simplified with it.

    With the layouts of the operands fused in the same way, the block looks as if it had been
    written for fewer dimensions, which is what tensor instructions and padding want.

    Before:  for h in range(4): for w in range(6): with block(vh = h, vw = w): C[vh * 6 + vw] = …
    After:   for h_w in range(24): with block(vh_w = h_w): C[vh_w] = …
    Requires: S430 the block has the iterators; S431 they are of one kind; S432 each is bound to a
        loop of its own, directly inside the one before; S101 these are serial; S260 no other block
        is in them
    Example: s.fuse_iters("C", ["vh", "vw"])
    """
    chosen = _chosen(func, block, iterators)
    loops = own_loops(func, block, chosen)
    hint = "_".join(loop.var.name for loop in loops)
    var, loop_var = tir.Var(f"v{hint}"), tir.Var(fresh(names_of(func), hint))
    extent, values = digits([(it.var, it.extent) for it in chosen], var)
    iters: list[tir.Iter] = []
    bindings: list[tir.Expr] = []
    for it, binding in zip(block.iters, block.bindings, strict=True):
        if it is chosen[0]:
            iters.append(tir.Iter(var, extent, it.kind))
            bindings.append(loop_var)
        elif it not in chosen:
            iters.append(it)
            bindings.append(binding)
    tidy = Tidy(iters)
    made = make_block(
        block.name,
        tuple(iters),
        tuple(bindings),
        tidy(substitute(block.body, values)),
        None if block.init is None else tidy(substitute(block.init, values)),
        block.predicate,
    ).with_fields(notes=block.notes)
    inside = replace_node(loops[-1].body, block, made)
    nest = tir.For(loop_var, extent, inside, notes=loops[0].notes)
    return Edit(replace_node(func, loops[0], nest), (loop_var.name,))


def _chosen(func: tir.Func, block: tir.Block, names: tuple[str, ...]) -> list[tir.Iter]:
    by_name = {it.var.name: it for it in block.iters}
    chosen = [by_name[name] for name in dict.fromkeys(names) if name in by_name]
    marks = {"block": block}
    if len(chosen) != len(names) or len(chosen) < 2:
        facts = {"expected": f"two or more of {', '.join(by_name)}", "found": ", ".join(names)}
        raise ScheduleError(S430, facts, program=func, marks=marks, hint=ITERATORS)
    for it in chosen[1:]:
        if it.kind is not chosen[0].kind:
            facts = {"first": chosen[0].var.name, "second": it.var.name}
            hint = "fuse spatial and reduce iterators each among themselves"
            raise ScheduleError(S431, facts, program=func, marks=marks, hint=hint)
    return chosen


def own_loops(func: tir.Func, block: tir.Block, chosen: list[tir.Iter]) -> list[tir.For]:
    """The loops of the iterators, in order, one directly inside the other (S432, S101, S260)."""
    bound = {it.var: b for it, b in zip(block.iters, block.bindings, strict=True)}
    by_var = {loop.var: loop for loop in loops_around(func, block)}
    uses = [v for b in (*block.bindings, block.predicate) for v in free_vars(b)]
    found: list[tir.For] = []
    for it in chosen:
        binding = bound[it.var]
        loop = by_var.get(binding) if isinstance(binding, tir.Var) else None
        if loop is None or loop.extent != it.extent or uses.count(loop.var) != 1:
            break
        found.append(loop)
    if len(found) < len(chosen) or any(a.body is not b for a, b in pairwise(found)):
        facts = {"iterators": ", ".join(it.var.name for it in chosen)}
        hint = "bring the loops together with `reorder`, before they are split"
        raise ScheduleError(S432, facts, program=func, marks={"block": block}, hint=hint)
    require_serial(func, *found)
    require_sole_block(func, found[0])
    return found


class Tidy:
    """Simplifies the indices of a statement, given the domain of a block."""

    def __init__(self, iters: list[tir.Iter]) -> None:
        self.analyzer = Analyzer({it.var: it.extent for it in iters})

    def __call__(self, stmt: tir.Stmt) -> tir.Stmt:
        return rewrite(stmt, self._change)

    def _change(self, part: Node) -> Node | None:
        if isinstance(part, tir.Load | tir.Store):
            indices = tuple(map(self.analyzer.simplify, part.indices))
            return part.with_fields(indices=indices)
        return None
