"""Features of points of a recipe: many at once, from their columns, without any program.

    point_features(CONTRACTION, shape, table, target)     # a row for each row of the table

The columns of the recipe and the sizes of its shape are different for each recipe, and of fixed
length for each. In front of them are the numbers that mean the same everywhere (`SHARED`), which a
model of many tasks may look at: ratios to registers, caches, threads and to what the draft is
predicted to take; NaN where a recipe has no such thing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from tilewright.schedule.recipes.contraction.cycles import Parts, contraction_parts
from tilewright.schedule.recipes.recipe import Recipe, draft_point
from tilewright.schedule.recipes.table import Costs, Table
from tilewright.target import Target
from tilewright.tuning.features.scaling import Features
from tilewright.tuning.features.sizes import sizes_of

__all__ = ["SHARED", "ColumnSet", "columns_of", "features_of_points", "point_features"]

Columns = dict[str, NDArray[np.float64]]

ColumnSet = Literal["all", "shared", "decisions"]
"""Which columns a model looks at: `shared` ones mean the same for every recipe, `decisions` are the
digits of a point alone (the knobs of AutoTVM). The analytic prediction is in each set."""

SHARED: Final = (
    *("cycles_by_draft", "compute", "waiting", "partial_sums", "cold_code", "sharing"),
    *("tile_area", "registers_share", "registers_spilled", "lanes", "packs", "prefetch"),
    *("rows_tail", "columns_tail", "reduce_tail", "tiles", "panels", "blocks", "visits"),
    *("panel_by_l1", "tile_by_l1", "block_by_l2", "left_by_l2", "right_by_l2", "all_by_l3"),
    *("chunks_per_core", "imbalance", "steps_at_once"),
)
"""What means the same for every recipe."""


def point_features(
    recipe: Recipe[Any, Any], shape: object, table: Table[Any], target: Target
) -> Features:
    """Features of every row of a table."""
    rows = len(table)
    shared = dict.fromkeys(SHARED, np.full(rows, np.nan))
    shared |= _derived(recipe, shape, table, target)
    own = {f"{recipe.name}.{name}": _log2(column) for name, column in table.columns.items()}
    size = {f"{recipe.name}.shape.{name}": np.full(rows, x) for name, x in sizes_of(shape)}
    columns = shared | own | size
    return Features(tuple(columns), np.stack(list(columns.values()), axis=1))


def features_of_points(
    points: Sequence[tuple[Recipe[Any, Any], object, Table[Any]]], target: Target
) -> Features:
    """The same for several shapes of one recipe, one below the other."""
    found = [point_features(recipe, shape, table, target) for recipe, shape, table in points]
    if len({each.names for each in found}) > 1:
        raise ValueError("features of different recipes have different columns; take `SHARED`")
    return Features(found[0].names, np.concatenate([each.rows for each in found]))


def columns_of(names: Sequence[str], chosen: ColumnSet) -> tuple[str, ...]:
    """Those of some columns that are of a set, in their order."""
    if chosen == "all":
        return tuple(names)
    return tuple(name for name in names if name == SHARED[0] or _kind(name) == chosen)


def _kind(name: str) -> str:
    """The set of a column; recipes behind the first one have a number before theirs."""
    number, _, rest = name.partition(".")
    own = rest if number.isdigit() else name
    if own in SHARED:
        return "shared"
    return "size" if ".shape." in own else "decisions"


def _log2(values: NDArray[Any]) -> NDArray[np.float64]:
    return np.asarray(np.sign(values) * np.log2(np.abs(values) + 1.0))


def _derived(recipe: Recipe[Any, Any], shape: Any, table: Table[Any], target: Target) -> Columns:
    drafted = max(1.0, draft_point(recipe, shape, target)[1])  # type: ignore[arg-type]
    if recipe.name == "contraction":
        parts = contraction_parts(shape, target.machine, table)
        return _by_draft(parts.cycles, drafted) | _contraction(parts, drafted, target)
    cycles = np.asarray(recipe.cycles(shape, target.machine, table), np.float64)
    more = _MORE.get(recipe.name, _nothing)
    return _by_draft(cycles, drafted) | _sharing(table) | more(shape, table, target)


def _by_draft(cycles: Costs, drafted: float) -> Columns:
    return {"cycles_by_draft": np.log2(np.maximum(cycles, 1.0) / drafted)}


def _contraction(parts: Parts, drafted: float, target: Target) -> Columns:
    work, table, shape = parts.work, parts.work.table, parts.work.shape
    machine, size = work.machine, shape.element_bytes
    rows, vectors, lanes = table["tile_rows"], table["tile_vectors"], table["lanes"]
    cut = np.minimum(table["reduce_per_block"], work.reduce)
    panel = cut * vectors * lanes * size
    row_tile = rows * cut * size * shape.density
    left = float(shape.rows * shape.reduce * size * shape.density)
    right = float(shape.reduce * shape.columns * size)
    visits = -(-work.reduce // cut)
    first, second = machine.level(1).size_bytes, machine.level(2).size_bytes
    third = machine.level(3).size_bytes or machine.levels[-2].size_bytes
    whole = shape.batch * (left + right + shape.rows * shape.columns * size)
    threads = np.where(table["parallel"] != 0, float(max(1, shape.sharers)), 1.0)
    shared = np.where(table["parallel"] != 0, work.iterations, 1.0)
    columns = {
        **{name: _part(getattr(parts, name), drafted) for name in SHARED[1:6]},
        **_registers(rows, vectors, target),
        "lanes": np.log2(lanes),
        "packs": table["packs"] + 2.0 * shape.right_is_constant,
        "prefetch": table["prefetch"],
        "rows_tail": _tail(shape.rows, rows),
        "columns_tail": _tail(work.columns, vectors * lanes),
        "reduce_tail": _tail(work.reduce, cut),
        "tiles": np.log2(work.tiles),
        "panels": np.log2(work.panels),
        "blocks": np.log2(work.blocks),
        "visits": np.log2(visits),
        "panel_by_l1": np.log2(panel / first),
        "tile_by_l1": np.log2(row_tile / first),
        "block_by_l2": np.log2(
            row_tile * np.minimum(table["row_tiles_per_block"], work.tiles) / second
        ),
        "left_by_l2": np.log2(left / second),
        "right_by_l2": np.log2(right / second),
        "all_by_l3": np.log2(whole / third),
        "chunks_per_core": np.log2(shared / threads),
        "imbalance": np.ceil(shared / threads) * threads / shared - 1,
        "steps_at_once": np.log2(table["unroll"] * table["streams"]),
    }
    return _filled(columns, len(table))


def _filled(columns: Mapping[str, Any], rows: int) -> Columns:
    """Numbers that are the same for all rows become columns."""
    return {n: np.broadcast_to(np.asarray(c, np.float64), (rows,)) for n, c in columns.items()}


def _part(cycles: Costs, drafted: float) -> Costs:
    """A part of the cycles beside those of the draft; a thousandth counts as nothing."""
    return np.log2(np.maximum(cycles / drafted, 2.0**-10))


def _tail(extent: Any, tile: NDArray[Any]) -> NDArray[np.float64]:
    """The part of the last tile that is not filled, of all that is computed."""
    whole = -(-extent // tile) * tile
    return np.asarray((whole - extent) / whole)


def _registers(rows: NDArray[Any], vectors: NDArray[Any], target: Target) -> Columns:
    """Sums, a vector for each of the other operand's, and one that is broadcast."""
    alive = rows * vectors + vectors + 1
    return {
        "tile_area": np.log2(rows * vectors),
        "registers_share": alive / target.vector_registers,
        "registers_spilled": np.log2(np.maximum(0, alive - target.vector_registers) + 1.0),
    }


def _sharing(table: Table[Any]) -> Columns:
    shared: Columns = {}
    for name in ("packs", "prefetch", "lanes"):
        if name in table.columns:
            column = np.asarray(table[name], np.float64)
            shared[name] = np.log2(column) if name == "lanes" else column
    return shared


def _attention(shape: Any, table: Table[Any], target: Target) -> Columns:
    """The larger of the two register tiles; keys and queries that fill up blocks and tiles."""
    first = _registers(np.maximum(table["keys"], 1), np.maximum(table["key_vectors"], 1), target)
    second = _registers(np.maximum(table["rows"], 1), np.maximum(table["row_vectors"], 1), target)
    found: dict[str, Any] = {name: np.maximum(first[name], second[name]) for name in first}
    keys, queries = shape.keys or 0, shape.queries or 0
    block = np.where(table["block"] > 0, table["block"], max(1, keys))
    panel = block * shape.features * shape.element_bytes
    found |= {
        "rows_tail": _tail(queries, np.maximum(table["queries"], 1)) if queries else np.nan,
        "reduce_tail": _tail(keys, block) if keys else np.nan,
        "panel_by_l1": np.log2(panel / target.machine.level(1).size_bytes),
        "visits": np.log2(np.maximum(1, -(-keys // block))),
    }
    return _filled(found, len(table))


def _product_tiles(shape: Any, table: Table[Any], target: Target) -> Columns:
    del shape
    return _registers(table["tile_rows"], table["tile_vectors"], target)


def _vectors(shape: Any, table: Table[Any], target: Target) -> Columns:
    """Statements of several vectors: values that are alive together."""
    del shape
    return {"registers_share": table["vectors"] / target.vector_registers}


def _nothing(shape: Any, table: Table[Any], target: Target) -> Columns:
    del shape, table, target
    return {}


_MORE: Final[Mapping[str, Callable[[Any, Table[Any], Target], Columns]]] = {
    "attention": _attention,
    "tile blocks": _product_tiles,
    "elementwise": _vectors,
    "rows": _vectors,
    "choices": _vectors,
}
