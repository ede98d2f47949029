"""Points inside of the model: which of them stay, and which are withdrawn."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tilewright.records import Database, Record, Records, model_record
from tilewright.records.record import target_key
from tilewright.schedule.points import data_of
from tilewright.target import Target
from tilewright.tensor import library
from tilewright.tuning import verification
from tilewright.tuning.history import History
from tilewright.tuning.kernel_tuner import KernelTuner, SearchOptions
from tilewright.tuning.task import Task, task_of_func
from tilewright.tuning.verification import AT_ONCE, MOST, Verification

TARGET = Target.named("x86-64-v3")
KERNEL = task_of_func(library.matmul(96, 96, 96), TARGET, ["B"], 1).drafted
DRAFTED = "the draft"


def points(count):
    rows = KERNEL.space.sample(np.random.default_rng(0), 4 * count)[:count]
    assert len(rows) == count
    return [KERNEL.space.points(row) for row in rows]


def name_of(points):
    return str([data_of(point) for point in points.values()])


@pytest.fixture
def database(tmp_path):
    with Database(tmp_path / "records.sqlite") as found:
        yield found


def searched(database, count):
    """Records of so many points, each a little slower alone than the one before."""
    workload, found = KERNEL.kernel.workload(TARGET), points(count)
    for number, each in enumerate(found):
        time_ns = 800.0 + number
        database.add(Record.of(workload, 1, each, time_ns=time_ns, reference_ns=1000.0))
    return [name_of(each) for each in found]


class Model:
    """Compiled with records it is the name of its kernel's points, whose times are made up."""

    def __init__(self, monkeypatch, database, *times):
        """`times` of points by name: those of the first comparison, and of the next one."""
        self.times, self.compiled, self.compared = list(times), [], []
        monkeypatch.setattr(verification, "kernel_times", self.kernel_times)
        self.verification = Verification(database, TARGET, 1, self.compile, {})

    def compile(self, source):
        winner = source.winners.get(KERNEL.workload)
        made = DRAFTED if winner is None else name_of(winner.points_for(KERNEL.kernel.program))
        self.compiled.append(made)
        return made

    def kernel_times(self, modules, _feeds, _seconds):
        times = self.times[min(len(self.compared), len(self.times) - 1)]
        self.compared.append(modules)
        return {KERNEL.symbol: [times.get(m, 1000.0) for m in modules]}


def winner(database):
    records = Records(database, TARGET, 1)
    found = records.winners.get(KERNEL.workload)
    return None if found is None else name_of(found.points_for(KERNEL.kernel.program))


def test_the_fastest_inside_of_the_model_stays(database, monkeypatch):
    names = searched(database, 4)
    assert winner(database) == names[0]
    model = Model(monkeypatch, database, {names[0]: 990.0, names[1]: 950.0, names[2]: 940.0})
    model.verification.run([KERNEL], 60.0)
    assert winner(database) == names[2]
    assert model.compared == [
        [DRAFTED, *names[:AT_ONCE]],
        [DRAFTED, *names[AT_ONCE:]],
        [DRAFTED, names[2]],
    ]


def test_what_is_as_fast_as_the_fastest_stays(database, monkeypatch):
    names = searched(database, 3)
    model = Model(monkeypatch, database, {names[0]: 901.0, names[1]: 900.0})
    model.verification.run([KERNEL], 60.0)
    assert winner(database) == names[0]


def test_where_no_candidate_pays_nothing_is_used(database, monkeypatch):
    """And so not what comes behind them, which was never looked at inside of the model."""
    searched(database, MOST + 5)
    model = Model(monkeypatch, database, {})
    model.verification.run([KERNEL], 60.0)
    assert winner(database) is None
    assert len(database.usable(KERNEL.workload, target_key(TARGET), 1, count=99)) == 0


def test_what_was_fast_by_chance_is_withdrawn(database, monkeypatch):
    names = searched(database, 3)
    model = Model(monkeypatch, database, {names[1]: 900.0}, {names[1]: 1001.0})
    model.verification.run([KERNEL], 60.0)
    assert winner(database) is None


def test_what_is_slower_than_the_draft_is_withdrawn_although_it_is_near_the_fastest(
    database, monkeypatch
):
    names = searched(database, 2)
    both = {names[0]: 999.5, names[1]: 997.5}
    model = Model(monkeypatch, database, both)
    model.verification.run([KERNEL], 60.0)
    assert winner(database) == names[1]


def test_candidates_are_as_many_as_there_is_time_for(database, monkeypatch):
    names = searched(database, MOST + 5)
    few = Model(monkeypatch, database, {names[0]: 900.0})
    few.verification.run([KERNEL], 0.0)
    assert few.compared == [[DRAFTED, *names[:AT_ONCE]], [DRAFTED, names[0]]]


def test_there_are_never_more_than_some(database, monkeypatch):
    """And few of them at once: each has the weights of the model."""
    names = searched(database, MOST + 5)
    model = Model(monkeypatch, database, {names[0]: 900.0})
    model.verification.run([KERNEL], 60.0)
    *compared, last = model.compared
    assert [name for modules in compared for name in modules if name != DRAFTED] == names[:MOST]
    assert all(len(modules) <= 1 + AT_ONCE for modules in compared)
    assert last == [DRAFTED, names[0]]


def test_times_of_one_comparison_are_by_its_own_draft(database, monkeypatch):
    """The machine may be slower during another one."""
    names = searched(database, AT_ONCE + 1)
    fast = dict.fromkeys([DRAFTED, *names], 1000.0) | {names[0]: 950.0}
    slow = dict.fromkeys([DRAFTED, *names], 2000.0) | {names[AT_ONCE]: 1800.0}
    model = Model(monkeypatch, database, fast, slow)
    model.verification.run([KERNEL], 60.0)
    assert winner(database) == names[AT_ONCE]


def test_an_earlier_verdict_on_the_model_is_no_draft_now(database, monkeypatch):
    names = searched(database, 2)
    slower = model_record("model", TARGET, 1, label="m", time_ns=1200.0, reference_ns=1000.0)
    database.add(slower)
    model = Model(monkeypatch, database, {names[0]: 900.0})
    model.verification.run([KERNEL], 60.0)
    assert model.compared[0] == [DRAFTED, *names]
    assert winner(database) == names[0]


def test_points_that_know_fewer_decisions_can_be_withdrawn(database, monkeypatch):
    """Records that an older version wrote: they are found by what they mean."""
    names = searched(database, 2)
    (best,) = database.best(KERNEL.workload, target_key(TARGET), 1)
    ((block, (path, decisions)),) = best.points.items()
    assert decisions.pop("bias_in_panels") == 0
    old = replace(best, points={block: [path, decisions]}, time_ns=700.0)
    database.add(old)
    model = Model(monkeypatch, database, {names[1]: 900.0})
    model.verification.run([KERNEL], 60.0)
    assert winner(database) == names[1]


def test_what_is_measured_behind_a_withdrawal_may_be_used(database, monkeypatch):
    searched(database, 3)
    model = Model(monkeypatch, database, {})
    model.verification.run([KERNEL], 60.0)
    assert winner(database) is None
    fresh = points(4)[3]
    workload = KERNEL.kernel.workload(TARGET)
    database.add(Record.of(workload, 1, fresh, time_ns=900.0, reference_ns=1000.0))
    assert winner(database) == name_of(fresh)


def test_a_search_goes_on_behind_withdrawals(database, monkeypatch):
    """Points that were withdrawn are not tried again, and neither its best nor its failures."""
    searched(database, 5)
    model = Model(monkeypatch, database, {})
    model.verification.run([KERNEL], 60.0)
    history = History.of(database, target_key(TARGET), 1)
    tuner = KernelTuner(
        Task((KERNEL,), "product"), SearchOptions(), history, np.random.default_rng(0)
    )
    assert (tuner.costs, tuner.failures, tuner.is_done) == ([], 0, False)
    assert len(tuner.lessons) == 5
    tried = {name_of(each) for each in points(5)}
    assert tried.isdisjoint(name_of(KERNEL.space.points(row)) for row in tuner.propose(64))


def test_without_candidates_nothing_runs(database, monkeypatch):
    model = Model(monkeypatch, database, {})
    model.verification.run([KERNEL], 60.0)
    assert model.compared == []
