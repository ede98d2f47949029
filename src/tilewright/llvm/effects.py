"""What statements write: a load may leave a loop only if the loop leaves its memory alone."""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.tensor import ir as tir

__all__ = ["Effects", "effects_of"]


@dataclass(frozen=True, slots=True)
class Effects:
    """Buffers that are written, whether all threads meet somewhere inside, and whether it loops."""

    writes: frozenset[object]
    meets: bool = False
    loops: bool = False


NOTHING = Effects(frozenset())
Known = dict[int, Effects]


def effects_of(stmt: tir.Stmt | None, known: Known) -> Effects:
    """The effects of `stmt`; those of it and everything inside it are kept in `known`, by id."""
    if stmt is None:
        return NOTHING
    match stmt:
        case tir.Store(buffer=buffer):
            return Effects(frozenset((buffer,)))
        case tir.Barrier():
            return Effects(frozenset(), meets=True)
        case tir.Seq(body=parts):
            found = _together([effects_of(part, known) for part in parts])
        case tir.For(body=body):
            inner = effects_of(body, known)
            found = Effects(inner.writes, inner.meets, loops=True)
        case tir.Alloc(body=body):
            found = effects_of(body, known)
        case tir.If(then=then, otherwise=otherwise):
            found = _together([effects_of(then, known), effects_of(otherwise, known)])
        case _:
            found = NOTHING
    known[id(stmt)] = found
    return found


def _together(parts: list[Effects]) -> Effects:
    writes = frozenset().union(*(part.writes for part in parts))
    return Effects(writes, any(part.meets for part in parts), any(part.loops for part in parts))
