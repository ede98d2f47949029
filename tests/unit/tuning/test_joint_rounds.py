"""Rounds of the joint stage: what survives, what is fresh, what is known in the end."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from tests.unit.tuning.test_model_tuner import network
from tilewright.layouts.costs import Machine
from tilewright.layouts.template import LayoutSpace
from tilewright.model.compiler import AUTO, Compiling
from tilewright.pipeline import ModelPipeline
from tilewright.records.kinds import site_times
from tilewright.schedule.measured import site_key
from tilewright.target import Target
from tilewright.tuning.budget import Amount, Budget
from tilewright.tuning.history import History
from tilewright.tuning.joint import MOST
from tilewright.tuning.joint_rounds import SURVIVORS, JointRounds
from tilewright.tuning.joint_stage import MOST_ROUNDS, JointStage, rounds_of
from tilewright.tuning.kernel_tuner import KernelTuner, SearchOptions
from tilewright.tuning.measure.trial import OK, Outcome

TARGET = Target.named("x86-64-v3")


def chosen_for(model):
    how = Compiling(TARGET, None, "default", AUTO)
    return ModelPipeline(how).run(model, until="choose").value


@pytest.fixture(scope="module")
def chosen():
    return chosen_for(network(channels=32, side=14))


@pytest.fixture
def rounds(chosen):
    return JointRounds(chosen, 1, np.random.default_rng(0))


def searched(tasks, time_of):
    """A search that measures each variant's draft; times are by the names of variants."""
    found = []
    for each in tasks:
        tuner = KernelTuner(each.task, SearchOptions(), History(), np.random.default_rng(0))
        for number, variant in enumerate(each.task.variants):
            time_ns = time_of(variant.name)
            (row,) = variant.space.sample(np.random.default_rng(1), 1)
            tuner.tell(tuner.space.row_of(number, row), Outcome(OK, time_ns, time_ns))
        found.append(SimpleNamespace(tuner=tuner, known_ns=1000.0, best_ns=tuner.best * 1000.0))
    return found


def names(task):
    return [task.own.key(a) for a in task.alternatives]


def convolution(tasks):
    return next(t for t in tasks if t.site.conv is not None)


def test_the_first_round_has_what_is_predicted_to_be_near_the_best(rounds):
    tasks = rounds.tasks()
    task = convolution(tasks)
    assert names(task)[0] == task.own.key(task.own.chosen)
    assert set(task.alternatives) <= set(task.site.alternatives)
    assert 1 < len(task.alternatives) <= MOST


def test_without_time_the_heaviest_site_is_prepared_alone():
    def tasks(most_seconds):
        made = chosen_for(network(channels=32, side=14, windows=(3, 5)))
        rounds = JointRounds(made, 1, np.random.default_rng(0))
        return [task.own for task in rounds.tasks(most_seconds)]

    every = tasks(None)
    assert len(every) > 1
    assert every == sorted(every, key=lambda own: -own.cycles)
    assert [own.cycles for own in tasks(0.0)] == [every[0].cycles]


def test_a_site_that_had_no_time_begins_with_what_is_predicted_to_be_near_the_best():
    """Not with fresh layouts, of which nothing is known."""

    def rounds():
        made = chosen_for(network(channels=32, side=14, windows=(3, 5)))
        return JointRounds(made, 1, np.random.default_rng(0))

    every, late = rounds().tasks(), rounds()
    heaviest = late.tasks(0.0)
    late.tell(heaviest, searched(heaviest, lambda name: 1000.0 + len(name)))
    found = {task.own.cycles: set(names(task)) for task in late.tasks()}
    for task in every[1:]:
        assert found[task.own.cycles] == set(names(task))


def test_rounds_that_compare_with_other_kernels_are_compared_by_time(rounds):
    """The chosen alternative may find its data otherwise in a later round."""
    tasks = rounds.tasks()
    own = convolution(tasks).own
    reference, *others = names(convolution(tasks))
    times = {name: 5000.0 + 100 * number for number, name in enumerate(others)}
    rounds.tell(tasks, searched(tasks, lambda name: times.get(name, 1000.0)))
    first = site_times(rounds.records)[site_key(own.site.workload)].times_ns
    tasks = rounds.tasks()
    left = set(others) - set(names(convolution(tasks)))
    found = searched(tasks, lambda name: times.get(name, 500.0))
    for each in found:
        each.known_ns = 500.0
    rounds.tell(tasks, found)
    second = site_times(rounds.records)[site_key(own.site.workload)].times_ns
    assert left
    assert {name: second[name] for name in left} == {name: first[name] for name in left}
    assert second[reference] == pytest.approx(500.0)


def test_layouts_beyond_the_untuned_ones_are_tried(rounds):
    seen, untuned = set(), set()
    for _ in range(4):
        tasks = rounds.tasks()
        for each in tasks:
            seen |= {(each.site.workload, name) for name in names(each)}
            untuned |= {(each.site.workload, each.own.key(a)) for a in each.site.alternatives}
        rounds.tell(tasks, searched(tasks, lambda name: 1000.0 + len(name)))
    assert any("/" in name for _, name in seen - untuned)


def test_what_was_measured_is_known_of_sites(rounds):
    tasks = rounds.tasks()
    task = convolution(tasks)
    fast = names(task)[1]
    rounds.tell(tasks, searched(tasks, lambda name: 400.0 if name == fast else 800.0))
    times = rounds.measured.sites[site_key(task.site.workload)]
    assert times.reference == names(task)[0]
    assert times.times_ns[fast] / times.reference_ns == pytest.approx(0.5)
    again = rounds.tasks()
    rounds.tell(again, searched(again, lambda _: 800.0))
    times = rounds.measured.sites[site_key(task.site.workload)]
    assert times.times_ns[fast] / times.reference_ns == pytest.approx(0.5), "its best counts"


def test_what_a_database_knows_is_in_the_first_round(chosen, rounds):
    task = convolution(rounds.tasks())
    space = LayoutSpace.of(task.site, Machine(TARGET, 1))
    rows = space.sample(np.random.default_rng(5), 40)
    cut = next(
        a for row in rows if (a := space.at(row.tolist())) and a.result.tiles and a.source.tiles
    )
    rounds.tell([task], searched([task], lambda _: 1000.0))
    known = rounds.measured
    key, own = site_key(task.site.workload), task.own
    times = replace(known.sites[key], times_ns={**known.sites[key].times_ns, own.key(cut): 1.0})
    known = replace(known, sites={**known.sites, key: times})
    again = JointRounds(chosen, 1, np.random.default_rng(0), known)
    assert names(convolution(again.tasks()))[1] == own.key(cut).removesuffix("+halo")


def test_conversions_of_what_is_best_are_measured_and_known(rounds):
    first = rounds.tasks()
    rounds.tell(first, searched(first, lambda _: 1000.0))
    tasks = rounds.tasks()
    fresh = names(convolution(tasks))[1 + SURVIVORS :]
    fast = next(n for n in fresh if "nhwc→nhwc" not in n.replace("+halo", ""))
    rounds.tell(tasks, searched(tasks, lambda name: 1.0 if name == fast else 1e5))
    copies = rounds.conversions()
    assert copies
    assert all(copy.before != copy.after for copy in copies)
    assert len({copy.key for copy in copies}) == len(copies)
    rounds.tell_conversions(copies, searched(copies, lambda _: 500.0))
    assert {copy.key for copy in copies} <= rounds.measured.conversions.keys()
    assert not {c.key for c in rounds.conversions()} & {copy.key for copy in copies}


class Stage:
    """A stage whose searches spend what they are given and make up times."""

    def __init__(self, rounds, budget):
        self.asked = []
        self.stage = JointStage(rounds, self.search, budget, SearchOptions())

    def search(self, tasks, budget, options):
        def run():
            self.asked.append((budget.trials, options.batch))
            budget.spend(budget.trials)

        tuned = searched([SimpleNamespace(task=t) for t in tasks], lambda n: 1000.0 + len(n))
        return SimpleNamespace(tuned=tuned, run=run, tell=lambda *_, **__: None)


def test_a_small_budget_has_one_round(rounds):
    own = Stage(rounds, Budget(trials=8))
    assert own.stage.run()
    assert [trials for trials, _ in own.asked] == [6]
    assert rounds.round == 1


def test_a_large_budget_has_several_rounds_and_is_not_exceeded(rounds):
    own = Stage(rounds, Budget(trials=1500))
    assert own.stage.run()
    assert rounds.round == MOST_ROUNDS
    assert sum(trials for trials, _ in own.asked) <= 1500
    assert max(trials for trials, _ in own.asked) == own.asked[0][0]
    assert {batch for _, batch in own.asked} >= {SearchOptions().batch}


@pytest.mark.parametrize(
    ("trials", "seconds", "sites", "count"),
    [
        (8, None, 4, 1),
        (400, None, 4, 4),
        (10_000, None, 4, MOST_ROUNDS),
        (None, 70.0, 8, 2),
        (None, None, 4, MOST_ROUNDS),
        (10_000, 10.0, 4, 1),
        (0, None, 0, 1),
    ],
)
def test_rounds_are_as_many_as_sites_have_trials_for(trials, seconds, sites, count):
    assert rounds_of(Amount(trials, seconds), sites) == count
