"""Copies between layouts: which are tasks, what is recorded of them, and who pays it."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from tests.unit.layouts.test_sites import SETTINGS, Network
from tests.unit.layouts.test_surroundings import chain
from tests.unit.tuning.test_model_tuner import MadeUp
from tilewright.graph import Graph
from tilewright.layouts.choose import choose, decide
from tilewright.layouts.forms import FIRST, LAST, Form, blocked
from tilewright.layouts.sites import Settings, sites_of
from tilewright.layouts.surroundings import Surroundings, conversions_in
from tilewright.layouts.template import LayoutSpace
from tilewright.layouts.timing import converted_kind
from tilewright.records import Database, Records, target_key
from tilewright.records.kinds import conversion_times
from tilewright.schedule.measured import Measured, SiteTimes, conversion_key, site_key
from tilewright.tuning.budget import Budget
from tilewright.tuning.conversions import PATIENCE, conversion_records, conversion_tasks
from tilewright.tuning.history import History
from tilewright.tuning.kernel_tuner import KernelTuner, SearchOptions
from tilewright.tuning.measure.trial import OK, Outcome
from tilewright.tuning.tuner import Search

TARGET = SETTINGS.machine.target
CUT = Form(first=True, block=4, tiles=(4, 8))


def convolutions() -> Graph:
    """Two in a row, so that what the first writes is what the second reads, or is converted."""
    n = Network()
    return n.graph(n.conv(n.relu(n.conv(n.relu(n.conv(n.x, 16)), 16)), 16))


def copies(graph: Graph) -> list:
    (x,) = graph.inputs
    return [(x, FIRST, LAST), (x, LAST, blocked(8)), (x, FIRST, LAST), (x, LAST, CUT)]


def measured(task, time_ns: float):
    """A search in which every trial takes so long, and the draft twice as long."""
    tuner = KernelTuner(task, SearchOptions(), History(), np.random.default_rng(0))
    if not task.has_choice:
        tuner.tell_draft(Outcome(OK, time_ns, time_ns))
    for row in tuner.propose(3) if task.has_choice else []:
        tuner.tell(row, Outcome(OK, time_ns, 2 * time_ns))
    return SimpleNamespace(tuner=tuner, best_ns=tuner.reference_ns * tuner.best)


def test_each_distinct_copy_is_a_task():
    tasks = list(conversion_tasks(copies(chain()), TARGET))
    assert [(t.before, t.after) for t in tasks] == [
        ("nchw", "nhwc"), ("nhwc", "nchw8c"), ("nhwc", "nchw4c/4x8"),
    ]  # fmt: skip
    assert tasks[0].task.has_choice, "loops of a copy across are open"
    assert not tasks[1].task.has_choice, "lines are copied as they are"
    known = {tasks[0].key}
    assert len(list(conversion_tasks(copies(chain()), TARGET, known))) == 2


def test_values_that_stay_as_they_are_are_no_task():
    (x,) = chain().inputs
    assert not list(conversion_tasks([(x, FIRST, FIRST)], TARGET))


def test_the_best_time_is_recorded_under_the_key_of_whoever_chooses():
    graph = chain()
    tasks = list(conversion_tasks(copies(graph), TARGET))
    records = conversion_records(tasks, [measured(t.task, 500.0) for t in tasks], 1)
    assert {r.target for r in records} == {target_key(TARGET)}
    kind = converted_kind(graph.inputs[0])
    times = conversion_times(records)
    assert times[conversion_key(kind, "nhwc", "nchw8c")] == pytest.approx(500.0)
    assert len(times) == 3


def test_what_was_not_measured_is_not_recorded():
    tasks = list(conversion_tasks(copies(chain()), TARGET))
    none = [SimpleNamespace(tuner=SimpleNamespace(reference_ns=0.0), best_ns=1.0)] * len(tasks)
    assert not conversion_records(tasks, none, 1)


def test_a_copy_without_any_choice_is_measured_as_it_is(tmp_path):
    tasks = [t.task for t in conversion_tasks(copies(chain()), TARGET)]
    with Database(tmp_path / "records.sqlite") as database:
        about = SearchOptions(), Budget(trials=8)
        search = Search("copies", tasks, database, MadeUp(), 1, *about)
        search.run()
        assert len(database) == 8
    assert [t.task.has_choice for t in search.tuned] == [True, False, False]
    assert all(400 < each.best_ns <= 1000 for each in search.tuned)


def test_a_conversion_is_left_after_a_few_trials_without_gain():
    assert PATIENCE.trials <= SearchOptions().batch


@pytest.mark.parametrize(("ratio", "time_ns", "is_paid"), [(0.5, 1e9, False), (0.98, 1e-3, True)])
def test_the_next_choice_pays_what_was_measured(tmp_path, ratio, time_ns, is_paid):
    """A conversion that takes long drives away what needs it, and one that takes nothing does not.

    A middle layer was measured to be much faster from and to a layout of tiles, or a little.
    """
    graph = convolutions()
    sites = sites_of(graph, SETTINGS)
    number, site = [(k, s) for k, s in enumerate(sites) if s.conv is not None][1]
    space = LayoutSpace.of(site, SETTINGS.machine)
    drafted = next(a for s, a in decide(graph, SETTINGS)[0] if s.nodes == site.nodes)
    cut = space.made(drafted.algorithm, CUT, CUT, halo=False)
    assert cut is not None
    plain = drafted.key(4).removesuffix("+halo")
    times = {plain: 1000.0, cut.key(4): 1000.0 * ratio}
    known = Measured({site_key(site.workload): SiteTimes(plain, 1000.0, times)})

    def copied(settings: Settings) -> set[str]:
        found = conversions_in(graph, decide(graph, settings)[0])
        return {task.key for task in conversion_tasks(found, TARGET)}

    around = Surroundings(graph, SETTINGS, sites)
    tasks = list(conversion_tasks(conversions_in(graph, around.choice(number, cut)), TARGET))
    keys = {task.key for task in tasks}
    assert keys
    predicted = copied(replace(SETTINGS, times=known))
    assert bool(keys & predicted) is not is_paid, "by predictions it goes the other way"
    with Database(tmp_path / "records.sqlite") as database:
        database.add(conversion_records(tasks, [measured(t.task, time_ns) for t in tasks], 1))
        conversions = Records(database, TARGET, 1).measured.conversions
    settings = replace(SETTINGS, times=replace(known, conversions=conversions))
    assert bool(keys & copied(settings)) is is_paid
    assert choose(graph, settings).graph
