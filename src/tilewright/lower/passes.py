"""The lowering as an ordered list of passes, from a scheduled program to flat loops.

Every pass takes a well-formed program and returns one with the same meaning; `lower` runs them all,
`lower_from` begins in the middle (for a program that was dumped there, and perhaps edited).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from tilewright.errors import Code, InternalError, TilewrightError
from tilewright.lower.compact_buffers import compact_buffers
from tilewright.lower.context import Context
from tilewright.lower.cut_loops import cut_loops
from tilewright.lower.delay_folds import delay_folds
from tilewright.lower.expand_math import expand_math
from tilewright.lower.flatten_buffers import flatten_buffers
from tilewright.lower.lower_blocks import lower_blocks
from tilewright.lower.lower_tiles import lower_tiles
from tilewright.lower.lowered import Lowered
from tilewright.lower.place_allocations import place_allocations
from tilewright.lower.place_prefetches import place_prefetches
from tilewright.lower.place_threads import place_threads
from tilewright.lower.plan_storage import plan_storage
from tilewright.lower.reuse_outputs import reuse_outputs
from tilewright.lower.settle_registers import settle_registers
from tilewright.lower.unroll import unroll
from tilewright.lower.vectorize import vectorize
from tilewright.target import Target
from tilewright.tensor import ir as tir
from tilewright.tensor.verify import Level, verify

__all__ = ["LOWERING", "STAGES", "Observer", "Pass", "lower", "lower_from", "silent"]

I020 = Code("I020", "the lowering pass `{stage}` failed: {problem}")
I021 = Code("I021", "the lowering has no stage `{stage}`")

Pass = Callable[[tir.Func, Context], tir.Func]
Observer = Callable[[str, tir.Func, float], None]
"""Called behind each pass with its name, the program it made, and the seconds it took."""

LOWERING: Final[tuple[Pass, ...]] = (
    lower_blocks,  # blocks → plain loops, inits and predicates → conditions
    place_allocations,  # while indices still are what the schedule wrote, in their dimensions
    reuse_outputs,  # while an intermediate still has the shape of the output
    compact_buffers,  # needs the final scopes of the allocations
    settle_registers,  # decides which loops must be unrolled, before loops are cut for them
    flatten_buffers,  # one offset per access; copies made later then share the work
    place_prefetches,  # needs offsets, and loops that still are what the schedule wrote
    cut_loops,  # constant extents and no tests inside, before anything is unrolled
    lower_tiles,  # tiles that needed no cut
    place_threads,  # on loops, where dependences are still few and easy to see
    vectorize,  # before unrolling: each statement is vectorised once
    delay_folds,  # as soon as there are lanes, while loops are few
    unroll,  # last of the loops: numbers in place of variables
    expand_math,  # last of the expressions: vectors and scalars alike
)

STAGES: Final = tuple(step.__name__ for step in LOWERING)


def silent(stage: str, func: tir.Func, seconds: float) -> None:
    """Watches nothing."""
    del stage, func, seconds


def lower(
    func: tir.Func, target: Target, observer: Observer = silent, *, check: bool = False
) -> Lowered:
    """Run all passes; with `check`, every result is verified."""
    return lower_from(STAGES[0], func, target, observer, check=check)


def lower_from(
    stage: str,
    func: tir.Func,
    target: Target,
    observer: Observer = silent,
    *,
    check: bool = False,
) -> Lowered:
    """Run the passes from `stage` on; `func` is what the pass before it has made."""
    if stage not in STAGES:
        hint = f"stages in order: {', '.join(STAGES)}"
        raise InternalError(I021, {"stage": stage}, hint=hint)
    context = Context(target)
    for step in LOWERING[STAGES.index(stage) :]:
        begin = time.perf_counter()
        try:
            func = step(func, context)
            if check:
                last = step is LOWERING[-1]
                verify(func, Level.LOWERED if last else Level.LOOPS)
        except (TilewrightError, RecursionError, MemoryError):
            raise  # the last two say that a program is too large, which is nobody's mistake
        except Exception as problem:
            facts = {"stage": step.__name__, "problem": repr(problem)}
            raise InternalError(I020, facts, program=func) from problem
        observer(step.__name__, func, time.perf_counter() - begin)
    return plan_storage(func, context)
