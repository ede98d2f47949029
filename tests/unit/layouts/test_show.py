"""What is shown of a choice: every site, every conversion with its reason, sums that add up."""

from __future__ import annotations

import dataclasses
import json

import pytest

from tests.feature_maps import graph, settings
from tilewright.cli.show_layouts import layouts_text
from tilewright.dtypes import f32
from tilewright.graph import Builder, Graph
from tilewright.layouts.choose import choose, decide
from tilewright.layouts.forms import FIRST, LAST, Form
from tilewright.layouts.show import Overview, overview
from tilewright.layouts.sites import Alternative, Site

GRAPH = graph()
NAMES = ("auto", "nhwc", "nchw", "nchw8c", "nchw16c", "nchw4c")


def shown(layouts: str = "auto", made: Graph = GRAPH, **machine: object) -> Overview:
    wanted = settings(layouts, **machine)  # type: ignore[arg-type]
    choice = choose(made, wanted)
    return overview(made, wanted, choice.sites, exact=choice.exact)


def test_a_network_with_its_layouts(golden):
    assert golden == layouts_text(shown())


def test_a_network_with_a_conversion(golden):
    assert golden == layouts_text(shown("nchw8c"))


@pytest.mark.parametrize("layouts", NAMES)
def test_conversions_are_those_of_the_graph(layouts):
    choice = choose(GRAPH, settings(layouts))
    made = overview(GRAPH, settings(layouts), choice.sites, exact=choice.exact)
    assert [(c.value, c.source, c.result) for c in made.conversions] == [
        (c.value, c.before.name(4), c.after.name(4)) for c in choice.conversions
    ]
    converted = len(choice.graph.nodes) - len(GRAPH.nodes)
    assert len(made.conversions) == converted


@pytest.mark.parametrize("layouts", NAMES)
def test_the_sum_is_what_was_minimised(layouts):
    choice = choose(GRAPH, settings(layouts))
    made = overview(GRAPH, settings(layouts), choice.sites, exact=choice.exact)
    assert made.cycles == pytest.approx(choice.cycles)
    assert made.exact


def test_nothing_that_is_asked_for_is_better_than_the_choice():
    made = shown()
    assert set(made.others) == {"nhwc", "nchw", "nchw8c", "nchw16c"}
    assert min(made.others.values()) >= made.cycles


@pytest.mark.parametrize("layouts", ["nhwc", "nchw", "nchw4c"])
def test_one_layout_is_everywhere(layouts):
    """Without halos; `nchw4c` is none that is tried without being asked for."""
    made = shown(layouts)
    assert made.layouts == layouts
    inner = {row.result.removesuffix("+halo") for row in made.sites} - {"plain"}
    assert inner == {layouts}
    assert made.others["auto"] == pytest.approx(shown().cycles)


def test_blocks_that_do_not_fit_leave_things_as_they_are():
    made = shown("nchw5c")
    assert {row.result.removesuffix("+halo") for row in made.sites} == {"nhwc", "plain"}


def test_a_transpose_at_the_border_is_no_copy_if_nothing_moves():
    first, last = shown("nchw").sites[0], shown("nhwc").sites[0]
    assert (first.computes, first.source, first.result) == ("transpose", "nchw", "nchw")
    assert first.is_view
    assert first.cycles is None
    assert (last.source, last.result, last.is_view) == ("nchw", "nhwc", False)
    assert last.cycles is not None
    assert last.cycles > 0


def test_sites_say_what_they_read():
    rows = shown().sites
    assert rows[0].reads == ("picture",)
    (add,) = [row for row in rows if any("add_6" in label for label in row.operators)]
    assert len(add.reads) == 2
    for row in rows:
        assert all(site < row.site for site in row.reads if isinstance(site, int))


def test_it_is_data_of_json():
    facts = json.loads(json.dumps(shown("nchw8c").to_dict()))
    assert facts["layouts"] == "nchw8c"
    assert facts["threads"] == 1
    assert {"site", "reads", "algorithm", "source", "result", "cycles"} <= facts["sites"][0].keys()
    (conversion,) = facts["conversions"]
    assert (conversion["source"], conversion["result"]) == ("nchw8c", "nhwc")
    assert facts["sites"][conversion["readers"][0]]["computes"] == "reshape"
    assert conversion["reason"] == "it reads nhwc only"


def test_a_graph_without_feature_maps_has_no_choice():
    b = Builder("plain")
    x = b.input("x", f32, (4, 8))
    made = shown(made=b.graph([b.map(lambda v: v + 1.0, x)], ["y"]))
    assert [(row.source, row.result) for row in made.sites] == [("plain", "plain")]
    assert "no feature maps" in layouts_text(made)


def forced(changes: dict[int, tuple[Form, Form]], layouts: str = "auto") -> Overview:
    """The choice of channels last, but for sites that read and write as is said here."""
    chosen = list(decide(GRAPH, dataclasses.replace(settings("nhwc"), halos=False))[0])
    for site, forms in changes.items():
        chosen[site] = (chosen[site][0], _like(chosen[site][0], *forms))
    return overview(GRAPH, settings(layouts), chosen, exact=False)


def _like(site: Site, source: Form, result: Form) -> Alternative:
    fitting = [a for a in site.alternatives if (a.source.plain, a.result) == (source, result)]
    return min(fitting, key=lambda a: a.cycles)


def sites() -> dict[str, int]:
    return {row.computes: row.site for row in shown().sites}


def test_a_value_is_converted_once_for_all_of_its_readers():
    """The first window writes channels first; a window and the sum want them last."""
    made = forced({1: (LAST, FIRST)})
    (row,) = made.conversions
    assert (row.source, row.result, row.writer) == ("nchw", "nhwc", 1)
    assert row.readers == (2, sites()["conv 1×1"])
    assert row.reason.startswith(f"site {sites()['conv 1×1']} takes ")
    kernels = sum(site.cycles or 0 for site in made.sites)
    assert made.cycles == pytest.approx(kernels + row.cycles)


def test_a_slower_writer_is_a_reason():
    """The window before has minimal filters, which write channels last."""
    window = sites()["depthwise 3×3"]
    first, second = forced({window: (FIRST, FIRST)}).conversions
    assert (first.result, second.result) == ("nchw", "nhwc")
    assert first.writer == window - 1
    assert first.reason.startswith(f"site {window - 1} takes ")
    assert first.reason.endswith(" cycles more if it writes nchw")
    assert second.reason == f"the result of site {second.readers[0]} is nhwc"


def test_a_slower_reader_is_a_reason():
    """Places in vectors: channels first are packed faster than channels last."""
    product = sites()["conv 1×1"]
    made = forced({product: (FIRST, FIRST), 1: (LAST, FIRST)})
    row = next(row for row in made.conversions if row.readers[0] == product)
    assert (row.source, row.result) == ("nhwc", "nchw")
    gained = float(row.reason.split()[2].replace(",", ""))
    assert row.reason == f"it takes {gained:,.0f} cycles more if it reads nhwc"
    assert gained > 0


def test_what_was_asked_for_is_a_reason():
    made = forced({1: (LAST, FIRST)}, layouts="nhwc")
    assert made.conversions[0].reason == "nhwc is asked for, wherever there is a choice"
