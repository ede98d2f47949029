"""A whole search on two nodes that are killed, one after the other: the same records and best.

Kernels are built, run and compared for real; times follow from their points, so that searches can
be compared by equality.
"""

from __future__ import annotations

from functools import partial

import pytest

from tests.ray.runners import Clocked, lines
from tests.unit.tuning.measure.searches import found_in, tuned
from tilewright.tuning.measure.ray_runner import RayRunner

ALL = 100_000
"""More trials than there are points."""


@pytest.mark.parametrize(("how", "trials"), [("random", 40), ("evolution", ALL)])
def test_a_search_survives_its_nodes(how, trials, cluster, add_node, tmp_path):
    undisturbed, disturbed, log = (tmp_path / name for name in ("a.sqlite", "b.sqlite", "log"))
    alone = Clocked()
    try:
        report = tuned(undisturbed, alone, trials, how)
    finally:
        alone.close()
    expected, best = found_in(undisturbed)
    assert report.state.trials == len(expected) >= 40

    victims = [add_node(), add_node()]
    runner = RayRunner(make_runner=partial(Clocked, str(log)))

    def watch(event):
        if event.kind == "trial" and event.state.trials in (12, 26):
            cluster.remove_node(victims.pop(), allow_graceful=False)
            if not victims:
                add_node()  # nobody is left: it takes their place

    try:
        again = tuned(disturbed, runner, trials, how, on_event=watch)
    finally:
        runner.close()
    assert not victims
    found, own = found_in(disturbed)
    assert found == expected
    assert (own.points, own.ratio) == (best.points, best.ratio)
    assert again.state.trials == len(found)
    assert again.gain == report.gain
    assert len(set(lines(log))) == 3  # each node has measured
    # What was in flight was repeated, and what is too good to be believed is measured twice.
    assert len(lines(log)) <= 2 * len(found)
