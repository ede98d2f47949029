"""Accesses through layouts, and loops over the dimensions that are stored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.dtypes import index as index_type
from tilewright.tensor import ir as tir
from tilewright.tensor.analysis.structure import is_in_order
from tilewright.tensor.arith import Analyzer
from tilewright.tensor.build import make_block
from tilewright.tensor.layout import Fuse, Reorder, Split
from tilewright.tensor.node import Node
from tilewright.tensor.stored import (
    Layout,
    is_bijective,
    logical_index,
    stored_index,
    stored_shape,
)
from tilewright.tensor.visit import rewrite, substitute, walk, walk_stmts

__all__ = ["Relaying"]


@dataclass(frozen=True)
class _Domain:
    """The iterators of a block anew, the names of their loops, and what the old iterators are.

    `follows`: the spatial iterators are the dimensions that are stored.
    """

    iters: tuple[tir.Iter, ...]
    names: tuple[str, ...]
    values: dict[tir.Var, tir.Expr]
    follows: bool

    @property
    def spatial(self) -> tuple[tir.Var, ...]:
        return tuple(it.var for it in self.iters if it.kind is tir.IterKind.SPATIAL)


class Relaying:
    """One walk over a program, with the layouts of all its buffers."""

    def __init__(self, func: tir.Func, layouts: dict[tir.Buffer, Layout]) -> None:
        self.func, self.layouts = func, layouts
        self.buffers = {
            old: tir.Buffer(old.name, stored_shape(old.shape, layout), old.dtype, old.scope)
            for old, layout in layouts.items()
        }

    def run(self) -> tir.Func:
        params = tuple(self.buffers.get(p, p) for p in self.func.params)
        return tir.Func(self.func.name, params, self._stmt(self.func.body))

    def _stmt(self, stmt: tir.Stmt) -> tir.Stmt:
        match stmt:
            case tir.Alloc(buffer=buffer, body=body):
                new = self.buffers.get(buffer, buffer)
                return stmt.with_fields(buffer=new, body=self._stmt(body))
            case tir.Seq(body=parts):
                return tir.Seq(tuple(map(self._stmt, parts)))
            case tir.For(body=body):
                nest = _nest_of(stmt)
                return (
                    stmt.with_fields(body=self._stmt(body)) if nest is None else self._nest(*nest)
                )
            case tir.Block():
                return self._block(stmt, _Domain(stmt.iters, (), {}, follows=False))
        return stmt

    def _nest(self, loops: tuple[tir.For, ...], block: tir.Block) -> tir.Stmt:
        """A block with a loop for each iterator."""
        domain = self._domain(loops, block)
        if not domain.values and domain.iters == block.iters:
            nest: tir.Stmt = self._block(block, domain)
            for loop in reversed(loops):
                nest = loop.with_fields(body=nest)
            return nest
        fresh = tuple(map(tir.Var, domain.names))
        nest = self._block(block, domain).with_fields(bindings=fresh)
        for loop_var, it in zip(reversed(fresh), reversed(domain.iters), strict=True):
            nest = tir.For(loop_var, it.extent, nest)
        return nest

    def _domain(self, loops: tuple[tir.For, ...], block: tir.Block) -> _Domain:
        """Iterators over stored dimensions and blocks of sums, as far as the block allows."""
        named = list(zip(block.iters, (loop.var.name for loop in loops), strict=True))
        spatial = [(it, n) for it, n in named if it.kind is tir.IterKind.SPATIAL]
        values: dict[tir.Var, tir.Expr] = {}
        layout = self._layout_of(block, [it for it, _ in spatial])
        follows = bool(layout) and _may_follow([it.extent for it, _ in spatial], layout)
        if follows:
            spatial = _followed(spatial, layout, values)
        reduce: list[tuple[tir.Iter, str]] = []
        for it, name in named:
            size = self._cut(block, it) if it.kind is tir.IterKind.REDUCE else None
            if size is not None:
                outer = _iter(f"{name}_0", it.extent // size, it.kind)
                inner = _iter(f"{name}_1", tir.Const(size), it.kind)
                reduce += [(outer, f"{name}_0"), (inner, f"{name}_1")]
                values[it.var] = outer.var * size + inner.var
            elif it.kind is tir.IterKind.REDUCE:
                reduce.append((it, name))
        pairs = (*spatial, *reduce)
        iters, names = tuple(it for it, _ in pairs), tuple(name for _, name in pairs)
        return _Domain(iters, names, values, follows=follows)

    def _layout_of(self, block: tir.Block, spatial: list[tir.Iter]) -> Layout:
        """The layout of what a block writes by its own iterators, each perhaps from a place on."""
        store = block.body
        if not isinstance(store, tir.Store) or len(spatial) != len(store.indices):
            return ()
        for place, it in zip(store.indices, spatial, strict=True):
            if place is not it.var and not (isinstance(place, tir.Add) and place.a is it.var):
                return ()
        return self.layouts.get(store.buffer, ())

    def _cut(self, block: tir.Block, it: tir.Iter) -> int | None:
        """The size of the blocks in which an operand stores what a sum runs over."""
        extent = tir.int_value(it.extent)
        for load in walk(block.body):
            if extent is None or not isinstance(load, tir.Load):
                continue
            at = load.indices
            for step in self.layouts.get(load.buffer, ()):
                if (
                    isinstance(step, Split)
                    and _is_summand(it.var, at[step.dim])
                    and 1 < step.factor < extent
                    and extent % step.factor == 0
                ):
                    return step.factor
                at = stored_index(at, (step,))
        return None

    def _block(self, block: tir.Block, domain: _Domain) -> tir.Block:
        """A block over other iterators, with its accesses moved."""
        store, same = block.body, None  # what is written element by element
        old = [it for it in block.iters if it.kind is tir.IterKind.SPATIAL]
        if domain.follows and isinstance(store, tir.Store):
            whole = store.buffer.shape == tuple(it.extent for it in old)
            same = store.buffer if whole and is_in_order(store.indices, old) else None
        inner = {s.var: s.extent for s in walk_stmts(block.body) if isinstance(s, tir.For)}
        analyzer = Analyzer({**{it.var: it.extent for it in domain.iters}, **inner})

        def tidy(expr: tir.Expr) -> tir.Expr:
            simple = isinstance(expr, tir.Const | tir.Var)
            return expr if simple else analyzer.simplify(expr)

        def direct(part: Node) -> Node | None:
            """What lies where the block writes, stored in the same way."""
            if same is None or not isinstance(part, tir.Load | tir.Store):
                return None
            if part.buffer.shape != same.shape or not is_in_order(part.indices, old):
                return None
            if self.layouts.get(part.buffer) != self.layouts[same]:
                return None
            return part.with_fields(buffer=self.buffers[part.buffer], indices=domain.spatial)

        def moved(part: Node) -> Node | None:
            if isinstance(part, tir.Load | tir.Store):
                at = stored_index(part.indices, self.layouts.get(part.buffer, ()), analyzer)
                buffer = self.buffers.get(part.buffer, part.buffer)
                return part.with_fields(buffer=buffer, indices=tuple(map(tidy, at)))
            if isinstance(part, tir.Compare) and part.a.dtype == index_type:
                return tidy(part)
            return None

        def changed(stmt: tir.Stmt) -> tir.Stmt:
            return rewrite(substitute(rewrite(stmt, direct), domain.values), moved)

        init = None if block.init is None else changed(block.init)
        body = changed(block.body)
        made = make_block(block.name, domain.iters, block.bindings, body, init, block.predicate)
        return made.with_fields(notes=block.notes)


def _nest_of(stmt: tir.For) -> tuple[tuple[tir.For, ...], tir.Block] | None:
    """The loops of a block, one for each of its iterators, if that is all there is."""
    loops: list[tir.For] = []
    inside: tir.Stmt = stmt
    while isinstance(inside, tir.For):
        loops.append(inside)
        inside = inside.body
    if not isinstance(inside, tir.Block) or inside.predicate != tir.TRUE:
        return None
    plain = inside.bindings == tuple(loop.var for loop in loops)
    extents = [it.extent for it in inside.iters] == [loop.extent for loop in loops]
    return (tuple(loops), inside) if plain and extents else None


def _is_summand(var: tir.Var, expr: tir.Expr) -> bool:
    if isinstance(expr, tir.Add):
        return _is_summand(var, expr.a) or _is_summand(var, expr.b)
    return expr is var


def _may_follow(extents: Sequence[tir.Expr], layout: Layout) -> bool:
    """Whether iterators of these extents can run in blocks; those of a part may be too few."""
    dims = tuple(extents)
    for step in layout:
        if isinstance(step, Split) and Analyzer().divisor(dims[step.dim]) % step.factor:
            return False
        dims = stored_shape(dims, (step,))
    return is_bijective(layout)


Named = list[tuple[tir.Iter, str]]


def _followed(spatial: Named, layout: Layout, values: dict[tir.Var, tir.Expr]) -> Named:
    """Iterators over stored dimensions; `values` learns what the old ones are.

    A dimension that is stored as it is keeps its iterator.
    """
    extents = [it.extent for it, _ in spatial]
    names: list[str] = [name for _, name in spatial]
    kept: list[tir.Iter | None] = [it for it, _ in spatial]
    for step in layout:
        match step:
            case Reorder(order=order):
                names, kept = [names[d] for d in order], [kept[d] for d in order]
            case Split(dim=d):
                names[d : d + 1] = [f"{names[d]}_0", f"{names[d]}_1"]
                kept[d : d + 1] = [None, None]
            case Fuse(dim=d, sizes=sizes):
                names[d : d + len(sizes)] = ["".join(names[d : d + len(sizes)])]
                kept[d : d + len(sizes)] = [None]
    stored = stored_shape(extents, layout)
    iters = [
        old or _iter(name, extent, tir.IterKind.SPATIAL)
        for old, name, extent in zip(kept, names, stored, strict=True)
    ]
    tidy = Analyzer({it.var: it.extent for it in iters}).simplify
    places, _ = logical_index(extents, layout, [it.var for it in iters])
    for (old, _), place in zip(spatial, places, strict=True):
        if place is not old.var:
            values[old.var] = tidy(place)
    return list(zip(iters, names, strict=True))


def _iter(name: str, extent: tir.Expr, kind: tir.IterKind) -> tir.Iter:
    known = Analyzer().simplify(extent)
    return tir.Iter(tir.Var(f"v{name}"), known, kind)
