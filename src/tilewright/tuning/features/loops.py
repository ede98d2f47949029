"""Features of loops: what AutoTVM calls "itervar" (loop context) and "curve" (relations).

Context features say of each loop how long it is, what is around and inside of it, how it is
annotated, and of each access inside how it moves (stride), how much it touches (count) and how
often it touches the same again (reuse). Relations say how these grow together: the count that goes
with a reuse of at most 2^t and so on, sampled at t = 0, 1, …, 19. They do not depend on how many
loops there are, which makes them good for other programs, too.

The originals are as long as a program has loops and accesses, and records of another length are
lost. Here both are looked at in the nest of the heaviest statement: the innermost eight loops, from
the inside out, and the accesses that touch most, with zeros for what there is not. What lies around
and beside that is pooled. Numbers are sign · log2(|x| + 1), ranks and flags as they are.
"""

from __future__ import annotations

from bisect import bisect_right
from math import log2, prod
from typing import Final

import numpy as np

from tilewright.tensor import ir as tir
from tilewright.tuning.features.nests import Access, Program, Statement, program_of
from tilewright.tuning.features.scaling import Vector, signed_log2

__all__ = ["CONTEXT_NAMES", "CURVE_NAMES", "context_features", "curve_features", "loop_features"]
__all__ += ["LOOP_NAMES"]

LOOPS: Final = 8
"""Of a nest; a product with its tiles and blocks has six or seven."""
ACCESSES: Final = 4
"""Of a statement: a product has three."""
SAMPLES: Final = 20
"""Of a relation: sizes up to 2^20."""
CURVES: Final = 3
"""Buffers with relations."""

_KINDS: Final = tuple(tir.LoopKind)
_OF_LOOP: Final = (
    *("length", "level", "top_down", "bottom_up"),
    *(kind.value for kind in _KINDS),
    *("mad", "add", "mul", "div"),
)
_OF_ACCESS: Final = ("stride", "count", "reuse", "thread_count", "thread_reuse")
_POOLED: Final = ("statements", "loops", "depth", "around", *(f"all_{k.value}" for k in _KINDS))


def loop_features(func: tir.Func) -> Vector:
    """Context and relations of a lowered program."""
    program = program_of(func)
    return np.concatenate([context_features(program), curve_features(program)])


def context_features(program: Program) -> Vector:
    """The loops around the heaviest statement, innermost first, and what there is beside them."""
    if not program.statements:
        return np.zeros(len(CONTEXT_NAMES))
    statement = program.heaviest
    accesses = _ordered(statement)[:ACCESSES]
    row = _pooled(program, statement)
    for place in range(LOOPS):
        k = len(statement.loops) - 1 - place
        row += _loop(statement, k) if k >= 0 else [0.0] * len(_OF_LOOP)
        for number in range(ACCESSES):
            present = k >= 0 and number < len(accesses)
            row += _access(statement, accesses[number], k) if present else [0.0] * len(_OF_ACCESS)
    return np.array(row)


def _pooled(program: Program, statement: Statement) -> list[float]:
    loops = {loop.var: loop for s in program.statements for loop in s.loops}
    by_kind = [sum(loop.kind is kind for loop in loops.values()) for kind in _KINDS]
    beyond = max(0, len(statement.loops) - LOOPS)  # outer loops without features of their own
    around = prod(loop.extent for loop in statement.loops[:beyond])
    numbers = [len(program.statements), len(loops), len(statement.loops), around, *by_kind]
    return [signed_log2(n) for n in numbers]


def _loop(statement: Statement, k: int) -> list[float]:
    loops, loop = statement.loops, statement.loops[k]
    inside = prod(x.extent for x in loops[k:])  # what count · reuse of every access comes to
    innermost = k == len(loops) - 1
    counts = statement.operations.floats[:4] if innermost else (0, 0, 0, 0)
    return [
        signed_log2(loop.extent),
        float(k),
        signed_log2(prod(x.extent for x in loops[: k + 1])),
        signed_log2(inside),
        *(float(loop.kind is kind) for kind in _KINDS),
        *map(signed_log2, counts),
    ]


def _access(statement: Statement, access: Access, k: int) -> list[float]:
    count, reuse = _touched(statement, access, k)
    shared = [x for x in range(k, len(statement.loops)) if _is_parallel(statement, x)]
    extents = statement.loops
    moved = prod(extents[x].extent for x in shared if access.slopes[x])
    again = prod(extents[x].extent for x in shared if not access.slopes[x])
    return [signed_log2(x) for x in (access.slopes[k], count, reuse, moved, again)]


def _is_parallel(statement: Statement, k: int) -> bool:
    return statement.loops[k].kind is tir.LoopKind.PARALLEL


def _touched(statement: Statement, access: Access, k: int) -> tuple[int, int]:
    """Places that an access goes to while loop k runs once, and how often to each of them."""
    count = reuse = 1
    for slope, loop in zip(access.slopes[k:], statement.loops[k:], strict=True):
        if slope:
            count *= loop.extent
        else:
            reuse *= loop.extent
    return count, reuse


def _ordered(statement: Statement) -> list[Access]:
    """The store first, then loads by what they touch: never by name."""
    target, loads = statement.target, statement.accesses[:-1]
    others = [a for a in loads if a.buffer is not target.buffer]
    order = sorted(
        range(len(others)),
        key=lambda k: (-_touched(statement, others[k], 0)[0], k),
    )
    return [target, *(others[k] for k in order)]


def curve_features(program: Program) -> Vector:
    """Relations between count, reuse and what is around, for each of the busiest buffers."""
    if not program.statements:
        return np.zeros(len(CURVE_NAMES))
    statement = program.heaviest
    by_buffer = {a.buffer: a for a in _ordered(statement)}
    rows = [_curves(statement, access) for access in list(by_buffer.values())[:CURVES]]
    row = [x for own in rows for x in own]
    return np.array(row + [0.0] * (len(CURVE_NAMES) - len(row)))


def _curves(statement: Statement, access: Access) -> list[float]:
    """Each array by itself in ascending order, from 0 on, as in the original."""
    loops, depths = statement.loops, range(len(statement.loops))
    touched = [_touched(statement, access, k) for k in depths]
    count = sorted([0.0, *(log2(c) for c, _ in touched)])
    reuse = sorted([0.0, *(log2(r) for _, r in touched)])
    around = sorted([0.0, *(log2(prod(x.extent for x in loops[: k + 1])) for k in depths)])
    pairs = ((count, reuse), (reuse, count), (count, around), (around, count))
    found: list[float] = []
    for x, y in pairs:
        for t in range(SAMPLES):
            j = bisect_right(x, t) - 1
            found += [y[j], t - x[j]]
    return found


def _context_names() -> tuple[str, ...]:
    names = list(_POOLED)
    for place in range(LOOPS):
        names += [f"loop{place}_{name}" for name in _OF_LOOP]
        for number in range(ACCESSES):
            names += [f"loop{place}_access{number}_{name}" for name in _OF_ACCESS]
    return tuple(names)


def _curve_names() -> tuple[str, ...]:
    relations = ("count_reuse", "reuse_count", "count_around", "around_count")
    return tuple(
        f"curve{buffer}_{relation}_{t}{part}"
        for buffer in range(CURVES)
        for relation in relations
        for t in range(SAMPLES)
        for part in ("", "_rest")
    )


CONTEXT_NAMES: Final = _context_names()
CURVE_NAMES: Final = _curve_names()
LOOP_NAMES: Final = (*CONTEXT_NAMES, *CURVE_NAMES)
