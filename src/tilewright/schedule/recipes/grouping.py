"""Which blocks run together: inlining of cheap producers, and groups of what remains.

A group is one contraction or window with the elementwise block that alone consumes it, a chain of
blocks that share their leading dimensions (softmax, norms), or a single block.
"""

from __future__ import annotations

from math import inf, prod

from tilewright.dtypes import index
from tilewright.errors import UserError
from tilewright.schedule.handles import names_of
from tilewright.schedule.recipes.access_order import across_lines
from tilewright.schedule.recipes.choices import choices_of
from tilewright.schedule.recipes.contraction.digits import result_digits
from tilewright.schedule.recipes.contraction.phases import phases_of
from tilewright.schedule.recipes.group import Group
from tilewright.schedule.recipes.reduction import runs_along
from tilewright.schedule.recipes.windows.channel_shape import wants_border
from tilewright.schedule.recipes.windows.sliding import puts_border
from tilewright.schedule.schedule import Schedule
from tilewright.tensor import ir as tir
from tilewright.tensor.analysis.structure import Kind, kind_of, loads_of
from tilewright.tensor.functions import is_function
from tilewright.tensor.terms import terms
from tilewright.tensor.visit import walk

__all__ = ["Group", "groups_of", "inline_producers", "is_shifted"]

# Operations that are rather done again than that their result goes through memory.
_REPEATED = 4

# Nodes of an index beyond which nothing is written into it, since places of places grow without
# end; and of integer arithmetic, which is free otherwise, beyond which it is not done twice.
_LARGE = 256


def inline_producers(schedule: Schedule, done: frozenset[str] = frozenset()) -> None:
    """Inline elementwise blocks into their consumers where nothing is computed more often.

    Blocks that are `done` have their schedule already.
    """
    for name in schedule.blocks():
        if name in done:
            continue
        block = schedule.block(name)
        if kind_of(block) is Kind.ELEMENTWISE and _may_inline(schedule, block):
            try:
                schedule.compute_inline(name)
            except UserError:
                continue  # for example an output: it stays where it is


def _may_inline(schedule: Schedule, block: tir.Block) -> bool:
    buffer = block.writes[0].buffer
    if buffer in schedule.func.params:
        return False
    readers = _readers(schedule, buffer)
    if any(_outgrows(block, reader) for reader in readers):
        return False
    if readers and is_shifted(block):
        return True
    if not readers or any(kind_of(r) is Kind.CONTRACTION for r in readers):
        return False
    if _finishes(schedule, block) and any(across_lines(r) is not None for r in readers):
        return False
    if _is_cheap(block):
        return all(kind_of(r) is not Kind.WINDOWED for r in readers)
    loads = sum(load.buffer is buffer for r in readers for load in loads_of(r))
    if any(_points(reader) > _points(block) for reader in readers):
        return False
    if loads == 1:
        return True
    plain = all(kind_of(reader) is Kind.ELEMENTWISE for reader in readers)
    return plain and _operations(block) * (loads - 1) <= _REPEATED


def _outgrows(block: tir.Block, reader: tir.Block) -> bool:
    """Whether places in the body of a reader would get too large: those of places of places do."""
    buffer, own = block.writes[0].buffer, {it.var for it in block.iters}
    loads = loads_of(reader)
    at = max((_size(i) for load in loads if load.buffer is buffer for i in load.indices), default=1)
    for place in (i for load in loads_of(block) for i in load.indices):
        uses = sum(part in own for part in walk(place) if isinstance(part, tir.Var))
        if _size(place) + uses * (at - 1) > _LARGE:
            return True
    whole = _size(block.body)
    for place in (i for load in loads for i in load.indices):
        inner = sum(isinstance(p, tir.Load) and p.buffer is buffer for p in walk(place))
        if inner and _size(place) + inner * whole > _LARGE:
            return True
    return False


def _size(part: tir.Expr | tir.Stmt) -> int:
    return sum(1 for _ in walk(part))


def is_shifted(block: tir.Block) -> bool:
    """Whether a block only copies what lies elsewhere in the same order: reading it costs nothing.

    Data with their border stored around them are read like that.
    """
    store = block.body
    if not isinstance(store, tir.Store) or not isinstance(store.value, tir.Load):
        return False
    order = tuple(it.var for it in block.iters)
    return store.indices == order and _is_in_order(store.value.indices, order)


def _finishes(schedule: Schedule, block: tir.Block) -> bool:
    """Whether a block is the epilogue of a product, which runs in registers."""
    sources = {load.buffer for load in loads_of(block)}
    blocks = names_of(schedule.func).blocks.values()
    return any(
        kind_of(b) is Kind.CONTRACTION and any(w.buffer in sources for w in b.writes)
        for b in blocks
    )


def _is_cheap(block: tir.Block) -> bool:
    """Whether computing again costs no more than loading: a copy, or one operation."""
    return _operations(block) <= 1


def _operations(block: tir.Block) -> float:
    """Arithmetic for one element; divisions, functions and much else are never done twice."""
    parts = [p for p in walk(block.body) if isinstance(p, tir.Expr)]
    if len(parts) > _LARGE or any(is_function(p) or type(p) is tir.Div for p in parts):
        return inf
    return sum(isinstance(p, tir.Binary) and p.dtype != index for p in parts)


def _points(block: tir.Block) -> int:
    extents = [tir.int_value(it.extent) for it in block.iters]
    return prod(4096 if e is None else e for e in extents)


def _readers(schedule: Schedule, buffer: tir.Buffer) -> list[tir.Block]:
    blocks = names_of(schedule.func).blocks.values()
    return [b for b in blocks if any(region.buffer is buffer for region in b.reads)]


def groups_of(schedule: Schedule, scheduled: frozenset[str] = frozenset()) -> list[Group]:
    """Groups in program order; every block that is not scheduled yet is in exactly one."""
    blocks = {name: schedule.block(name) for name in schedule.blocks() if name not in scheduled}
    groups: list[Group] = []
    done: set[str] = set()
    for name, block in blocks.items():
        if name in done:
            continue
        group = _group_from(schedule, name, block, blocks, done)
        done.update(group.members)
        groups.append(group)
    return groups


def _group_from(
    schedule: Schedule,
    name: str,
    block: tir.Block,
    blocks: dict[str, tir.Block],
    done: set[str],
) -> Group:
    kind = kind_of(block)
    if kind is Kind.CONTRACTION or kind is Kind.WINDOWED:
        return Group(kind, (name,), _epilogue(schedule, block))
    chooser = _chooser_of(schedule, block)
    if chooser is not None:
        return Group(kind, (name, chooser.name), _epilogue(schedule, chooser))
    window = _window_of(schedule, block)
    if window is not None:
        return Group(Kind.WINDOWED, (name, window.name), _epilogue(schedule, window))
    rows = _row_group(schedule, name, blocks, done)
    if rows is not None:
        return rows
    if kind is Kind.REDUCTION:
        return Group(Kind.WINDOWED, (name,), _epilogue(schedule, block))
    return Group(kind, (name,))


def _chooser_of(schedule: Schedule, block: tir.Block) -> tir.Block | None:
    """The block that alone reads the results of one that chooses, and chooses itself."""
    buffer = block.writes[0].buffer
    if buffer in schedule.func.params or not choices_of(block):
        return None
    readers = _readers(schedule, buffer)
    return readers[0] if len(readers) == 1 and choices_of(readers[0]) else None


def _window_of(schedule: Schedule, border: tir.Block) -> tir.Block | None:
    """The window that alone reads data with a border, which this block makes."""
    buffer = border.writes[0].buffer
    readers = _readers(schedule, buffer)
    if len(readers) != 1 or buffer in schedule.func.params:
        return None
    (window,) = readers
    return window if wants_border(window, border) or puts_border(window, border) else None


def _epilogue(schedule: Schedule, block: tir.Block) -> str | None:
    """The elementwise block that alone reads the result, element by element."""
    buffer = block.writes[0].buffer
    if buffer in schedule.func.params:
        return None
    readers = _readers(schedule, buffer)
    if len(readers) != 1 or kind_of(readers[0]) is not Kind.ELEMENTWISE:
        return None
    (reader,) = readers
    own = [load for load in loads_of(reader) if load.buffer is buffer]
    order = tuple(it.var for it in reader.iters)
    plain = all(tuple(load.indices) == order for load in own) or bool(phases_of(reader, buffer))
    if kind_of(block) is Kind.CONTRACTION and not plain:
        digits = result_digits(reader, buffer)
        plain = digits is not None and digits[-1][-1] is reader.iters[-1].var
    written = isinstance(reader.body, tir.Store) and _is_in_order(reader.body.indices, order)
    return reader.name if plain and written else None


def _is_in_order(indices: tuple[tir.Expr, ...], order: tuple[tir.Var, ...]) -> bool:
    """Whether places are iterators in order, each perhaps moved by a number."""
    parts = [terms(at) for at in indices]
    moving = [[(factor, p) for factor, p in at if not isinstance(p, tir.Const)] for at in parts]
    return moving == [[(1, var)] for var in order]


def _row_group(
    schedule: Schedule, name: str, blocks: dict[str, tir.Block], done: set[str]
) -> Group | None:
    """The longest run of blocks from here on that share their leading dimensions."""
    order = [n for n in blocks if n not in done]
    members: list[str] = []
    shared: int | None = None
    for candidate in order[order.index(name) :]:
        block = blocks[candidate]
        if kind_of(block) not in (Kind.ELEMENTWISE, Kind.REDUCTION):
            break
        together = _shared_dimensions(block, blocks[name])
        shared = together if shared is None else min(shared, together)
        if not shared:
            break
        members.append(candidate)
    while members and not _is_closed(schedule, members):
        members.pop()
    folds = [m for m in members if kind_of(blocks[m]) is Kind.REDUCTION]
    if not folds or not all(runs_along(blocks[m]) for m in folds):
        return None
    spatial = min(_leading_spatial(blocks[m]) for m in members)
    shared = min(spatial, *(_shared_dimensions(blocks[m], blocks[members[0]]) for m in members))
    return Group(Kind.REDUCTION, tuple(members), shared=shared) if shared else None


def _is_closed(schedule: Schedule, members: list[str]) -> bool:
    """Whether only the last member's result leaves the group."""
    blocks = [schedule.block(m) for m in members]
    for block in blocks[:-1]:
        buffer = block.writes[0].buffer
        if buffer in schedule.func.params:
            return False
        if any(r.name not in members for r in _readers(schedule, buffer)):
            return False
    return True


def _leading_spatial(block: tir.Block) -> int:
    """How many leading iterators index the result's leading dimensions by themselves."""
    store = block.body
    assert isinstance(store, tir.Store)
    count = 0
    for it, place in zip(block.iters, store.indices, strict=False):
        if it.kind is not tir.IterKind.SPATIAL or place != it.var:
            break
        count += 1
    return count


def _shared_dimensions(a: tir.Block, b: tir.Block) -> int:
    """Leading iterators with equal extents whose values are used as they are in every access."""
    count = 0
    for x, y in zip(a.iters[: _leading_spatial(a)], b.iters[: _leading_spatial(b)], strict=False):
        if x.extent != y.extent or not (_leads(a, count) and _leads(b, count)):
            break
        count += 1
    return count


def _leads(block: tir.Block, position: int) -> bool:
    """Whether every multi-dimensional input that uses the iterator has it at its own position."""
    var = block.iters[position].var
    for load in loads_of(block):
        places = [d for d, index in enumerate(load.indices) if index == var]
        if places and places != [position]:
            return False
    return True
