"""The kernels of a graph with layouts are the sites that were priced, and conversions."""

from __future__ import annotations

import pytest
from hypothesis import given, note
from hypothesis import strategies as st

from tests.examples import examples
from tests.feature_maps import graph as feature_maps
from tests.feature_maps import settings as settings_of
from tests.graphs import graphs
from tests.laid_out import images
from tilewright.graph.passes.pipeline import optimise
from tilewright.layouts.choose import choose
from tilewright.layouts.regrouped import not_as_priced

LAYOUTS = ["auto", "nhwc", "nchw", "nchw8c", "nchw4c"]


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
