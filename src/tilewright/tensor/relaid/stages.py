"""Stages that only move data: in front of a block that reads, or behind the program's results."""

from __future__ import annotations

from collections.abc import Mapping

from tilewright.tensor import ir as tir
from tilewright.tensor.arith import Analyzer
from tilewright.tensor.build import make_block, seq
from tilewright.tensor.node import Node
from tilewright.tensor.stored import Layout, logical_index, stored_shape
from tilewright.tensor.visit import (
    find_block,
    free_vars,
    replace_node,
    rewrite,
    substitute,
    walk,
    walk_stmts,
)

__all__ = ["with_buffers", "with_copy", "with_packing"]


def with_packing(func: tir.Func, buffer: tir.Buffer, layout: Layout) -> tir.Func:
    """The result is computed as it is, and then stored by a stage of its own."""
    plain = tir.Buffer(f"{buffer.name}_plain", buffer.shape, buffer.dtype)
    stored = tir.Buffer(buffer.name, stored_shape(buffer.shape, layout), buffer.dtype)
    body = with_buffers(func, {buffer: plain}).body
    iters = _iters(stored)
    at, inside = logical_index(buffer.shape, layout, [it.var for it in iters])
    tidy = Analyzer({it.var: it.extent for it in iters}).simplify
    places = (i if isinstance(i, tir.Var) else tidy(i) for i in at)
    value: tir.Expr = tir.Load(plain, tuple(places))
    if inside is not None:
        value = tir.Select(tidy(inside), value, tir.const(0, buffer.dtype))
    nest = _stage(f"{buffer.name}_stored", stored, iters, value)
    params = tuple(stored if p is buffer else p for p in func.params)
    return tir.Func(func.name, params, tir.Alloc(plain, _behind(body, nest)))


def with_copy(func: tir.Func, block: tir.Block, load: tir.Load) -> tir.Func:
    """The block reads a copy of a buffer, which a stage in front of its loops makes.

    Where every index has an iterator of its own, only what is read is copied (unless places outside
    are held at the border, which is all of it). A copy of all of it is for whatever the block reads
    of the buffer, and needs no second one.
    """
    old = find_block(func, block.name)
    assert old is not None
    if load not in walk(old.body):
        return func
    name = _new_name(func, f"{block.name}_{load.buffer.name}")
    extents = {it.var: it.extent for it in block.iters}
    own = [next(iter(v)) for i in load.indices if len(v := free_vars(i) & extents.keys()) == 1]
    held = any(isinstance(p, tir.Min | tir.Max) for i in load.indices for p in walk(i))
    if len(set(own)) == len(load.indices) and not held:
        copy = tir.Buffer(name, tuple(extents[var] for var in own), load.buffer.dtype)
        reads = {load: tir.Load(copy, tuple(own))}
    else:
        copy = tir.Buffer(name, load.buffer.shape, load.buffer.dtype)
        same = (p for p in walk(old.body) if isinstance(p, tir.Load) and p.buffer is load.buffer)
        reads = {part: tir.Load(copy, part.indices) for part in same}
    iters = _iters(copy)
    where = tuple(it.var for it in iters)
    values = dict(zip(own, where, strict=False)) if reads[load].indices != load.indices else {}
    places = tuple(substitute(i, values) for i in load.indices) if values else where
    nest = _stage(name, copy, iters, tir.Load(load.buffer, places))
    top = next(stmt for stmt in _tops(func.body) if find_block(stmt, block.name) is not None)
    body = rewrite(old.body, lambda part: reads.get(part) if isinstance(part, tir.Load) else None)
    new = make_block(old.name, old.iters, old.bindings, body, old.init, old.predicate)
    changed = replace_node(top, old, new.with_fields(notes=old.notes))
    return func.with_fields(
        body=tir.Alloc(copy, _flat(replace_node(func.body, top, seq(nest, changed))))
    )


def _new_name(func: tir.Func, name: str) -> str:
    """The name, or one with a number if it is taken: a block may read a buffer at two places."""
    used = {buffer.name for buffer in func.params}
    used |= {stmt.buffer.name for stmt in walk_stmts(func) if isinstance(stmt, tir.Alloc)}
    used |= {stmt.name for stmt in walk_stmts(func) if isinstance(stmt, tir.Block)}
    names = (name, *(f"{name}_{n}" for n in range(2, len(used) + 3)))
    return next(n for n in names if n not in used)


def with_buffers(func: tir.Func, buffers: Mapping[tir.Buffer, tir.Buffer]) -> tir.Func:
    """The program with some buffers in place of others, at the same indices."""

    def change(part: Node) -> Node | None:
        if isinstance(part, tir.Load | tir.Store | tir.Region | tir.Alloc):
            new = buffers.get(part.buffer)
            return None if new is None else part.with_fields(buffer=new)
        return None

    params = tuple(buffers.get(p, p) for p in func.params)
    return tir.Func(func.name, params, rewrite(func.body, change))


def _iters(buffer: tir.Buffer) -> tuple[tir.Iter, ...]:
    return tuple(tir.Iter(tir.Var(f"vs{d}"), e) for d, e in enumerate(buffer.shape))


def _stage(name: str, buffer: tir.Buffer, iters: tuple[tir.Iter, ...], value: tir.Expr) -> tir.Stmt:
    loops = tuple(tir.Var(it.var.name.removeprefix("v")) for it in iters)
    store = tir.Store(buffer, tuple(it.var for it in iters), value)
    nest: tir.Stmt = make_block(name, iters, loops, store)
    for loop, it in zip(reversed(loops), reversed(iters), strict=True):
        nest = tir.For(loop, it.extent, nest)
    return nest


def _behind(body: tir.Stmt, nest: tir.Stmt) -> tir.Stmt:
    if isinstance(body, tir.Alloc):
        return body.with_fields(body=_behind(body.body, nest))
    return seq(body, nest)


def _tops(body: tir.Stmt) -> tuple[tir.Stmt, ...]:
    """The statements one after another of a program."""
    while isinstance(body, tir.Alloc):
        body = body.body
    return body.body if isinstance(body, tir.Seq) else (body,)


def _flat(body: tir.Stmt) -> tir.Stmt:
    """The program's statements in one sequence again."""
    if isinstance(body, tir.Alloc):
        return body.with_fields(body=_flat(body.body))
    return seq(*body.body) if isinstance(body, tir.Seq) else body
