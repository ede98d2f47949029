"""What names of a model stand for while it is imported.

A name is a value of the graph, a sequence of values (there are no sequences when a model runs), or
nothing: an optional input that was left out. A name may also be lost, because the node behind it
could not be imported. The values of a sequence are known one by one, or lie in one tensor if only a
run tells how many there are. What has no form before a run is opaque (`segments`).
"""

from __future__ import annotations

from collections.abc import Callable, MutableMapping
from dataclasses import dataclass

from tilewright.frontend.onnx.segments import Opaque
from tilewright.graph import Value

__all__ = ["Grown", "Item", "Lost", "Nested", "Opaque", "Scope", "Stacked", "Tensors"]
__all__ += ["seen"]


@dataclass(frozen=True, eq=False)
class Tensors:
    """An ONNX sequence."""

    items: tuple[Value, ...]

    def __post_init__(self) -> None:
        if not all(isinstance(item, Value) for item in self.items):
            raise TypeError("a sequence holds tensors, and nothing else")


@dataclass(frozen=True, eq=False)
class Stacked:
    """A sequence of any length: its elements, all of one shape, along the first axis of a value."""

    stack: Value


@dataclass(frozen=True, eq=False)
class Grown:
    """A sequence inside of a loop: whatever it was before the iteration, and `items` behind it."""

    items: tuple[Value, ...] = ()


@dataclass(frozen=True)
class Lost:
    """What a node would have given that could not be imported."""


Item = Value | Tensors | Stacked | Grown | Opaque | None
Scope = MutableMapping[str, Item | Lost]


class Nested(dict[str, Item | Lost]):
    """The scope of a graph inside of a node: own names, then those around it, brought in on
    demand. Elements of sequences are paid for: each graph has its own.
    """

    def __init__(
        self, around: Scope, outside: Callable[[Value], Value], pay: Callable[[int], None]
    ) -> None:
        super().__init__()
        self._around = around
        self._outside = outside
        self._pay = pay

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or name in self._around

    def __missing__(self, name: str) -> Item | Lost:
        found = self._around[name]
        if isinstance(found, Tensors):
            self._pay(len(found.items))  # once for each graph that mentions it
            found = Tensors(tuple(map(self._outside, found.items)))
        elif isinstance(found, Stacked):
            found = Stacked(self._outside(found.stack))
        elif isinstance(found, Opaque):
            self._pay(len(found.segment.collected().nodes))
            found = found.seen_through(self._outside)
        elif isinstance(found, Value):
            found = self._outside(found)
        self[name] = found
        return found

    def seen(self, name: str) -> Item | Lost | None:
        """What a name stands for here or around, without bringing it in."""
        return self[name] if super().__contains__(name) else seen(name, self._around)


def seen(name: str, scope: Scope) -> Item | Lost | None:
    """What a name stands for, wherever it was made; None also if nothing has the name."""
    return scope.seen(name) if isinstance(scope, Nested) else scope.get(name)
