"""Kernels from other machines: used if they are what was asked for, and else built here."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.unit.tuning.measure.jobs import (
    HOST,
    HereBuilder,
    drafted_points,
    job_of,
    product_model,
    trial,
)
from tilewright.tuning.measure import build_worker
from tilewright.tuning.measure.build import Built, build_request
from tilewright.tuning.measure.elsewhere import REST_S, Elsewhere, made
from tilewright.tuning.measure.gate import Gate
from tilewright.tuning.measure.local import LocalRunner
from tilewright.tuning.measure.trial import BUILD, OK, Trial


def built_there(request) -> Built:
    """What a process that builds makes of a request, without the process."""
    answer, data = build_worker.build(request, b"")
    return Built(data, answer["status"], answer["detail"])


class Other:
    """Another machine, with a fault that a test chooses."""

    def __init__(self, room=4, spoil=lambda found: found):
        self.asked, self._room, self.spoil = 0, room, spoil

    def room(self):
        return self._room

    def ask(self, request, is_over):
        assert not is_over()
        self.asked += 1
        return self.spoil(made(request, built_there))


@pytest.fixture(scope="module")
def product():
    return job_of(product_model())


def test_what_is_built_elsewhere_is_what_is_built_here(product):
    here, other = HereBuilder(), Other()
    builder = Elsewhere(here, other)
    for schedule in ("draft", "none"):
        found = builder.build(product.task, HOST, schedule)
        assert found.status == OK
        assert found.data == HereBuilder().build(product.task, HOST, schedule).data
    assert (other.asked, here.built) == (2, [])


def test_a_candidate_that_cannot_be_built_elsewhere_cannot_be_built(product):
    spoil = lambda found: replace(found, built=Built(status=BUILD, detail="no points"))  # noqa: E731
    here, other = HereBuilder(), Other(spoil=spoil)
    found = Elsewhere(here, other).build(product.task, HOST)
    assert (found.status, found.detail) == (BUILD, "no points")
    assert (other.asked, here.built) == (1, [])


def _of_other_versions(found):
    return replace(found, versions=replace(found.versions, llvm="0.1"))


FAULTS = {
    "lost": lambda _: None,
    "another request": lambda found: replace(found, request="0"),
    "another compiler": _of_other_versions,
}


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_of_others_are_no_faults_of_candidates(product, fault):
    now = [0.0]
    here, other = HereBuilder(), Other(spoil=FAULTS[fault])
    builder = Elsewhere(here, other, clock=lambda: now[0])
    assert [builder.build(product.task, HOST).status for _ in range(3)] == [OK] * 3
    assert (other.asked, len(here.built)) == (1, 3)  # others are not asked again for a while
    now[0] += REST_S
    other.spoil = lambda found: found
    builder.build(product.task, HOST)
    assert (other.asked, len(here.built)) == (2, 3)


def test_without_room_elsewhere_kernels_are_built_here(product):
    here, other = HereBuilder(), Other(room=0)
    assert Elsewhere(here, other).build(product.task, HOST).status == OK
    assert (other.asked, len(here.built)) == (0, 1)


def test_the_target_is_part_of_what_is_asked(product):
    """A kernel for another processor is not the one that was asked for."""
    other = replace(HOST, features=frozenset(sorted(HOST.features)[1:]))
    request, wrong = (build_request(product.task, target) for target in (HOST, other))
    assert made(request, built_there).is_of(request)
    assert not made(wrong, lambda _: Built(b"")).is_of(request)


def test_a_measurement_holds_up_builds_of_this_machine_alone(product):
    here = Gate(HereBuilder(), 1)
    with here.measuring(0):
        assert Elsewhere(here, Other()).build(product.task, HOST).status == OK


def test_nothing_is_built_once_the_runner_is_closed(product):
    here, other = HereBuilder(), Other()
    builder = Elsewhere(here, other)
    builder.close()
    assert builder.build(product.task, HOST).status == BUILD
    assert (other.asked, here.built) == (0, [])


def test_a_runner_measures_what_was_built_elsewhere(product):
    here, other = HereBuilder(), Other()
    about = {"builder": here, "wrap": lambda own: Elsewhere(own, other), "elsewhere": 2}
    with LocalRunner(1, **about) as runner:
        written = Trial(product, drafted_points(product))
        found = [outcome for _, outcome in runner.run([trial(product), written])]
    assert [outcome.status for outcome in found] == [OK, OK], found
    assert (other.asked, here.built) == (3, [])  # the draft, its points, the plain program
