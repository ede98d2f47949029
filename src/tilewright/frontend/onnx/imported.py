"""What importing a model gives: its graph, and what has to be known of it besides."""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.graph import Graph
from tilewright.graph.guards import Guard
from tilewright.graph.ir import Meeting
from tilewright.unsupported import Unsupported

__all__ = ["Imported"]


@dataclass
class Imported:
    """The graph of a model, and which of its nodes run on the reference implementation and why.

    `lengths` are those of outputs that are sequences, whose tensors are outputs of the graph;
    NOTHING for an optional one without a value, None for a tensor. `equal` are sizes that meet and
    are not broadcast, `guards` conditions on sizes that it takes for decided. It `waits` if shapes
    that data tells might be known before a run.
    """

    graph: Graph
    by_reference: tuple[Unsupported, ...] = ()
    lengths: tuple[int | None, ...] = ()
    equal: frozenset[Meeting] = frozenset()
    guards: tuple[Guard, ...] = ()
    waits: bool = False
