"""A whole search over a cluster that breaks: the same trials and best, nothing lost or twice."""

from __future__ import annotations

from itertools import count

import pytest

from tests.unit.tuning.measure.clusters import HERE, Simulated, by_points
from tests.unit.tuning.measure.searches import found_in, tuned
from tilewright.tuning.measure.cluster import Node
from tilewright.tuning.measure.dispatch import Dispatcher

ALL = 100_000
"""More trials than there are points."""

LOSSES = {
    "none": set(),
    "early": {0, 1},
    "now and then": {5, 14, 23, 30},
    "one after another": {20, 21, 22, 23, 24},
}
"""Numbers of the answers before which the worker that gives them is lost."""


def _searched(path, losses, how, trials):
    clock = count()
    places = [Node(name, name, HERE, 8) for name in "ab"]
    breaks = lambda _worker, _number: next(clock) in losses  # noqa: E731
    cluster = Simulated(places, breaks=breaks, measure=by_points)
    report = tuned(path, Dispatcher(cluster, repeats=100), trials, how)
    assert next(clock) > max(losses, default=0), "the search ended before a worker was lost"
    found, best = found_in(path)
    assert report.state.trials == len(found)
    return found, best


@pytest.fixture(scope="module", params=[("random", 24), ("evolution", ALL)], ids=lambda p: p[0])
def undisturbed(request, tmp_path_factory):
    """A search and what it finds while nothing breaks."""
    path = tmp_path_factory.mktemp("search") / "records.sqlite"
    return *request.param, *_searched(path, set(), *request.param)


@pytest.mark.parametrize("losses", LOSSES)
def test_lost_workers_change_nothing(undisturbed, losses, tmp_path, monkeypatch):
    monkeypatch.setattr("tilewright.tuning.measure.fleet.LOOK_S", 0.0)
    monkeypatch.setattr("tilewright.tuning.measure.fleet.MOST_LOSSES", 100)
    how, trials, expected, best = undisturbed
    found, own = _searched(tmp_path / "records.sqlite", LOSSES[losses], how, trials)
    assert found == expected
    assert (own.points, own.ratio) == (best.points, best.ratio)
    assert {outcome for outcome, _ in found.values()} == {"ok", "crash"}
