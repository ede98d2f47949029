"""A writer of LLVM functions that numbers values and moves invariant ones out of loops as it goes.

Two equal pure instructions become one, and an instruction whose operands do not change in a loop is
written before that loop. Schedules unroll freely, so that most of what is asked for has been
computed already: text that is never written need not be parsed, analysed and removed again.

The text is a tree of regions: the function, bodies of loops, branches. A region is a list of lines;
lines can be added to every open region, which is how code gets in front of a loop that is still
being written.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tilewright.llvm.spelling import integer, like

__all__ = ["Region", "Value", "Writer"]

HOISTED_LOADS = 8
"""Loads that are moved in front of one loop at most: each of them occupies a register in it."""


class Value:
    """An SSA value or a constant: its text, LLVM type and the depth of the region that made it."""

    __slots__ = ("depth", "text", "type")

    def __init__(self, text: str, kind: str, depth: int = 0) -> None:
        self.text, self.type, self.depth = text, kind, depth

    @property
    def typed(self) -> str:
        """`type text`, as operands are written."""
        return f"{self.type} {self.text}"

    def __repr__(self) -> str:
        return f"Value({self.typed}, depth={self.depth})"


class Region:
    """A stretch of code that is entered at its top.

    For the body of a loop, `writes` are the buffers that it changes (None: unknown), and `moving`
    the pointers that advance with it: name, first value and bytes per iteration.
    """

    __slots__ = ("depth", "is_loop", "keys", "lines", "loads", "moving", "pure_target", "writes")

    def __init__(self, depth: int, *, is_loop: bool, writes: frozenset[object] | None) -> None:
        self.depth = depth
        self.is_loop = is_loop
        self.writes = writes
        self.moving: list[tuple[str, Value, int]] = []
        self.lines: list[str] = []
        self.keys: list[str] = []  # what to forget when the region is closed
        self.loads = 0
        self.pure_target: list[int] = []


class Writer:
    """Lines of one function. `block` is the label of the block that is being written."""

    def __init__(self) -> None:
        self.regions: list[Region] = []
        self.block = "entry"
        self.slots: list[str] = []  # stack slots, all in the entry block
        self.declared: dict[str, str] = {}
        self._known: dict[str, Value] = {}
        self._count = 0
        self._names: dict[str, int] = {}
        self._push(is_loop=False, writes=None)

    @property
    def region(self) -> Region:
        return self.regions[-1]

    def home(self, value: Value) -> Region:
        """The open region in which a value that can be used here was made."""
        return self.regions[value.depth]

    def is_open(self, region: Region) -> bool:
        """Whether values that were made in `region` can be used here."""
        return region.depth < len(self.regions) and self.regions[region.depth] is region

    def fresh(self, hint: str) -> str:
        """A name (of a value or a block) that is new in this function."""
        number = self._names.get(hint, 0)
        self._names[hint] = number + 1
        return f"{hint}.{number}" if number else hint

    def line(self, text: str) -> None:
        """An instruction without a result, right here."""
        self.regions[-1].lines.append(text)

    def label(self, name: str) -> None:
        """Begin a block."""
        self.regions[-1].lines.append(f"{name}:")
        self.block = name

    def pure(self, kind: str, text: str, *operands: Value) -> Value:
        """The value of an instruction without side effects, which may run without need."""
        found = self._known.get(text)
        if found is not None:
            return found
        depth = 0
        for operand in operands:
            depth = max(depth, operand.depth)
        return self._define(self.regions[self.region.pure_target[depth]], kind, text, text)

    def load(
        self, kind: str, text: str, pointer: Value, version: int, buffer: object = None
    ) -> Value:
        """The value of a load. `version` counts the writes to its memory so far.

        It moves out of loops that do not write `buffer`, but never past a condition.
        """
        key = f"{text} {version}"
        found = self._known.get(key)
        if found is not None:
            return found
        depth = self.region.depth
        while depth > pointer.depth and self._may_leave(self.regions[depth], buffer):
            depth -= 1
        region = self.regions[depth]
        if depth < self.region.depth:
            region.loads += 1
            if region.loads > HOISTED_LOADS:
                region = self.region
        return self._define(region, kind, text, key)

    def moving(self, start: Value, step_bytes: int, depth: int) -> Value:
        """A pointer that starts at `start` and advances with the loop at `depth`."""
        key = f"{start.text} + {step_bytes} @{depth}"
        found = self._known.get(key)
        if found is not None:
            return found
        region = self.regions[depth]
        self._count += 1
        value = Value(f"%.{self._count}", "ptr", depth)
        region.moving.append((value.text, start, step_bytes))
        self._known[key] = value
        region.keys.append(key)
        return value

    def _may_leave(self, loop: Region, buffer: object) -> bool:
        return loop.is_loop and loop.writes is not None and buffer not in loop.writes

    def here(self, kind: str, text: str) -> Value:
        """The value of an instruction that stays where it is."""
        self._count += 1
        name = f"%.{self._count}"
        self.line(f"{name} = {text}")
        return Value(name, kind, self.region.depth)

    def _define(self, region: Region, kind: str, text: str, key: str) -> Value:
        self._count += 1
        name = f"%.{self._count}"
        region.lines.append(f"{name} = {text}")
        value = Value(name, kind, region.depth)
        self._known[key] = value
        region.keys.append(key)
        return value

    def binary(self, operation: str, a: Value, b: Value | int) -> Value:
        """`operation a, b` with the type of `a`; a number stands for itself in every lane."""
        if isinstance(b, int):
            return self.pure(a.type, f"{operation} {a.type} {a.text}, {integer(b, a.type)}", a)
        return self.pure(a.type, f"{operation} {a.type} {a.text}, {b.text}", a, b)

    def compare(self, operation: str, a: Value, b: Value | int) -> Value:
        """`icmp` or `fcmp` with its predicate; gives an `i1` per lane."""
        kind = like(a.type, "i1")
        if isinstance(b, int):
            return self.pure(kind, f"{operation} {a.type} {a.text}, {integer(b, a.type)}", a)
        return self.pure(kind, f"{operation} {a.type} {a.text}, {b.text}", a, b)

    def select(self, condition: Value, a: Value, b: Value) -> Value:
        """`a` where the condition holds, else `b`."""
        text = f"select {condition.typed}, {a.typed}, {b.typed}"
        return self.pure(a.type, text, condition, a, b)

    def joined(self, *ways: tuple[Value, str]) -> Value:
        """The value of the way by which a block was reached, right at its begin."""
        kind = ways[0][0].type
        choices = ", ".join(f"[ {value.text}, %{block} ]" for value, block in ways)
        self._count += 1
        self.line(f"%.{self._count} = phi {kind} {choices}")
        return Value(f"%.{self._count}", kind, self.region.depth)

    def carried(self, kind: str) -> Value:
        """A value of the loop that is being written, whose phi is the caller's to write."""
        self._count += 1
        return Value(f"%.{self._count}", kind, self.region.depth)

    def convert(self, operation: str, value: Value, element: str) -> Value:
        """A conversion to another element with the same number of lanes."""
        kind = like(value.type, element)
        if kind == value.type:
            return value
        return self.pure(kind, f"{operation} {value.typed} to {kind}", value)

    def call(self, intrinsic: str, kind: str, *operands: Value, flags: str = "") -> Value:
        """A pure intrinsic, declared on first use."""
        self.declare(intrinsic, kind, *(operand.type for operand in operands))
        arguments = ", ".join(operand.typed for operand in operands)
        text = f"call {flags}{' ' if flags else ''}{kind} @{intrinsic}({arguments})"
        return self.pure(kind, text, *operands)

    def declare(self, name: str, kind: str, *arguments: str) -> None:
        """Make sure that the module declares a function."""
        self.declared[name] = f"declare {kind} @{name}({', '.join(arguments)})"

    @contextmanager
    def inside(self, *, is_loop: bool, writes: frozenset[object] | None = None) -> Iterator[Region]:
        """Write into a new region; its lines are the caller's to place afterwards."""
        region = self._push(is_loop=is_loop, writes=writes)
        yield region
        self.regions.pop()
        for key in region.keys:
            del self._known[key]

    def _push(self, *, is_loop: bool, writes: frozenset[object] | None) -> Region:
        region = Region(len(self.regions), is_loop=is_loop, writes=writes)
        self.regions.append(region)
        region.pure_target = [self._target_for(depth) for depth in range(len(self.regions))]
        return region

    def _target_for(self, depth: int) -> int:
        """Where a value with operands of this depth goes: before the outermost loop it may leave.

        Leaving a branch pays only on the way out of a loop.
        """
        for region in self.regions[depth + 1 :]:
            if region.is_loop:
                return region.depth - 1
        return len(self.regions) - 1
