"""The kernels of a graph with layouts are the sites that were priced, and conversions."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given, note
from hypothesis import strategies as st

from tests.examples import examples
from tests.feature_maps import graph as feature_maps
from tests.feature_maps import settings as settings_of
from tests.graphs import graphs
from tests.laid_out import images
from tilewright.graph.groups import is_view
from tilewright.graph.ir import Node
from tilewright.graph.passes.pipeline import optimise
from tilewright.layouts.choose import Choice, choose

LAYOUTS = ["auto", "nhwc", "nchw", "nchw8c", "nchw4c"]

Names = frozenset[str]


def not_as_priced(choice: Choice) -> list[Names]:
    """Kernels that are no site, by the names of the values that they compute.

    A kernel is one site, without what has become a view, and with conversions of what it reads or
    writes. A conversion that joins the kernel in front of it is written at once in the form that is
    wanted, and costs less than it was priced at.
    """
    views = made_by(node for node in choice.graph.nodes if is_view(node))
    priced = {made_by(site.nodes) - views for site, _ in choice.sites}
    known = frozenset(name for site in priced for name in site)
    kernels = [made_by(group.nodes) & known for group in choice.groups]
    assert sum(map(len, kernels)) == len(frozenset().union(*kernels)), "nothing runs twice"
    return [kernel for kernel in kernels if kernel and kernel not in priced]


def made_by(nodes: Iterable[Node]) -> Names:
    return frozenset(value.name for node in nodes for value in node.outputs)


@pytest.mark.parametrize("batch", [1, "batch"])
@pytest.mark.parametrize("layouts", LAYOUTS)
def test_kernels_of_a_network_are_priced(layouts, batch):
    assert not_as_priced(choose(feature_maps(batch), settings_of(layouts))) == []


@given(random=images(6), layouts=st.sampled_from(LAYOUTS))
@examples(60)
def test_kernels_of_random_networks_are_priced(random, layouts):
    choice = choose(optimise(random.graph), settings_of(layouts))
    note(str(choice.graph))
    assert not_as_priced(choice) == []


@given(random=graphs(), layouts=st.sampled_from(LAYOUTS))
@examples(60)
def test_kernels_of_random_graphs_are_priced(random, layouts):
    choice = choose(optimise(random.graph), settings_of(layouts))
    note(str(choice.graph))
    assert not_as_priced(choice) == []
