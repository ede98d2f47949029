"""Give a whole block to a tensor instruction, whatever operator it came from.

The iterators of the block and the axes of the instruction are matched by which operands they index
(their characteristic vectors). Iterators that match the same axis are fused, those that match none
stay outside. Operands are copied into the order and shape that the instruction wants, padded to
multiples of its extents, and cut into its tiles: all of it ordinary steps of the trace.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tilewright.errors import Code, ScheduleError
from tilewright.intrin import lookup
from tilewright.intrin.intrinsic import Axis, TensorIntrinsic
from tilewright.intrin.match import Accesses, Mismatch, linear_form, unified
from tilewright.schedule.primitives.tensorize import S423, unknown_instruction
from tilewright.schedule.schedule import Schedule
from tilewright.tensor import ir as tir
from tilewright.tensor.visit import free_vars, walk

__all__ = ["Mapping", "mappings", "tensorize_block"]

S440 = Code("S440", "the iterators of block `{block}` do not map to the axes of `{intrinsic}`")


@dataclass(frozen=True)
class Mapping:
    """Which iterators of a block (by name) make up each axis, and which stay outside."""

    axes: tuple[tuple[Axis, tuple[str, ...]], ...]
    outside: tuple[str, ...]
    accesses: Accesses

    def iterators_of(self, axis: tir.Var) -> tuple[str, ...]:
        """The iterators behind an axis."""
        return next(names for a, names in self.axes if a.var is axis)


def mappings(block: tir.Block, chosen: TensorIntrinsic) -> Iterator[Mapping]:
    """Every way to see the block as loops around the instruction; O(orders of its operands)."""
    if type(block.body) is not tir.Store:
        return
    for accesses in unified(chosen.meaning.store, block.body):
        if not isinstance(accesses, Mismatch):
            found = _mapping(block, chosen, accesses)
            if found is not None:
                yield found


def _mapping(block: tir.Block, chosen: TensorIntrinsic, accesses: Accesses) -> Mapping | None:
    by_operand = {operand: (wanted, given) for operand, wanted, _, given in accesses}
    axis_vectors = [
        _vector(a.var, [wanted for wanted, _ in by_operand.values()]) for a in chosen.meaning.axes
    ]
    left = {it.var.name: _vector(it.var, [g for _, g in by_operand.values()]) for it in block.iters}
    axes: list[tuple[Axis, tuple[str, ...]]] = []
    for number, (axis, vector) in enumerate(zip(chosen.meaning.axes, axis_vectors, strict=True)):
        fitting = [name for name, found in left.items() if found == vector]
        if not fitting:
            return None
        # Where several axes look alike, each takes one iterator and the last takes the rest.
        taken = fitting[:1] if vector in axis_vectors[number + 1 :] else fitting
        axes.append((axis, tuple(taken)))
        for name in taken:
            del left[name]
    return Mapping(tuple(axes), tuple(left), accesses)


def _vector(var: tir.Var, accesses: list[tuple[tir.Expr, ...]]) -> tuple[bool, ...]:
    return tuple(any(var in free_vars(index) for index in indices) for indices in accesses)


def tensorize_block(schedule: Schedule, block: str, intrinsic: str, choice: int = 0) -> str:
    """Apply all steps; the name of the block that is left around the instruction.

    `choice` picks one of the mappings (operands of a product in either order). The schedule is
    unchanged if a step is refused.
    """
    chosen = lookup(intrinsic)
    if chosen is None:
        raise unknown_instruction(intrinsic)
    copy = schedule.copy()
    _bring_out_groups(copy, block)
    node = copy.block(block)
    found = list(mappings(node, chosen))
    if choice >= len(found):
        code = S440 if _computes(node, chosen) else S423
        facts = {"intrinsic": intrinsic, "mappings": len(found)}
        hint = "every axis needs an iterator that indexes the same operands"
        raise ScheduleError(code, facts, program=copy.func, marks={"block": node}, hint=hint)
    work = _Work(copy, block, chosen, found[choice])
    tile = work.run(intrinsic)
    schedule.restore(work.schedule)
    return tile


def _bring_out_groups(schedule: Schedule, block: str) -> None:
    """Split iterators that an index divides by a constant: a group is a dimension of its own."""
    for it in schedule.block(block).iters:
        sizes = {
            size
            for part in walk(schedule.block(block).body)
            if type(part) is tir.FloorDiv and part.a is it.var
            for size in [tir.int_value(part.b)]
            if size is not None
        }
        extent = tir.int_value(it.extent)
        if len(sizes) == 1 and extent is not None and extent % min(sizes) == 0:
            schedule.split_iter(block, it.var.name, min(sizes))


def _computes(block: tir.Block, chosen: TensorIntrinsic) -> bool:
    if type(block.body) is not tir.Store:
        return False
    return any(not isinstance(a, Mismatch) for a in unified(chosen.meaning.store, block.body))


class _Work:
    """The steps, on a copy of the schedule."""

    def __init__(
        self, schedule: Schedule, block: str, chosen: TensorIntrinsic, mapping: Mapping
    ) -> None:
        self.schedule, self.block, self.chosen, self.mapping = schedule, block, chosen, mapping

    def run(self, intrinsic: str) -> str:
        s, mapping = self.schedule, self.mapping
        wanted = {o.buffer: o for o in self.chosen.operands}
        operands = {id(o): (o, w, b) for o, w, b, _ in mapping.accesses}
        for operand, indices, buffer in operands.values():
            self._bring_into_order(indices, buffer, packed=wanted[operand].dense > 1)
        names = [*mapping.outside, *(n for _, part in mapping.axes for n in part)]
        loops = [self._loop(name) for name in names]
        if len(loops) > 1:
            s.reorder(*loops)
        axis_loops = [self._fused(part) for _, part in mapping.axes]
        self._pad(axis_loops)
        for part in self.chosen.operands:
            if part.dense > 1 or _is_mixed(part.buffer, self.chosen):
                self._pack(part.buffer)
        return self._tile(axis_loops, intrinsic)

    def _loop(self, iterator: str) -> str:
        """The loop that drives an iterator."""
        node = self.schedule.block(self.block)
        for it, binding in zip(node.iters, node.bindings, strict=True):
            if it.var.name == iterator and isinstance(binding, tir.Var):
                return binding.name
        facts = {"intrinsic": self.chosen.name, "iterator": iterator}
        hint = "use it before the loops of the block are split or fused"
        marks = {"block": node}
        raise ScheduleError(S440, facts, program=self.schedule.func, marks=marks, hint=hint)

    def _bring_into_order(
        self, indices: tuple[tir.Expr, ...], buffer: tir.Buffer, *, packed: bool
    ) -> None:
        """Copy an operand: outside iterators first, then one dimension for each axis, in order."""
        s, node = self.schedule, self.schedule.block(self.block)
        used = self._dims(buffer)
        groups = [self.mapping.iterators_of(a) for a in _axes_of(indices, self.chosen)]
        order = [n for n in used if n in self.mapping.outside] + [n for g in groups for n in g]
        plain = [n.name if isinstance(n, tir.Var) else "" for n in self._indices(buffer)]
        if plain == order and all(len(g) == 1 for g in groups) and not packed:
            return
        name = str(s.reindex(self.block, buffer.name))
        now = [it.var.name for it in node.iters if it.var.name in used]
        if now != order:
            s.layout_reorder(name, [now.index(n) for n in order])
        at = len(order) - sum(len(g) for g in groups)
        for group in groups:
            if len(group) > 1:
                s.layout_fuse(name, at, len(group))
            at += 1

    def _indices(self, buffer: tir.Buffer) -> tuple[tir.Expr, ...]:
        return next(given for _, _, b, given in self.mapping.accesses if b is buffer)

    def _dims(self, buffer: tir.Buffer) -> set[str]:
        """The iterators that an operand is indexed by."""
        return {v.name for index in self._indices(buffer) for v in free_vars(index)}

    def _fused(self, iterators: tuple[str, ...]) -> str:
        if len(iterators) == 1:
            return self._loop(iterators[0])
        return str(self.schedule.fuse_iters(self.block, iterators))

    def _pad(self, axis_loops: list[str]) -> None:
        node = self.schedule.block(self.block)
        extents = {
            loop: a.extent for loop, (a, _) in zip(axis_loops, self.mapping.axes, strict=True)
        }
        bound = [b.name if isinstance(b, tir.Var) else "" for b in node.bindings]
        self.schedule.pad_einsum(self.block, [extents.get(name, 1) for name in bound])

    def _pack(self, operand: tir.Buffer) -> None:
        """Put the tiles of an operand's dense dimensions one after another in memory."""
        s, node = self.schedule, self.schedule.block(self.block)
        assert type(node.body) is tir.Store
        accesses = next(
            a for a in unified(self.chosen.meaning.store, node.body) if not isinstance(a, Mismatch)
        )
        wanted, buffer = next((w, b) for o, w, b, _ in accesses if o is operand)
        axes = _axes_of(wanted, self.chosen)
        extents = {a.var: a.extent for a in self.chosen.meaning.axes}
        first = len(buffer.shape) - len(axes)
        for number, axis in enumerate(axes):
            s.layout_split(buffer.name, first + 2 * number, extents[axis])
        outer = [first + 2 * n for n in range(len(axes))]
        inner = [d + 1 for d in outer]
        s.layout_reorder(buffer.name, [*range(first), *outer, *inner])
        if len(wanted) < len(axes):
            s.layout_fuse(buffer.name, first + len(axes), len(axes))

    def _tile(self, axis_loops: list[str], intrinsic: str) -> str:
        s, axes = self.schedule, [a for a, _ in self.mapping.axes]
        around = [p for p in s.loops(self.block) if p not in axis_loops]
        pairs = [s.split(loop, a.extent) for loop, a in zip(axis_loops, axes, strict=True)]
        kinds = [a.kind is tir.IterKind.REDUCE for a in axes]
        spatial = [outer for (outer, _), folds in zip(pairs, kinds, strict=True) if not folds]
        folded = [outer for (outer, _), folds in zip(pairs, kinds, strict=True) if folds]
        inner = [pair[1] for pair in pairs]
        s.reorder(*around, *spatial, *folded, *inner)
        if folded:
            s.decompose_reduction(self.block, folded[0])
        return str(s.tensorize(inner[0], intrinsic))


def _axes_of(indices: tuple[tir.Expr, ...], chosen: TensorIntrinsic) -> list[tir.Var]:
    """The axes in the indices of an operand, in order; in one index, the larger step first."""
    variables = {a.var for a in chosen.meaning.axes}
    found: list[tir.Var] = []
    for index in indices:
        form = linear_form(index, variables)
        assert form is not None, "the meaning of an intrinsic has linear indices"
        found += sorted(form.factors, key=lambda v, f=form.factors: -f[v])  # type: ignore[misc]
    return found


def _is_mixed(operand: tir.Buffer, chosen: TensorIntrinsic) -> bool:
    """Does one dimension of the operand belong to several axes?"""
    return any(
        len(_axes_of((d,), chosen)) > 1
        for o, wanted, _, _ in next(_own_accesses(chosen))
        if o is operand
        for d in wanted
    )


def _own_accesses(chosen: TensorIntrinsic) -> Iterator[Accesses]:
    store = chosen.meaning.store
    return (a for a in unified(store, store) if not isinstance(a, Mismatch))
