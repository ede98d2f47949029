"""Layouts of the template that are proposed: new ones, of kernels that differ, good ones first."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest

from tests.unit.layouts.test_sites import SETTINGS
from tests.unit.layouts.test_surroundings import chain
from tilewright.layouts.forms import FIRST, LAST, Form
from tilewright.layouts.sites import Alternative, sites_of
from tilewright.layouts.template import LayoutSpace
from tilewright.tuning.proposals import SHORT, Proposals

MACHINE = SETTINGS.machine
CUT = Form(first=True, block=4, tiles=(4, 8))


@pytest.fixture
def proposals() -> Proposals:
    site = next(s for s in sites_of(chain(), SETTINGS) if s.conv is not None)
    made = Proposals(LayoutSpace.of(site, MACHINE), np.random.default_rng(3))
    made.see(drafted(made))
    return made


def drafted(proposals: Proposals) -> Alternative:
    return min(proposals.space.site.alternatives, key=lambda a: a.cycles)


def nothing(alternatives):
    return [0.0] * len(alternatives)


def test_nothing_is_proposed_twice_nor_under_another_name(proposals):
    shapes = [v.shape for v in (proposals.space.site.data[0], proposals.space.site.results[0])]
    seen = set()
    for _ in range(5):
        for a in proposals.next([drafted(proposals)], [], 3, nothing):
            memory = (a.source.memory(shapes[0]), a.result.memory(shapes[1]))
            assert (a.algorithm, memory) not in seen
            seen.add((a.algorithm, memory))
            assert proposals.space.digits(a) is not None
    assert len(seen) >= 5 * SHORT


def test_what_is_not_taken_may_come_again(proposals):
    parent = [drafted(proposals)]
    taken = list(islice(proposals.next(parent, [], 3, nothing), 2))
    assert len(taken) == 2
    assert len(proposals.seen) == 3


def test_a_digit_of_the_best_is_changed(proposals):
    """Some differ from it in one digit alone, and few in all of them."""
    parent = drafted(proposals)
    own = np.array(proposals.space.digits(parent))
    found = list(proposals.next([parent], [], 8, nothing))
    apart = [int((own != proposals.space.digits(a)).sum()) for a in found]
    assert 1 in apart


def test_what_the_rest_of_the_graph_pays_is_part_of_the_rank(proposals):
    def others(alternatives):
        assert len(alternatives) <= SHORT
        return [1e12 if a.source.plain == LAST else 0.0 for a in alternatives]

    found = list(proposals.next([drafted(proposals)], [], 8, others))[:7]  # the eighth is any
    places = [k for k, a in enumerate(found) if a.source.plain == LAST]
    assert not places or min(places) > 0
    assert found[0].source.plain != LAST


def test_forms_that_are_fast_elsewhere_are_candidates(proposals):
    def others(alternatives):
        return [0.0 if CUT in (a.source.plain, a.result.plain) else 1e12 for a in alternatives]

    found = [a for _ in range(4) for a in proposals.next([drafted(proposals)], [CUT], 2, others)]
    assert any(CUT in (a.source.plain, a.result.plain) for a in found)


def test_forms_that_do_not_fit_are_passed_over(proposals):
    forms = [Form(tiles=(99, 0)), Form(first=True, block=7), FIRST]
    assert list(proposals.next([drafted(proposals)], forms, 3, nothing))


def test_a_seed_says_what_is_drawn():
    site = next(s for s in sites_of(chain(), SETTINGS) if s.conv is not None)
    space = LayoutSpace.of(site, MACHINE)
    names = [
        [a.key(4) for a in islice(Proposals(space, np.random.default_rng(seed)).drawn(), 30)]
        for seed in (1, 1, 2)
    ]
    assert names[0] == names[1] != names[2]
    assert len(set(names[0])) == 30
