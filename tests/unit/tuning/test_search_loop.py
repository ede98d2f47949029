"""The loop of a search, with a runner that makes up times: records, budgets, faults, resuming."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from types import SimpleNamespace

import numpy as np
import pytest

from tests.unit.tuning.nests import AVX2
from tilewright.records import Database, Records
from tilewright.schedule.points import data_of
from tilewright.tensor import library
from tilewright.tuning.budget import Budget
from tilewright.tuning.history import History
from tilewright.tuning.kernel_tuner import KernelTuner, SearchOptions
from tilewright.tuning.measure.trial import CRASH, OK, Outcome
from tilewright.tuning.stopping import Patience
from tilewright.tuning.task import task_of_func
from tilewright.tuning.tuner import Search

TASKS = [
    task_of_func(library.matmul(96, 128, 64), AVX2, ["B"]),
    task_of_func(library.softmax(64, 96), AVX2),
]


@dataclass
class MadeUp:
    """A runner whose times follow the machine model, but for a bonus that only trials can tell."""

    failing: int = 0
    interrupt_after: int | None = None
    asked: list[str] = field(default_factory=list)
    closed: bool = False

    def run(self, trials):
        for trial in trials:
            text = str([data_of(p) for p in trial.points.values()])
            self.asked.append(text)
            if self.interrupt_after is not None and len(self.asked) > self.interrupt_after:
                raise KeyboardInterrupt
            yield trial, self._outcome(trial, text)

    def _outcome(self, trial, text) -> Outcome:
        digest = sum(map(ord, text))
        if self.failing and digest % self.failing == 0:
            return Outcome(CRASH, detail="illegal instruction (SIGILL)")
        (task,) = (t for t in TASKS if t.drafted.kernel is trial.job.task)
        row = task.drafted.space.digits_of(trial.points)
        drafted = task.space.cycles(task.space.drafts()[0][None])[0]
        ratio = task.space.cycles(row[None])[0] / drafted * (0.7 + digest % 7 / 10)
        return Outcome(OK, 1000.0 * ratio, 1000.0, 0.01, build_s=0.01, measure_s=0.02)

    def close(self) -> None:
        self.closed = True


def search(database, runner, tasks=TASKS, trials=60, seed=0, events=None, **options):
    how = SearchOptions(batch=8, **options)
    heard = None if events is None else events.append
    return Search("m", tasks, database, runner, 1, how, Budget(trials), seed, on_event=heard)


@pytest.fixture
def database(tmp_path):
    with Database(tmp_path / "records.sqlite") as opened:
        yield opened


def test_every_trial_is_a_record_and_told_of(database):
    events, runner = [], MadeUp(failing=5)
    found = search(database, runner, events=events)
    found.run()
    records = list(database)
    assert len(records) == len(set(runner.asked)) == 60
    failures = [r for r in records if r.outcome == CRASH]
    assert failures
    assert all("SIGILL" in r.detail for r in failures)
    assert [e.kind for e in events] == ["trial"] * 60
    last = events[-1].state
    assert (last.trials, last.trials_left, last.failures) == (60, 0, len(failures))
    assert sum(t.trials for t in last.tasks) == 60
    assert {r.label for r in records} == {t.task.label for t in found.tuned}


def test_nothing_is_tried_twice_also_by_a_later_search(database):
    first, second = MadeUp(failing=4), MadeUp(failing=4)
    search(database, first).run()
    again = search(database, second, seed=1)
    assert sum(len(t.tuner.costs) for t in again.tuned) == 60
    again.run()
    assert not set(first.asked) & set(second.asked)
    assert len({*first.asked, *second.asked}) == 120


def test_the_best_is_what_a_compile_uses(database):
    found = search(database, MadeUp())
    found.run()
    product = found.tuned[0]
    workload = product.task.drafted.kernel.workload(AVX2)
    record = Records(database, AVX2, 1).record_of(workload)
    assert record is not None
    assert record.ratio == pytest.approx(product.tuner.best)
    assert record.ratio < 1
    assert record.points_for(workload.program) == product.task.drafted.space.points(
        product.tuner.best_row
    )


def test_an_interrupt_loses_nothing(database):
    runner = MadeUp(interrupt_after=20)
    with pytest.raises(KeyboardInterrupt):
        search(database, runner).run()
    assert len(list(database)) == len(set(runner.asked[:20]))


@dataclass
class Lucky(MadeUp):
    """A runner that is disturbed: the first look at each point makes it seem twice as fast."""

    looked: set[str] = field(default_factory=set)

    def _outcome(self, trial, text) -> Outcome:
        found = super()._outcome(trial, text)
        if text in self.looked or not found.is_ok:
            return found
        self.looked.add(text)
        return replace(found, time_ns=found.time_ns / 2)


def test_what_is_too_good_is_measured_again(database):
    found = search(database, Lucky(), TASKS[:1], trials=40)
    found.run()
    honest = MadeUp()
    for record in database:
        points = record.points_for(TASKS[0].drafted.kernel.program)
        text = str([data_of(p) for p in points.values()])
        trial = SimpleNamespace(job=found.tuned[0].jobs[0], points=points)
        true = honest._outcome(trial, text).ratio
        # Only what is no better than what is known already may be believed at once.
        assert (
            record.ratio == pytest.approx(true) or record.ratio >= 0.95 * found.tuned[0].tuner.best
        )
    assert not found._doubts
    assert not found._doubted


def test_all_tasks_have_a_turn(database):
    found = search(database, MadeUp(), trials=24)
    found.run()
    assert all(t.tuner.costs for t in found.tuned)


def test_a_space_is_exhausted_and_the_search_ends(database):
    task = task_of_func(_copy(), AVX2)
    runner = MadeUp()
    TASKS.append(task)
    try:
        search(database, runner, [task], trials=100_000, patience=None).run()
    finally:
        TASKS.remove(task)
    rows = [axes.rows for axes in task.drafted.space.axes]
    assert len(set(runner.asked)) == int(np.prod([len(r) for r in rows])) - 1  # without the draft


def _copy():
    import tilewright as tw

    a = tw.placeholder("A", (64, 96))
    return tw.func("copy", [a], [tw.compute("C", (96, 64), lambda i, j: a[j, i])])


def test_guided_search_is_better_than_random_in_as_many_trials(tmp_path):
    best = {"random": [], "evolution": []}
    for name, found in best.items():
        for seed in range(3):
            with Database(tmp_path / f"{name}{seed}") as own:
                made = search(own, MadeUp(), TASKS[:1], 64, seed, strategy=name)
                made.run()
                found.append(made.tuned[0].tuner.best)
    assert np.mean(best["evolution"]) < np.mean(best["random"])


def test_a_fresh_task_begins_with_its_relatives(database):
    search(database, MadeUp(), TASKS[:1], 48).run()
    other = task_of_func(library.matmul(64, 128, 96), AVX2, ["B"])
    known = History(database.records())
    seeds = known.seeds(other.drafted.workload, other.drafted.space)
    assert len(seeds)
    assert other.drafted.space.followed(seeds).all()
    tuner = KernelTuner(other, SearchOptions(batch=8), known, np.random.default_rng(0))
    first = {other.drafted.space.number(row) for row in tuner.propose(8)}
    drafted = other.drafted.space.number(other.drafted.space.drafts()[0])
    assert first & ({other.drafted.space.number(row) for row in seeds} - {drafted})


def test_records_of_other_features_teach_nothing_and_do_no_harm(database):
    search(database, MadeUp(), TASKS[:1], 24).run()
    records = [r.__class__(**{**_fields(r), "about": {"columns": "old"}}) for r in database]
    known = History(records)
    other = task_of_func(library.matmul(64, 128, 96), AVX2, ["B"])
    assert len(known.seeds(other.drafted.workload, other.drafted.space)) == 0
    assert len(known.trials(TASKS[0].drafted.workload)) == 24


def _fields(record):
    return {name: getattr(record, name) for name in record.__dataclass_fields__}


def test_with_time_left_tasks_go_on_as_long_as_it_pays(tmp_path):
    counts = {}
    for seconds in (None, 1000.0):
        with Database(tmp_path / f"{seconds}.sqlite") as own:
            made = search(own, MadeUp(), trials=100_000, patience=Patience(16))
            made.budget = made.whole = Budget(100_000, seconds)
            made.run()
            counts[seconds] = made.budget.spent.trials
            assert made.scheduler.next() is None
            assert all(t.tuner.is_done for t in made.tuned)
    assert counts[None] + 16 <= counts[1000.0] < 10_000
