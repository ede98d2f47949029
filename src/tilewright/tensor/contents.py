"""What outputs hold before and after a call.

What was there before is seen where a program adds to a parameter, and where it leaves elements of
one as they are. Such a parameter is both input and output: callers must pass it, nobody can make it
for them. Everything else is proved to be overwritten; in doubt the old content counts.

A fold over no elements would leave its result undefined; here it is refused. (Symbolic sizes are at
least one, and the runtime sees to that.)
"""

from __future__ import annotations

from tilewright.errors import Code, ProgramError
from tilewright.tensor import ir as tir
from tilewright.tensor.arith.itermap import IterMap, detect
from tilewright.tensor.regions import blocks, outputs, reads_own_output, writers
from tilewright.tensor.validate.together import blocks_fill
from tilewright.tensor.visit import free_vars, walk_stmts

__all__ = ["require_elements", "updated"]

V302 = Code("V302", "block `{block}` folds no elements")


def require_elements(func: tir.Func) -> None:
    """V302 if a block folds over nothing, unless all outputs are without elements, too."""
    if all(any(tir.int_value(d) == 0 for d in param.shape) for param in outputs(func)):
        return
    for block in walk_stmts(func):
        if type(block) is not tir.Block:
            continue
        for it in block.iters:
            if it.kind is tir.IterKind.REDUCE and tir.int_value(it.extent) == 0:
                facts = {"iterator": it.var.name, "expected": "an extent of at least 1"}
                hint = "write the start value with a block of its own, without a reduction"
                raise ProgramError(V302, facts, hint=hint, program=func, marks={"block": block})


def updated(func: tir.Func) -> tuple[tir.Buffer, ...]:
    """The outputs of a valid program whose content before the call matters, in call order.

    Programs without blocks (they are lowered) do not tell: none is reported.
    """
    return tuple([param for param in outputs(func) if _matters(func, param)])


def _matters(func: tir.Func, param: tir.Buffer) -> bool:
    found = writers(func, param)
    return bool(found) and (_is_read_first(func, param) or not _is_filled(found, param))


def _is_read_first(part: tir.Func | tir.Stmt, param: tir.Buffer) -> bool:
    """Does the first block that touches the parameter read it?

    Valid programs have written all that later blocks read of it.
    """
    for block in blocks(part):
        if any(region.buffer is param for region in block.reads):
            return True
        if any(region.buffer is param for region in block.writes):
            if block.init is not None:
                return False
            inside = bool(writers(block.body, param))
            return _is_read_first(block.body, param) if inside else reads_own_output(block)
    return False


def _is_filled(found: tuple[tir.Block, ...], param: tir.Buffer) -> bool:
    return any(_fills(block, param) for block in found) or blocks_fill(found, param)


def _fills(block: tir.Block, param: tir.Buffer) -> bool:
    """Does the block write every element while its iterators take all values?"""
    for region in block.writes:
        if region.buffer is not param:
            continue
        loops = [(it.var, it.extent) for it in block.iters if it.kind is tir.IterKind.SPATIAL]
        starts: list[tir.Expr] = []
        for span in region.ranges:
            start = span.start
            if tir.int_value(span.extent) != 1:
                inside = tir.Var("inside")
                loops.append((inside, span.extent))
                start = start + inside
            starts.append(start)
        used = {var for start in starts for var in free_vars(start)}
        folded = any(it.kind is tir.IterKind.REDUCE and it.var in used for it in block.iters)
        loops = [loop for loop in loops if loop[0] in used]
        if not folded and isinstance(detect(starts, param.shape, loops), IterMap):
            return True
    return False
