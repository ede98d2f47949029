"""Steps that both forms of attention share: copies, vectors along the queries, register tiles."""

from __future__ import annotations

from tilewright.schedule.recipes.attention.roles import Attention
from tilewright.schedule.recipes.attention.space import BATCH, AttentionPoint
from tilewright.schedule.recipes.context import Context, extent_of, share_loop
from tilewright.schedule.recipes.contraction.tiling import even, finish_tile, unroll_walks
from tilewright.tensor import ir as tir
from tilewright.tensor.analysis.structure import loads_of
from tilewright.tensor.visit import free_vars

__all__ = ["Steps"]

# Steps of the reduction that one iteration takes, the best first, and how long it must be for that.
_STEPS_AT_ONCE = (4, 5, 3, 6)
_LONG_WALK = 32


class Steps:
    """A schedule in the making, with the roles of its blocks and the point."""

    def __init__(self, context: Context, roles: Attention, point: AttentionPoint) -> None:
        self.context, self.s = context, context.schedule
        self.roles, self.point = roles, point
        self.query = self.s.block(roles.powers).iters[roles.batch].var.name
        self.key = self.s.block(roles.powers).iters[roles.batch + 1].var.name
        self.row = ""
        """The loop over tiles of queries; everything is inside."""
        self.shared = ""
        """The loop whose iterations the threads share."""

    def buffer(self, block: str) -> str:
        """The name of what a block writes."""
        return self.s.block(block).writes[0].buffer.name

    def copies(self) -> tuple[str, ...]:
        """Copies of what is read along the queries: the left operand, and masks."""
        made: list[str] = []
        for name in (self.roles.scores, self.roles.logits):
            block = self.s.block(name)
            query = block.iters[self.roles.batch].var
            loads = [a for a in loads_of(block) if a.buffer in self.s.func.params]
            moving = [a for a in loads if any(query in free_vars(index) for index in a.indices)]
            made += [self._copy(name, load) for load in dict.fromkeys(moving)]
        return tuple(made)

    def pack(self) -> tuple[str, ...]:
        """Copies of keys and values as the register tiles read them, if the point wants them."""
        r, s = self.roles, self.s
        if not self.point.packs:
            return ()
        keys, values = self._copy(r.scores, r.first.right), self._copy(r.sums, r.second.right)
        stored = self.buffer(values)
        s.layout_split(stored, r.batch, self.point.columns)
        s.layout_reorder(stored, [*range(r.batch + 1), r.batch + 2, r.batch + 1])
        return keys, values

    def finish_packed(self, *blocks: str) -> None:
        """Made once for all queries of a head."""
        s = self.s
        for block in blocks:
            s.compute_at(block, self.shared)
            key = self.loop_along(block, self.key)
            feature = next(loop for loop in s.loops(block)[-2:] if loop != key)
            panels, lane = s.split(feature, self.point.columns)
            s.reorder(panels, key, lane)
            s.vectorize(lane)

    def _copy(self, block: str, load: tir.Load) -> str:
        """A copy of what one load reads; the buffer may also be read elsewhere by the block."""
        loads = [a for a in loads_of(self.s.block(block)) if a.buffer is load.buffer]
        places = list(dict.fromkeys(a.indices for a in loads))
        access = places.index(load.indices) if len(places) > 1 else -1
        return str(self.s.reindex(block, load.buffer.name, access))

    def round_up(self, *blocks: str) -> None:
        """Whole tiles of queries."""
        for block in blocks:
            self.s.round_up(block, self.query, self.point.queries)

    def turn(self, *blocks: str) -> None:
        """Store results with the queries innermost."""
        for block in blocks:
            iters = [it for it in self.s.block(block).iters if it.kind is tir.IterKind.SPATIAL]
            at = next(n for n, it in enumerate(iters) if it.var.name == self.query)
            order = [*(n for n in range(len(iters)) if n != at), at]
            if order != list(range(len(iters))):
                self.s.layout_reorder(self.buffer(block), order)

    def tile_queries(self, block: str) -> str:
        """Cut a block's loops into tiles of queries; the loop in a tile.

        Threads share the heads of all batches, or also the tiles.
        """
        s = self.s
        *batch, query = s.loops(block)[: self.roles.batch + 1]
        tiles, rows = s.split(query, self.point.queries)
        if self.point.axis == BATCH and batch:
            self.shared = str(s.fuse(*batch)) if len(batch) > 1 else batch[0]
            self.row = str(tiles)
        else:
            self.row = self.shared = str(s.fuse(*batch, tiles)) if batch else str(tiles)
        return str(rows)

    def share(self) -> None:
        """Let the threads share the work."""
        share_loop(self.context, self.shared, parallel=bool(self.point.parallel))

    def lanes_last(self, block: str, around: str) -> list[str]:
        """The loops of a block inside another loop, the one along the queries innermost."""
        loops = self.s.loops(block)
        inner = list(loops[loops.index(around) + 1 :])
        query = self.loop_along(block, self.query)
        order = [*(loop for loop in inner if loop != query), query]
        if order != inner:
            self.s.reorder(*order)
        return order

    def loop_along(self, block: str, iterator: str) -> str:
        """The innermost loop that drives an iterator."""
        node = self.s.block(block)
        pairs = zip(node.iters, node.bindings, strict=True)
        binding = next(b for it, b in pairs if it.var.name == iterator)
        used = {var.name for var in free_vars(binding)}
        return next(name for name in reversed(self.s.loops(block)) if name in used)

    def tile_result(self, steps: int | None = None) -> None:
        """The sum that gives the result, in register tiles, and the result made of them."""
        s, r, point = self.s, self.roles, self.point
        *_, feature, walk = s.loops(r.sums)
        rows = self.tile_queries(r.sums)
        tiles, inner = s.split(rows, even(point.queries, point.rows))
        panels, lane = s.split(feature, point.columns)
        s.set_scope(self.buffer(r.sums), "register")
        s.reorder(panels, tiles, walk, inner, lane)
        self.finish_rows(s.reverse_compute_at(r.result, tiles))
        self.finish_product(r.sums, walk, steps)

    def finish_product(
        self, block: str, walk: str, steps: int | None = None, *, rows: int = 1
    ) -> None:
        """Several steps of the reduction at once, start values in front, registers inside."""
        s = self.s
        if steps is None:
            outer = self.walk_by_steps(walk)
        else:
            outer, inner = s.split(walk, steps)
            s.unroll(inner)
        init = s.decompose_reduction(block, outer)
        finish_tile(self.context, block, rows)
        finish_tile(self.context, init, rows)

    def walk_by_steps(self, walk: str) -> str:
        """Several steps of a long walk per iteration; the loop over them."""
        extent = extent_of(self.context, walk)
        if extent is None or extent < _LONG_WALK:
            return walk
        factor = next((f for f in _STEPS_AT_ONCE if extent % f == 0), _STEPS_AT_ONCE[0])
        return unroll_walks(self.context, [walk], factor)[-1]

    def finish_rows(self, loops: tuple[str, ...]) -> None:
        """Whole vectors and unrolled rows: what leaves registers."""
        *around, lane = loops
        self.s.vectorize(lane)
        for loop in around:
            self.s.unroll(loop)
