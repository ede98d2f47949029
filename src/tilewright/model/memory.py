"""How long memory is in use, and which steps must wait for which.

A buffer is in use from the step that writes it to the last one that reads it, counted to the end of
the stretch of steps that run without meeting: a fast thread may be ahead of a slow one by no more
than that. What a loop touches is in use until its end.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

__all__ = ["Touch", "lifetimes", "stretched", "waits"]


@dataclass(frozen=True)
class Touch:
    """What a step reads and writes.

    `parallel` steps run on all threads; before a step that `meets` all threads meet in any case.
    """

    reads: tuple[object, ...]
    writes: tuple[object, ...]
    parallel: bool = True
    meets: bool = False

    def renamed(self, names: Mapping[object, object]) -> Touch:
        """The same step with other memory."""
        reads = tuple(names.get(what, what) for what in self.reads)
        return replace(self, reads=reads, writes=tuple(names.get(w, w) for w in self.writes))


def waits(touches: Sequence[Touch]) -> list[bool]:
    """For each step, whether all threads must meet before it."""
    result: list[bool] = []
    read: set[object] = set()
    written: set[object] = set()
    for touch in touches:
        needs = touch.meets or any(v in written for v in touch.reads)
        needs |= any(v in written or v in read for v in touch.writes)
        if needs:
            read.clear()
            written.clear()
        read.update(touch.reads)
        written.update(touch.writes)
        result.append(needs)
    return result


def lifetimes(touches: Sequence[Touch], waiting: Sequence[bool]) -> dict[object, tuple[int, int]]:
    """The first and the last step of everything that is touched."""
    ends = _stretch_ends(waiting)
    begins = _stretch_begins(waiting)
    lives: dict[object, tuple[int, int]] = {}
    for step, touch in enumerate(touches):
        for what in _all(touch):
            first, _ = lives.get(what, (begins[step], 0))
            lives[what] = (first, ends[step])
    return lives


def stretched(
    lives: dict[object, tuple[int, int]], loops: Sequence[tuple[int, int]]
) -> dict[object, tuple[int, int]]:
    """Lifetimes with loops, given as (first step, last step): nothing ends inside of one."""
    result = dict(lives)
    for begin, end in loops:
        for what, (first, last) in result.items():
            if first <= end and last >= begin:
                result[what] = (min(first, begin), max(last, end))
    return result


def _all(touch: Touch) -> Iterable[object]:
    return dict.fromkeys((*touch.reads, *touch.writes))


def _stretch_ends(waiting: Sequence[bool]) -> list[int]:
    ends, last = [0] * len(waiting), len(waiting) - 1
    for step in range(len(waiting) - 1, -1, -1):
        ends[step] = last
        if waiting[step]:
            last = step - 1
    return ends


def _stretch_begins(waiting: Sequence[bool]) -> list[int]:
    begins, first = [0] * len(waiting), 0
    for step, meets in enumerate(waiting):
        if meets:
            first = step
        begins[step] = first
    return begins
