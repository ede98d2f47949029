"""The analytic draft: the schedule a program gets without any tuning.

Attention runs as a whole. Of the rest, elementwise producers are inlined, what remains is put into
groups that run together (a contraction with its epilogue, a chain of row-wise blocks, a single
block), and each group gets the recipe that fits its structure. No measurement and no search: the
parameters come from the model of the machine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from tilewright.errors import UserError
from tilewright.schedule.recipes.attention import schedule_attentions
from tilewright.schedule.recipes.choices import schedule_choices
from tilewright.schedule.recipes.context import Context
from tilewright.schedule.recipes.contraction.recipe import CONTRACTION
from tilewright.schedule.recipes.contraction.space import ContractionPoint
from tilewright.schedule.recipes.elementwise import schedule_elementwise
from tilewright.schedule.recipes.grouping import Group, groups_of, inline_producers
from tilewright.schedule.recipes.recipe import Decision, follow
from tilewright.schedule.recipes.reduction import schedule_across, schedule_rows
from tilewright.schedule.recipes.tile_blocks import schedule_tiles, tiled_products
from tilewright.schedule.recipes.windows.channels import CHANNEL_WINDOWS
from tilewright.schedule.recipes.windows.lines import LINE_WINDOWS
from tilewright.schedule.recipes.windows.points import WindowPoint
from tilewright.schedule.schedule import Schedule
from tilewright.target import Target
from tilewright.tensor import ir as tir
from tilewright.tensor.analysis.structure import Kind, kind_of
from tilewright.tensor.visit import free_vars

__all__ = ["draft"]

R = TypeVar("R")


def draft(
    func: tir.Func,
    target: Target,
    threads: int = 1,
    constants: Iterable[str] = (),
    loops: ContractionPoint | WindowPoint | None = None,
    points: Mapping[str, object] | None = None,
    decisions: list[Decision] | None = None,
) -> Schedule:
    """A schedule for `func`; parameters named in `constants` may get a layout of their own.

    `loops` is a point for a contraction or a window, `points` are points by the last block of a
    group; they take the place of what the machine model would choose. What was decided for each
    group is in the list `decisions`, and in that of the schedule.
    """
    schedule = Schedule(func)
    if _is_empty(func):
        return schedule
    decided = schedule.decisions if decisions is None else decisions
    schedule.decisions = decided
    context = Context(schedule, target, threads, frozenset(constants), loops, points or {}, decided)
    done = schedule_attentions(context)
    _together(schedule, lambda: inline_producers(schedule, done))
    groups = groups_of(schedule, done)
    for tiled in tiled_products(context, groups):
        done |= _try_tiles(context, tiled)
    for group in groups:
        if not done.issuperset(group.members):
            _schedule_group(context, group)
    _start_in_front(schedule)
    return schedule


def _is_empty(func: tir.Func) -> bool:
    """Whether some array has no elements: there is nothing to do fast."""
    return any(tir.int_value(d) == 0 for buffer in func.params for d in buffer.shape)


def _start_in_front(schedule: Schedule) -> None:
    """Set the start values of what no recipe has scheduled in front of all loops that fold.

    Lowering does so for one loop. Of several it takes the first iteration of the outer one apart,
    which a size of zero does not have.
    """
    for name in schedule.blocks():
        block = schedule.block(name)
        folds = [it.kind is tir.IterKind.REDUCE for it in block.iters]
        used = [free_vars(at) for at, f in zip(block.bindings, folds, strict=True) if f]
        walks = [n for n in schedule.loops(name) if any(schedule.loop(n).var in u for u in used)]
        is_sized = all(tir.int_value(schedule.loop(n).extent) is not None for n in walks)
        if block.init is None or len(walks) < 2 or is_sized:
            continue
        try:
            schedule.decompose_reduction(name, walks[0])
        except UserError as problem:
            schedule.remarks.append(f"{name}: starts in a first iteration ({problem.code.id})")


def _schedule_group(context: Context, group: Group) -> None:
    """Apply the recipe. Where it does not apply, the blocks are scheduled one by one."""
    problem = _try(context, group)
    if problem is None:
        return
    names = ", ".join(group.members)
    context.schedule.remarks.append(f"{names}: not scheduled together ({problem.code.id})")
    for block in group.members:
        problem = _try(context, _alone(context, block))
        if problem is not None:
            # A recipe is advice: what it did not foresee runs unscheduled rather than not at all.
            context.schedule.remarks.append(f"{block}: not scheduled ({problem.code.id})")


def _try(context: Context, group: Group) -> UserError | None:
    """Apply the recipe; a step that is refused leaves everything as it was before."""
    before, decided = context.schedule.copy(), len(context.decisions)
    try:
        _together(context.schedule, lambda: _recipe(context, group))
    except UserError as problem:
        context.schedule.restore(before)
        del context.decisions[decided:]
        return problem
    return None


def _try_tiles(context: Context, tiled: Group) -> frozenset[str]:
    """Schedule a product with its transforms; the blocks that are done then."""
    before, decided = context.schedule.copy(), len(context.decisions)
    try:
        return _together(context.schedule, lambda: schedule_tiles(context, tiled))
    except UserError as problem:
        context.schedule.restore(before)
        del context.decisions[decided:]
        names = ", ".join(tiled.blocks)
        context.schedule.remarks.append(f"{names}: not together ({problem.code.id})")
        return frozenset()


def _together(schedule: Schedule, recipe: Callable[[], R]) -> R:
    """Apply a recipe and validate what it has made.

    If that is refused, it is applied again with each step validated: it may know another way where
    a step is refused.
    """
    before = schedule.copy()
    try:
        with schedule.together():
            return recipe()
    except UserError:
        schedule.restore(before)
        schedule.remarks[:] = before.remarks
        return recipe()


def _alone(context: Context, block: str) -> Group:
    """A block without its neighbours."""
    kind = kind_of(context.schedule.block(block))
    return Group(Kind.WINDOWED if kind is Kind.REDUCTION else kind, (block,))


def _recipe(context: Context, group: Group) -> None:
    if follow(LINE_WINDOWS, context, group):
        return
    match group.kind:
        case Kind.CONTRACTION:
            follow(CONTRACTION, context, group)
        case Kind.REDUCTION:
            schedule_rows(context, group.blocks, group.shared)
        case Kind.WINDOWED:
            if not follow(CHANNEL_WINDOWS, context, group):
                schedule_across(context, group.blocks[-1], group.epilogue)
        case Kind.ELEMENTWISE:
            if len(group.blocks) == 2:
                schedule_choices(context, *group.blocks, group.epilogue)
            else:
                schedule_elementwise(context, group.blocks[0])
        case Kind.OPAQUE:
            pass
