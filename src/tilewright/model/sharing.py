"""Results that are written over an input which nobody needs any more.

    step 4   reads a, writes b       a ─┐
    step 7   reads b, c, writes d       └ b ─┐    the last one to live in the memory gives it
    step 9   reads d                         └ d

A kernel says which of its inputs a result may overwrite (`lower/in_place.py`); here it is about the
steps. The input must be in use for the last time and the result for the first, also when steps
are taken again by a loop: nothing of either is touched outside of the loops around the step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tilewright.model.memory import Touch

__all__ = ["Pair", "overwritten"]

Pair = tuple[object, object]
"""What is read, and what may be written over it."""


def overwritten(
    touches: Sequence[Touch],
    loops: Sequence[tuple[int, int]],
    wishes: Mapping[int, Sequence[Pair]],
) -> dict[object, object]:
    """For memory that is not needed, that in which it lives; `wishes` are the pairs of steps.

    What a chain of results has in common is the last of them.
    """
    first, last = _uses(touches)
    found: dict[object, object] = {}
    for step, pairs in sorted(wishes.items()):
        for source, result in pairs:
            is_free = source not in found and result not in found.values()
            ends = last[source] == step and first[result] == step
            begins = source in touches[first[source]].writes
            around = [loop for loop in loops if loop[0] <= step <= loop[1]]
            inside = all(a <= first[source] and last[result] <= b for a, b in around)
            if is_free and ends and begins and inside and source is not result:
                found[source] = result
    return {source: _end_of(source, found) for source in found}


def _uses(touches: Sequence[Touch]) -> tuple[dict[object, int], dict[object, int]]:
    """The first and the last step that touches something, in the order in which they stand."""
    first: dict[object, int] = {}
    last: dict[object, int] = {}
    for step, touch in enumerate(touches):
        for what in (*touch.reads, *touch.writes):
            first.setdefault(what, step)
            last[what] = step
    return first, last


def _end_of(what: object, found: Mapping[object, object]) -> object:
    while what in found:
        what = found[what]
    return what
