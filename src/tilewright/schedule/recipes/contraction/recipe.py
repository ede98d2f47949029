"""The contraction recipe: the shape of a group, its space, its costs, and the way itself."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tilewright.errors import ScheduleError
from tilewright.schedule.primitives.layout_store_at import S310
from tilewright.schedule.recipes.context import Context, extent_of
from tilewright.schedule.recipes.contraction.bias import biases_of, store_biases
from tilewright.schedule.recipes.contraction.cuts import steps_per_cut, tile_with_cuts
from tilewright.schedule.recipes.contraction.cycles import contraction_cycles, draft_space
from tilewright.schedule.recipes.contraction.digits import result_block
from tilewright.schedule.recipes.contraction.instructions import instruction_of
from tilewright.schedule.recipes.contraction.merging import merge_columns
from tilewright.schedule.recipes.contraction.packing import (
    pack_constant,
    pack_rows,
    packing_block,
    pad_columns,
)
from tilewright.schedule.recipes.contraction.product import as_product
from tilewright.schedule.recipes.contraction.roles import (
    Operands,
    column_dimension,
    loops_of,
    walk_of,
)
from tilewright.schedule.recipes.contraction.shape import shape_of
from tilewright.schedule.recipes.contraction.space import (
    ContractionPoint,
    ContractionShape,
    contraction_points,
)
from tilewright.schedule.recipes.contraction.split import lengths_of, parts_of, split_reduction
from tilewright.schedule.recipes.contraction.tiling import tile
from tilewright.schedule.recipes.reduction import schedule_across
from tilewright.schedule.recipes.table import Costs, Space, Table
from tilewright.target import MachineModel, Target
from tilewright.tensor import ir as tir
from tilewright.tensor.analysis.structure import contraction, hidden_group, loads_of

if TYPE_CHECKING:
    from tilewright.schedule.recipes.grouping import Group

__all__ = ["CONTRACTION", "ContractionRecipe"]


class ContractionRecipe:
    """Products of all kinds: matrices, batches of them, convolutions as implicit products."""

    name = "contraction"
    point = ContractionPoint

    def match(self, context: Context, group: Group) -> ContractionShape | None:
        """The shape of the product that the block is once its iterators are merged."""
        s, block = context.schedule, group.blocks[-1]
        plain = contraction(s.block(block)) is not None
        if not plain and hidden_group(s.block(block)) is None:
            return None
        parts = parts_of(context, block) if plain else ()
        before = s.copy()
        epilogue, _ = as_product(context, block, group.epilogue)
        roles = contraction(s.block(block))
        assert roles is not None
        biases = biases_of(context, roles, epilogue)
        stored = result_block(context, block, epilogue)
        shape = shape_of(context, roles, parts)
        shape = replace(shape, biases=len(biases), result_block=stored)
        s.restore(before)
        return shape

    def space(self, shape: ContractionShape, target: Target) -> Table[ContractionPoint]:
        """What a draft chooses from; `points` has everything."""
        return draft_space(shape, target)

    def points(self, shape: ContractionShape, target: Target) -> Space[ContractionPoint]:
        """Every point, by number."""
        return contraction_points(shape, target)

    def cycles(
        self, shape: ContractionShape, machine: MachineModel, table: Table[ContractionPoint]
    ) -> Costs:
        """Predicted cycles until the last thread is done, for every row."""
        return contraction_cycles(shape, machine, table)

    def apply(
        self, context: Context, group: Group, shape: ContractionShape, point: ContractionPoint
    ) -> None:
        """Schedule a contraction, and the elementwise block behind it if there is one."""
        block = group.blocks[-1]
        if point.parts > 1:
            partial = split_reduction(context, block, point.parts)
            _arrange(context, partial, None, shape, point)
            schedule_across(context, block, group.epilogue)
            return
        _tell_of_parts(context, block, shape, point)
        _arrange(context, block, group.epilogue, shape, point)


CONTRACTION = ContractionRecipe()


def _arrange(
    context: Context,
    block: str,
    epilogue: str | None,
    shape: ContractionShape,
    point: ContractionPoint,
) -> None:
    """Merge iterators, pack and pad the right operand, and tile."""
    s = context.schedule
    epilogue, walked = as_product(context, block, epilogue)
    roles = contraction(s.block(block))
    assert roles is not None
    is_constant = roles.right.buffer.name in context.constants
    biases = biases_of(context, roles, epilogue) if point.bias_in_panels else ()
    if point.bias_in_panels and not biases:
        facts = {"buffer": roles.right.buffer.name, "other": "a bias"}
        hint = "no constant that is read once for each column stands behind the product"
        raise ScheduleError(S310, facts, program=s.func, marks={"block": roles.block}, hint=hint)
    packed: str | None = None
    if point.packs and not is_constant:
        epilogue, packed = merge_columns(context, block, epilogue)
        roles = contraction(s.block(block))
        assert roles is not None
    panels = column_dimension(roles)
    ahead = is_constant and panels is not None
    packs = bool(point.packs) and not is_constant and panels is not None
    if panels is not None and (ahead or packs):
        epilogue = pad_columns(
            context, block, roles, point, panels, epilogue, is_constant=is_constant
        )
    if packs and packed is None:
        packed = packing_block(context, block, roles)
    source = roles.right if packed is None else loads_of(s.block(packed))[0]
    is_sized = all(tir.int_value(size) is not None for size in source.buffer.shape)
    operands = Operands(roles.left.buffer.name, source.buffer.name, packed, ahead, is_sized)
    loops = loops_of(context, block)
    is_cut = packed is None and steps_per_cut(context, loops, point) is not None
    arrange = tile_with_cuts if is_cut else tile
    walk = walk_of(context, roles)
    instruction = instruction_of(context, block, shape, point)
    if instruction is not None:
        assert panels is not None  # or it would not be among those of the shape
        pack_constant(context, roles, point, panels, walked, instruction.steps)
        tile(context, block, loops, point, epilogue, operands, instruction)
        return
    arrange(context, block, loops, point, epilogue, operands)
    if ahead and panels is not None:
        pack_constant(context, roles, point, panels, walked)
        store_biases(context, biases, roles, point.tile_columns)
    if roles.rows and not is_constant and roles.left.buffer.name in context.constants:
        pack_rows(context, roles, point, walk)


def _tell_of_parts(
    context: Context, block: str, shape: ContractionShape, point: ContractionPoint
) -> None:
    """Remark that one thread works on a long sum only since its length has no equal parts."""
    alone = context.threads > 1 and not point.parallel and not shape.parts
    if not alone or contraction(context.schedule.block(block)) is None:
        return
    loops = loops_of(context, block).reduce
    if len(lengths_of(context, block)) < len(loops):
        return
    tiles = -(-shape.rows // point.tile_rows) * -(-shape.columns // point.tile_columns)
    machine = context.target.machine
    cycles = contraction_cycles(shape, machine, Table.of([point]))[0]
    if shape.batch * tiles < context.threads and cycles > 2 * machine.barrier_cycles:
        words = " × ".join(str(extent_of(context, loop)) for loop in loops)
        told = f"{context.threads} threads do not share a sum of {words} steps"
        context.schedule.remarks.append(f"{block}: {told}")
