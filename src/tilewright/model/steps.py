"""The steps of a plan: what a program does, before values have numbers."""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.graph.groups import Group
from tilewright.graph.ir import Node, Value
from tilewright.tensor import ir as tir

__all__ = ["Assign", "Branch", "Enter", "HostStep", "KernelStep", "Label", "PlanStep"]


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
