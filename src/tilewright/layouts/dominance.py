"""Alternatives that cannot be part of a better choice are left out before a problem is solved.

One alternative dominates another of the same variable if it costs no more whatever the neighbours
take: what it costs less by itself is as much as it could ever cost more on the edges. Where two
layouts differ by a conversion, that is all slower algorithms but a few.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

__all__ = ["undominated"]

Array = npt.NDArray[np.float64]
Places = npt.NDArray[np.intp]
Edges = Sequence[tuple[int, int, Array]]


def undominated(costs: Sequence[Array], edges: Edges) -> list[Places]:
    """The alternatives of each variable that are left; of equal ones the first."""
    left = [np.flatnonzero(np.isfinite(own)) for own in costs]
    if any(not places.size for places in left):
        return left  # nothing is possible
    around: list[list[tuple[int, Array]]] = [[] for _ in costs]
    for u, v, matrix in edges:
        if u != v:
            around[u].append((v, matrix))
            around[v].append((u, matrix.T))
    loops = {u for u, v, _ in edges if u == v}
    queue = [x for x in range(len(costs)) if x not in loops]
    while queue:
        x = queue.pop(0)
        kept = _kept(costs[x], left, x, around[x])
        if kept.size < left[x].size:
            left[x] = kept
            queue += [y for y, _ in around[x] if y not in loops and y not in queue]
    return left


def _kept(
    own: Array, left: Sequence[Places], x: int, around: Sequence[tuple[int, Array]]
) -> Places:
    """What is left of a variable."""
    places = left[x]
    tables = [np.unique(matrix[np.ix_(places, left[y])], axis=1) for y, matrix in around]
    alike = _cheapest_of_equal(own[places], tables)
    places = places[alike]
    worst = own[places][:, None] - own[places]  # by how much i may cost more than j
    never = np.zeros(worst.shape, np.bool_)
    for table in tables:
        more = _worst(table[alike])
        never |= more == np.inf
        worst = worst + np.where(never, 0.0, more)
    number = np.arange(places.size)
    beats = (worst < 0) | ((worst == 0) & (number[:, None] < number))
    kept: Places = places[~(beats & ~never).any(axis=0)]
    return kept


def _cheapest_of_equal(own: Array, tables: Sequence[Array]) -> Places:
    """Of alternatives that are the same to all neighbours the cheapest, and of these the first."""
    if not tables:
        return np.array([own.argmin()])
    _, kind = np.unique(np.hstack(tables), axis=0, return_inverse=True)
    order = np.lexsort((np.arange(own.size), own, kind.ravel()))
    _, first = np.unique(kind.ravel()[order], return_index=True)
    kept: Places = np.sort(order[first])
    return kept


def _worst(table: Array) -> Array:
    """By how much alternative i costs more than j on an edge, for the worst of a neighbour."""
    possible = np.isfinite(table)
    held = np.where(possible, table, 0.0)
    more = np.where(possible[:, None], held[:, None] - held, np.inf)
    # Where j is impossible, i is no worse.
    worst: Array = np.where(possible, more, -np.inf).max(axis=2, initial=-np.inf)
    dead = ~possible.any(axis=1)
    worst[np.ix_(dead, dead)] = 0.0
    return worst
