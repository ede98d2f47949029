"""Where values live, and which steps must wait for which.

Views share the memory of what they view. A result of the model is computed in the array that is
returned. Everything else is in the arena, from the step that writes it to the last one that reads it,
counted to the end of the stretch of steps that run without meeting: a fast thread may be ahead of a slow
one by no more than that.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from tilewright.graph.ir import Graph, Value
from tilewright.graph.ops.op import Role

__all__ = ["Storage", "Touch", "lifetimes", "storage_of", "waits"]


@dataclass(frozen=True)
class Touch:
    """What a step reads and writes; `parallel` steps run on all threads."""

    reads: tuple[object, ...]
    writes: tuple[object, ...]
    parallel: bool = True


@dataclass
class Storage:
    """The value whose memory each value uses."""

    roots: dict[Value, Value] = field(default_factory=dict)

    def root(self, value: Value) -> Value:
        return self.roots.get(value, value)


def storage_of(graph: Graph) -> Storage:
    """Views resolved to what they view."""
    storage = Storage()
    for node in graph.nodes:
        if node.op.role is Role.VIEW:
            storage.roots[node.output] = storage.root(node.inputs[0])
    return storage


def waits(touches: Sequence[Touch]) -> list[bool]:
    """For each step, whether all threads must meet before it."""
    result: list[bool] = []
    read: set[object] = set()
    written: set[object] = set()
    for touch in touches:
        needs = any(v in written for v in touch.reads)
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
