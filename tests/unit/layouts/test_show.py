"""What is shown of a choice: every site, every conversion with its reason, sums that add up."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
import pytest

from tests.feature_maps import graph, settings
from tilewright.cli.show_layouts import layouts_text
from tilewright.dtypes import f32
from tilewright.graph import Builder, Graph
from tilewright.graph.ops.op import Role
from tilewright.graph.ops.window import Conv
from tilewright.layouts.choose import choose, decide
from tilewright.layouts.forms import FIRST, LAST, Form
from tilewright.layouts.show import Overview, overview
from tilewright.layouts.sites import Alternative

GRAPH = graph()
PLAINLY = replace(settings("nhwc"), strict=True, halos=False)
DEPTHWISE, SUM = 3, 4
"""Sites of the network: windows of single channels, and a product with a residual sum."""

NAMES = ("auto", "nhwc", "nchw", "nchw8c", "nchw16c", "nchw4c")
WIDTH = 120


def shown(layouts: str = "auto", made: Graph = GRAPH, **machine: object) -> Overview:
    wanted = settings(layouts, **machine)  # type: ignore[arg-type]
    choice = choose(made, wanted)
    return overview(made, wanted, choice.sites, exact=choice.exact)


def drawn(layouts: str) -> str:
    """The text of a network, with numbers that do not follow the model of the machine."""
    wanted = replace(settings(layouts), strict=True, halos=False)
    made = overview(GRAPH, wanted, decide(GRAPH, wanted)[0], exact=True)
    sites = [replace(row, cycles=row.cycles and 1234.5 * (row.site + 1)) for row in made.sites]
    conversions = [replace(row, cycles=67.0) for row in made.conversions]
    others = dict.fromkeys(made.others, 2e6)
    rows = {"sites": tuple(sites), "conversions": tuple(conversions), "others": others}
    return layouts_text(replace(made, **rows, cycles=1e6, seconds=1e-3), WIDTH)


@pytest.mark.parametrize("layouts", ["nhwc", "nchw", "nchw4c"])
def test_a_network_with_its_layouts(layouts, golden):
    assert golden == drawn(layouts)


@pytest.mark.parametrize("layouts", NAMES)
def test_conversions_are_those_of_the_graph(layouts):
    choice = choose(GRAPH, settings(layouts))
    made = overview(GRAPH, settings(layouts), choice.sites, exact=choice.exact)
    assert [(c.value, c.source, c.result) for c in made.conversions] == [
        (c.value, c.before.name(4), c.after.name(4)) for c in choice.conversions
    ]
    run = [node for node in choice.graph.nodes if node.op.role is not Role.WEIGHTS]
    converted = len(run) - len(GRAPH.nodes)
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
    assert rows[DEPTHWISE].computes == "depthwise 3×3"
    assert rows[SUM].operators == ("conv_5", "add_6")
    assert rows[SUM].reads == (DEPTHWISE, 1)
    for row in rows:
        assert all(site < row.site for site in row.reads if isinstance(site, int))


def tokens() -> Graph:
    """A window whose places become a sequence, which has channels last."""
    b = Builder("tokens")
    w = b.constant(np.ones((16, 16, 1, 1), np.float32), "w")
    y = b.add(Conv((1, 1), (1, 1), (0,) * 4, 1, f32), b.input("x", f32, (1, 8, 8, 16)), w)
    return b.graph([b.map(lambda v: v + 1.0, b.reshape(y, (1, 64, 16)))], ["y"])


def test_it_is_data_of_json():
    facts = json.loads(json.dumps(shown("nchw8c", tokens()).to_dict()))
    assert facts["layouts"] == "nchw8c"
    assert facts["threads"] == 1
    assert {"site", "reads", "algorithm", "source", "result", "cycles"} <= facts["sites"][0].keys()
    conversion = facts["conversions"][-1]
    assert (conversion["source"], conversion["result"]) == ("nchw8c", "nhwc")
    assert facts["sites"][conversion["readers"][0]]["computes"] == "reshape"
    assert conversion["reason"] == "it reads nhwc only"


def test_a_graph_without_feature_maps_has_no_choice():
    b = Builder("plain")
    x = b.input("x", f32, (4, 8))
    made = shown(made=b.graph([b.map(lambda v: v + 1.0, x)], ["y"]))
    assert [(row.source, row.result) for row in made.sites] == [("plain", "plain")]
    assert "no feature maps" in layouts_text(made, WIDTH)


Prices = Callable[[int, Alternative], float]


def forced(
    changes: Mapping[int, tuple[Form, Form]],
    prices: Prices = lambda *_: 100.0,
    layouts: str = "auto",
) -> Overview:
    """Channels last, but for sites that read and write as is said here, with these prices."""
    chosen = []
    for k, (site, alternative) in enumerate(decide(GRAPH, PLAINLY)[0]):
        offered = tuple(replace(a, cycles=prices(k, a)) for a in site.alternatives)
        source, result = changes.get(k, (alternative.source.plain, alternative.result))
        fitting = (a for a in offered if (a.source.plain, a.result) == (source, result))
        chosen.append((replace(site, alternatives=offered), next(fitting)))
    return overview(GRAPH, settings(layouts), chosen, exact=False)


def test_a_value_is_converted_once_for_all_of_its_readers():
    """The first window writes channels first; the second one and the sum want them last."""
    made = forced({1: (LAST, FIRST)})
    (row,) = made.conversions
    assert (row.source, row.result, row.writer) == ("nchw", "nhwc", 1)
    assert row.readers == (2, SUM)
    assert made.cycles == pytest.approx(sum(site.cycles or 0 for site in made.sites) + row.cycles)


def test_a_slower_reader_is_a_reason():
    prices: Prices = lambda k, a: 1350.0 if (k, a.source.plain) == (SUM, LAST) else 100.0  # noqa: E731
    (row, _) = forced({SUM: (FIRST, LAST), 1: (LAST, FIRST)}, prices).conversions[::-1]
    assert (row.source, row.result, row.readers) == ("nhwc", "nchw", (SUM,))
    assert row.reason == "it takes 1,250 cycles more if it reads nhwc"


def test_a_slower_reader_is_named_if_there_are_more():
    prices: Prices = lambda k, a: 150.0 if (k, a.result.plain) == (SUM, FIRST) else 100.0  # noqa: E731
    (row,) = forced({1: (LAST, FIRST)}, prices).conversions
    assert row.reason == f"site {SUM} takes 50 cycles more if it reads nchw"


def test_a_slower_writer_is_a_reason():
    prices: Prices = lambda k, a: 300.0 if (k, a.result.plain) == (2, FIRST) else 100.0  # noqa: E731
    first, second = forced({DEPTHWISE: (FIRST, FIRST)}, prices).conversions
    assert (first.result, first.writer) == ("nchw", 2)
    assert first.reason == "site 2 takes 200 cycles more if it writes nchw"
    assert (second.source, second.result, second.readers) == ("nchw", "nhwc", (SUM,))
    assert second.reason == f"the result of site {SUM} is nhwc"


def test_what_was_asked_for_is_a_reason():
    (row,) = forced({1: (LAST, FIRST)}, layouts="nhwc").conversions
    assert row.reason == "nhwc is asked for, wherever there is a choice"
