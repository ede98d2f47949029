"""The steps of a program before anything is compiled, and all that a plan of them knows.

`plan` writes them; `assemble` makes a program of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tilewright.graph.groups import Group, GroupKind
from tilewright.graph.ir import Node, Value
from tilewright.graph.ops import Map, argument, computed_as
from tilewright.graph.sizes import tidy, variables
from tilewright.model.weights import Constant
from tilewright.tensor import ir as tir

__all__ = ["Assign", "Branch", "Enter", "HostStep", "KernelStep", "Label", "Plan", "PlanStep"]


@dataclass(eq=False)
class Label:
    """A place in the list of steps."""

    name: str


@dataclass(eq=False)
class KernelStep:
    """A group of nodes, the values that leave it, and the segment in which it runs."""

    group: Group
    outputs: tuple[Value, ...]
    segment: int


@dataclass(eq=False)
class HostStep:
    """A Python function, and the segment in which it runs."""

    node: Node
    defines: tuple[tuple[tir.Var, int, int], ...]
    segment: int


@dataclass(eq=False)
class Enter:
    """From here on the sizes of a segment are known; some are read from memory: (size, value)."""

    segment: int
    read: tuple[tuple[tir.Var, Value], ...] = ()


@dataclass(eq=False)
class Assign:
    """A size gets a value."""

    size: tir.Var
    value: tir.Expr


@dataclass(eq=False)
class Branch:
    """Go to a label unless a value is true, or an expression over sizes is; or always."""

    to: Label
    unless: Value | tir.Expr | None = None


PlanStep = KernelStep | HostStep | Enter | Assign | Branch | Label


@dataclass
class Plan:
    """Steps, and what they need to know: `segments[var]` says when a size is known.

    `nodes` are all nodes with the segment in which they run: those of a branch have one of their
    own where they assume something of sizes, so that nothing is asked of a branch not taken.
    `homes[value]` is the segment in which a value is made. `alike` are dimensions of what a loop
    collects: one of an iteration, the same of the first, and the segment in which they must agree.
    `named` are sizes that stand for long expressions, in terms of others or of those before them.
    `wholes` are found as they are asked for, when all is planned: of what is joined again and
    again, each is a part of the next.
    """

    steps: list[PlanStep] = field(default_factory=list)
    constants: dict[Value, Constant] = field(default_factory=dict)
    roots: dict[Value, Value] = field(default_factory=dict)
    parts: dict[Value, tuple[Value, tir.Expr]] = field(default_factory=dict)
    segments: dict[tir.Var, int] = field(default_factory=dict)
    loops: list[tuple[Label, Label]] = field(default_factory=list)
    segment_count: int = 1
    nodes: list[tuple[Node, int]] = field(default_factory=list)
    homes: dict[Value, int] = field(default_factory=dict)
    alike: list[tuple[tir.Expr, tir.Var, int]] = field(default_factory=list)
    named: dict[tir.Var, tir.Expr] = field(default_factory=dict)
    wholes: dict[Value, tuple[Value, tir.Expr]] = field(default_factory=dict)
    here: int = 0

    def root(self, value: Value) -> Value:
        """The value whose memory a value uses."""
        while value in self.roots:
            value = self.roots[value]
        return value

    def whole(self, value: Value) -> tuple[Value, tir.Expr]:
        """The value that has memory of its own in which a value lies, and where in it, in bytes."""
        value = self.root(value)
        inside: list[Value] = []
        while value not in self.wholes and value in self.parts:
            inside.append(value)
            value = self.root(self.parts[value][0])
        found = self.wholes.get(value, (value, tir.as_index(0)))
        for part in reversed(inside):
            found = found[0], tidy(found[1] + self.parts[part][1])
            self.wholes[part] = found
        return found

    def new_segment(self, *sizes: tir.Var) -> int:
        """A segment in which more sizes are known."""
        number = self.segment_count
        self.segment_count += 1
        self.segments.update(dict.fromkeys(sizes, number))
        return number

    def segment(self, dims: Sequence[tir.Expr]) -> int:
        """When all of these dimensions are known."""
        return max((self.segments.get(v, 0) for v in variables(dims)), default=0)

    def stand_for(self, inside: Value, outside: Value) -> None:
        """Let an input of a graph be the memory of a value around that graph."""
        if outside in self.constants:
            self.constants[inside] = self.constants[outside]
        else:
            self.roots[inside] = self.root(outside)

    def is_unknown(self, dim: tir.Expr) -> bool:
        """Whether a dimension is a size that nothing has told yet."""
        return isinstance(dim, tir.Var) and dim not in self.segments

    def copy(self, source: Value, target: Value, label: str) -> None:
        """Add a kernel that copies."""
        kind = computed_as(source.dtype)
        node = Node(Map(argument(0, kind), 1, source.dtype), (source,), (target,), label)
        group = Group(GroupKind.MAP, [node], shape=source.shape)
        self.homes.setdefault(target, self.here)
        self.steps.append(KernelStep(group, (target,), self.here))
