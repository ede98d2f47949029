"""What kind of computation a block is, told by its structure and never by an operator's name.

A *contraction* multiplies two operands and sums; each iterator belongs to a role by which of
(output, left, right) mention it. One recipe therefore serves matmul, batched matmul and every
convolution with separate output channels. A block that folds but has no columns of its own
(depthwise convolution, pooling) is *windowed* if its input index mixes spatial and reduce
iterators, else a plain *reduction*. Everything without reduce iterators is *elementwise*.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.tensor import ir as tir
from tilewright.tensor.visit import find, free_vars, walk

__all__ = [
    "Contraction",
    "Folding",
    "Kind",
    "contraction",
    "folding",
    "hidden_group",
    "is_in_order",
    "kind_of",
    "loads_of",
]


class Kind(enum.Enum):
    """The recipes there are."""

    CONTRACTION = "contraction"
    WINDOWED = "windowed"
    REDUCTION = "reduction"
    ELEMENTWISE = "elementwise"
    OPAQUE = "opaque"


@dataclass(frozen=True)
class Folding:
    """A reduction's body `out[…] = fold(out[…], value)`."""

    fold: tir.Fold
    store: tir.Store
    value: tir.Expr


@dataclass(frozen=True)
class Contraction:
    """Roles of the iterators of `out += left * right`, as positions in `block.iters`.

    `right` is the operand that shares `columns` with the output; the innermost dimension of the
    output is a column, so that vectors run along it.
    """

    block: tir.Block
    left: tir.Load
    right: tir.Load
    batch: tuple[int, ...]
    rows: tuple[int, ...]
    columns: tuple[int, ...]
    reduce: tuple[int, ...]


_FOLDS = {
    tir.Add: tir.Fold.ADD,
    tir.Mul: tir.Fold.MUL,
    tir.Min: tir.Fold.MIN,
    tir.Max: tir.Fold.MAX,
}


def folding(block: tir.Block) -> Folding | None:
    """The fold that a reduction block performs, or None if its body is something else."""
    store = block.body
    if not isinstance(store, tir.Store) or type(store.value) not in _FOLDS:
        return None
    update = store.value
    assert isinstance(update, tir.Binary)
    own = tir.Load(store.buffer, store.indices)
    if update.a == own:
        return Folding(_FOLDS[type(update)], store, update.b)
    if update.b == own:
        return Folding(_FOLDS[type(update)], store, update.a)
    return None


def contraction(block: tir.Block) -> Contraction | None:
    """The roles of the iterators if the block is a contraction, else None."""
    found = folding(block)
    if found is None or found.fold is not tir.Fold.ADD or not isinstance(found.value, tir.Mul):
        return None
    left, right = _single_load(found.value.a), _single_load(found.value.b)
    if left is None or right is None or not found.store.indices:
        return None
    roles = _roles(block, found.store, left, right)
    if roles is None:
        return None
    last = free_vars(found.store.indices[-1])
    positions = {it.var: p for p, it in enumerate(block.iters)}
    if any(positions.get(v) in roles.rows for v in last):
        roles = Contraction(
            block, right, left, roles.batch, roles.columns, roles.rows, roles.reduce
        )
    return roles if roles.columns and roles.reduce else None


def _single_load(value: tir.Expr) -> tir.Load | None:
    """The only buffer element in an operand, looking through conversions."""
    while isinstance(value, tir.Cast):
        value = value.value
    return value if isinstance(value, tir.Load) else None


def _is_step(it: tir.Iter) -> bool:
    return it.kind is tir.IterKind.REDUCE


def _roles(
    block: tir.Block, store: tir.Store, left: tir.Load, right: tir.Load
) -> Contraction | None:
    in_out, in_left, in_right = (
        set().union(*map(free_vars, indices)) if indices else set()
        for indices in (store.indices, left.indices, right.indices)
    )
    names = ("batch", "rows", "columns", "reduce", "single")
    groups: dict[str, list[int]] = {name: [] for name in names}
    for position, it in enumerate(block.iters):
        mentioned = (it.var in in_out, it.var in in_left, it.var in in_right)
        match mentioned:
            case (True, True, True):
                groups["batch"].append(position)
            case (True, True, False):
                groups["rows"].append(position)
            case (True, False, True):
                groups["columns"].append(position)
            case (False, True, True):
                groups["reduce"].append(position)
            case (True, False, False) if tir.int_value(it.extent) == 1:
                groups["batch"].append(position)  # operands are read at zero
            case (False, _, _) if tir.int_value(it.extent) == 1 and _is_step(it):
                groups["reduce"].append(position)  # an operand may have a dimension of one for it
            case (False, False, False) if tir.int_value(it.extent) == 1:
                groups["single"].append(position)
            case _:
                return None
    single = groups.pop("single")
    if single and not groups["columns"]:
        groups["columns"].append(single.pop())  # the result has some innermost dimension
    groups["batch"] = sorted([*groups["batch"], *single])
    fixed = {name: tuple(found) for name, found in groups.items()}
    return Contraction(block, left, right, **fixed)


def hidden_group(block: tir.Block) -> tuple[tir.Var, int] | None:
    """An iterator that is two in truth, and the size of the inner one: a group and its columns.

    One operand knows the quotient `o // 8` only, the other one and the result know `o` itself. With
    an iterator for each part the block is a contraction; groups of one column are none.
    """
    found = folding(block)
    if found is None or found.fold is not tir.Fold.ADD or not isinstance(found.value, tir.Mul):
        return None
    operands = _single_load(found.value.a), _single_load(found.value.b)
    if None in operands:
        return None
    for it in block.iters:
        size = _common_divisor(it.var, [load for load in operands if load is not None])
        plain = sum(it.var in load.indices for load in operands if load is not None)
        extent = tir.int_value(it.extent)
        if size is None or plain != 1 or it.var not in found.store.indices:
            continue
        if size > 1 and extent is not None and extent % size == 0 and _has_sum(block, operands):
            return it.var, size
    return None


def _common_divisor(var: tir.Var, loads: list[tir.Load]) -> int | None:
    """The one number by which a variable is divided wherever it is not an index by itself."""
    sizes: set[int | None] = set()
    for load in loads:
        for index in load.indices:
            quotients = [p for p in walk(index) if isinstance(p, tir.FloorDiv) and p.a is var]
            if index is var or var not in free_vars(index):
                continue
            uses = sum(part is var for part in walk(index))
            sizes.add(tir.int_value(quotients[0].b) if len(quotients) == uses == 1 else None)
    (size,) = sizes if len(sizes) == 1 else (None,)
    return size


def _has_sum(block: tir.Block, operands: tuple[tir.Load | None, ...]) -> bool:
    """Whether both operands walk along every reduce iterator, as those of a product do.

    One step is no walk: an operand need not know of it.
    """
    steps = [it for it in block.iters if _is_step(it)]
    reduce = [it.var for it in steps if tir.int_value(it.extent) != 1]
    used = [set().union(*map(free_vars, load.indices)) for load in operands if load is not None]
    return bool(reduce) and all(var in one for var in reduce for one in used)


def kind_of(block: tir.Block) -> Kind:
    """Which recipe fits a leaf block."""
    if not isinstance(block.body, tir.Store):
        return Kind.OPAQUE
    reduce = {it.var for it in block.iters if it.kind is tir.IterKind.REDUCE}
    if not reduce:
        return Kind.ELEMENTWISE
    if contraction(block) is not None or hidden_group(block) is not None:
        return Kind.CONTRACTION
    if folding(block) is None:
        return Kind.OPAQUE
    spatial = {it.var for it in block.iters} - reduce
    mixed = any(
        free_vars(index) & reduce and free_vars(index) & spatial
        for load in loads_of(block)
        for index in load.indices
    )
    return Kind.WINDOWED if mixed else Kind.REDUCTION


def loads_of(block: tir.Block) -> list[tir.Load]:
    """What the block reads, without the accumulator of a reduction."""
    found = folding(block) if block.init is not None else None
    root = found.value if found else block.body
    return list(find(root, tir.Load))


def is_in_order(indices: Sequence[tir.Expr], iters: Sequence[tir.Iter]) -> bool:
    """Whether an access is by the iterators in order; a single element may be counted by none."""
    return len(indices) == len(iters) and all(
        at is it.var or (tir.int_value(it.extent) == 1 and tir.int_value(at) == 0)
        for at, it in zip(indices, iters, strict=True)
    )
