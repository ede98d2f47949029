"""Whether the kernels that run are the ones that were priced.

Groups are found twice: in the graph after all passes, where each is a site with its costs, and in
the graph with layouts and conversions, where each is a kernel. The rules are the same, and this is
what has to come out: a kernel is one site, without what has become a view, and with conversions of
what it reads or writes. Nothing else is moved from one site to another, split or joined.

A conversion that joins the kernel in front of it is written at once in the form that is wanted,
and costs less than it was priced at.
"""

from __future__ import annotations

from collections.abc import Iterable

from tilewright.graph.groups import group_nodes, is_view
from tilewright.graph.ir import Node
from tilewright.layouts.choose import Choice

__all__ = ["not_as_priced"]

Names = frozenset[str]


def not_as_priced(choice: Choice) -> list[Names]:
    """Kernels that are no site, by the names of the values that they compute; none, hopefully."""
    views = _made(node for node in choice.graph.nodes if is_view(node))
    priced = {_made(site.nodes) - views for site, _ in choice.sites}
    known = frozenset(name for site in priced for name in site)
    kernels = (_made(group.nodes) & known for group in group_nodes(choice.graph))
    return [kernel for kernel in kernels if kernel and kernel not in priced]


def _made(nodes: Iterable[Node]) -> Names:
    return frozenset(value.name for node in nodes for value in node.outputs)
