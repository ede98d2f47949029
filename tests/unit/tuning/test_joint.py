"""Sites as tasks: their variants, what these cost the rest of a graph, and their records."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from tests.unit.tuning.test_model_tuner import network
from tilewright.errors import TilewrightWarning
from tilewright.graph.grouping import group_nodes
from tilewright.layouts.apply import apply
from tilewright.layouts.choose import decide
from tilewright.layouts.flatten import flatten_as_stored
from tilewright.layouts.surroundings import Surroundings
from tilewright.model.compiler import AUTO, Compiling
from tilewright.model.kernel_plan import plan_kernels
from tilewright.model.site_kernels import kernel_of
from tilewright.pipeline import ModelPipeline
from tilewright.records import workload_key
from tilewright.records.kinds import site_times
from tilewright.schedule.measured import site_key
from tilewright.schedule.recipes.context import NOMINAL_THREADS
from tilewright.target import Target
from tilewright.tuning import joint
from tilewright.tuning.history import History
from tilewright.tuning.joint import LEAST_PART, JointSites, best_times_ns, site_records, site_tasks
from tilewright.tuning.kernel_tuner import KernelTuner, SearchOptions
from tilewright.tuning.measure.trial import OK, Outcome
from tilewright.tuning.proposals import Proposals


@pytest.fixture(scope="module")
def chosen():
    how = Compiling(Target.named("x86-64-v3"), None, "default", AUTO)
    return ModelPipeline(how).run(network(channels=32, side=14), until="choose").value


@pytest.fixture(scope="module")
def tasks(chosen):
    return list(site_tasks(chosen, 1, near=4.0))


def test_what_is_chosen_costs_the_least_together_with_the_rest(chosen):
    sites = [site for site, _ in chosen.choice.sites]
    around = Surroundings(chosen.graph, chosen.settings, sites)
    _, solution = decide(chosen.graph, chosen.settings)
    for number, (site, own) in enumerate(chosen.choice.sites):
        costs = around.costs(number, site.alternatives)
        totals = {a: c + a.cycles for a, c in zip(site.alternatives, costs, strict=True)}
        assert totals[own] == pytest.approx(solution.cost)
        assert min(totals.values()) >= solution.cost * (1 - 1e-9)


def test_the_chosen_alternative_is_the_first_variant(tasks):
    assert tasks
    for each in tasks:
        assert len(each.task.variants) == len(each.alternatives) > 1
        assert each.task.variants[0].around_cycles == 0
        keys = {variant.workload for variant in each.task.variants}
        assert len(keys) == len(each.task.variants)
        algorithms = {alternative.algorithm for alternative in each.alternatives}
        assert len(algorithms) > 1


def test_equal_layers_are_one_task(tasks):
    convolutions = [each for each in tasks if each.site.conv is not None]
    assert sum(each.task.runs for each in convolutions) <= 2


def test_variants_are_compared_by_what_they_cost_together(tasks):
    task = tasks[0].task
    tuner = KernelTuner(task, SearchOptions(), History(), np.random.default_rng(0))
    drafts = list(task.space.drafts())
    for row in drafts:
        tuner.tell(row, Outcome(OK, 1000.0, 1000.0))
    costs = dict(zip((int(row[0]) for row in drafts), tuner.costs, strict=True))
    assert costs[0] == 1
    for number, variant in enumerate(task.variants[1:], start=1):
        margin = variant.margin / task.drafted.margin
        assert costs[number] == pytest.approx(max(1e-3, margin + variant.around_ns / 1000.0))
        assert tuner.best_of(number) == pytest.approx(1.0)


def test_what_variants_took_is_known_of_the_site(tasks):
    own = tasks[0]
    tuner = KernelTuner(own.task, SearchOptions(), History(), np.random.default_rng(0))
    for number, row in enumerate(own.task.space.drafts()):
        tuner.tell(row, Outcome(OK, 1000.0 + 100 * number, 1000.0 + 100 * number))
    times = best_times_ns(own, SimpleNamespace(tuner=tuner, known_ns=1000.0))
    records = site_records(own, times, 1)
    assert len(records) == len(own.alternatives)
    known = site_times(records)[site_key(own.site.workload)]
    whole = [1000.0 + 100 * number for number in range(len(records))]
    without = [t - border for t, border in zip(whole, own.borders_ns, strict=True)]
    keys = [own.own.key(alternative) for alternative in own.alternatives]
    parts = [max(LEAST_PART * t, w) for t, w in zip(whole, without, strict=True)]
    assert known.times_ns == pytest.approx(dict(zip(keys, parts, strict=True)))


def kernels_in(chosen, choice):
    """The keys of all kernels of a graph with a choice."""
    applied = apply(chosen.graph, choice)
    graph = flatten_as_stored(applied.graph)
    planned = plan_kernels(graph, NOMINAL_THREADS, group_nodes(graph, applied.kernels))
    target = chosen.settings.machine.target
    return {workload_key(kernel.workload(target)) for kernel in planned.kernels}


@pytest.mark.parametrize("tag", ["alone", "in a network"])
def test_variants_are_the_kernels_of_a_model_that_chose_them(chosen, tag):
    """With the zeros around their data that are there, and none that nobody has written."""
    if tag == "alone":
        how = Compiling(Target.named("x86-64-v3"), None, "default", AUTO)
        chosen = (
            ModelPipeline(how)
            .run(network(channels=16, side=14, windows=(3,)), until="choose")
            .value
        )
    found = 0
    for each in site_tasks(chosen, 1, near=4.0):
        around = JointSites(chosen, 1).surroundings()
        for alternative, variant in zip(each.alternatives, each.task.variants, strict=True):
            choice = around.choice(each.own.number, alternative)
            assert variant.workload in kernels_in(chosen, choice), variant.name
            found += 1
    assert found > 4


@pytest.mark.parametrize("seed", range(3))
def test_variants_that_read_tiles_are_the_kernels_of_a_model(chosen, seed):
    """Conversions into tiles bring the border along. What is written is as chosen, since a kernel
    that converts its own result is another one."""
    sites = JointSites(chosen, 1)
    around = sites.surroundings()
    own = next(o for o in sites.open if o.site.conv is not None)
    space, result = sites.layouts(own), own.chosen.result.plain
    drawn = Proposals(space, np.random.default_rng(seed)).drawn()
    made = (space.made(a.algorithm, a.source.plain, result, halo=False) for a in drawn)
    task = sites.task(own, (a for a in made if a is not None and a.source.tiles), around, most=7)
    assert len(task.alternatives) == 7
    for alternative, variant in zip(task.alternatives, task.task.variants, strict=True):
        choice = around.choice(own.number, alternative)
        assert variant.workload in kernels_in(chosen, choice), variant.name


def test_a_kernel_that_makes_a_border_pays_for_it(chosen):
    """A layer alone has its data from a caller, and no zeros around them."""
    how = Compiling(Target.named("x86-64-v3"), None, "default", AUTO)
    alone = (
        ModelPipeline(how).run(network(channels=16, side=14, windows=(3,)), until="choose").value
    )
    (task,) = site_tasks(alone, 1, near=4.0)
    assert all(border > 0 for border in task.borders_ns)
    written = [t.borders_ns for t in site_tasks(chosen, 1, near=4.0) if t.site.conv is not None]
    assert any(border == 0 for borders in written for border in borders)


def test_a_task_says_how_many_points_there_are(tasks):
    """Algorithms × layouts of the template × loops, and not of its few variants alone."""
    for each in tasks:
        if each.site.conv is not None:
            assert each.task.size > 100 * each.task.space.size


def test_kernels_are_planned_for_what_is_asked_for_alone(chosen):
    sites = JointSites(chosen, 1)
    own = next(o for o in sites.open if o.site.conv is not None)
    asked = iter(own.site.alternatives)
    task = sites.task(own, asked, sites.surroundings(), most=3)
    assert len(task.alternatives) == 3
    assert len(list(asked)) >= len(own.site.alternatives) - 5


def test_an_alternative_that_the_compiler_fails_on_is_left_out(chosen, monkeypatch):
    sites = JointSites(chosen, 1)
    own, around = sites.open[0], sites.surroundings()
    broken = next(a for a in own.site.alternatives if own.key(a) != own.key(own.chosen))

    def fails(graph, site, alternative, **about):
        if own.key(alternative) == own.key(broken):
            raise ZeroDivisionError
        return kernel_of(graph, site, alternative, **about)

    monkeypatch.setattr(joint, "kernel_of", fails)
    with pytest.warns(TilewrightWarning, match="left out, the compiler fails on it: ZeroDivision"):
        found = sites.task(own, own.site.alternatives, around)
    assert found is not None
    assert own.key(broken) not in {own.key(a) for a in found.alternatives}
    assert len(found.alternatives) > 1
