"""Tuning a model: stages, what is kept, and that its results stay what they are."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from hashlib import blake2b

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import tilewright as tw
from tests.expect import raises_code
from tilewright.records import Database
from tilewright.records.record import OK
from tilewright.schedule.measured import KERNEL, MODEL, SITE, kind_of_key
from tilewright.schedule.points import data_of
from tilewright.tuning import model_tuner, whole_model
from tilewright.tuning.measure.trial import CRASH, Outcome


def network(channels=8, side=12, windows=(3, 3)):
    """Convolutions in a row, with their weights."""
    rng = np.random.default_rng(0)
    weights = {
        f"w{taps}": rng.normal(size=(channels, channels, taps, taps)).astype(np.float32) / 8
        for taps in windows
    }
    chain, name = [], "x"
    for number, taps in enumerate(windows):
        pads = {"pads": [taps // 2] * 4}
        chain.append(helper.make_node("Conv", [name, f"w{taps}"], [f"c{number}"], **pads))
        chain.append(helper.make_node("Relu", [f"c{number}"], [f"r{number}"]))
        name = f"r{number}"
    chain += [helper.make_node("Softmax", [name], ["y"], axis=-1)]
    shape = [1, channels, side, side]
    ends = [helper.make_tensor_value_info(n, TensorProto.FLOAT, shape) for n in "xy"]
    graph = helper.make_graph(
        chain,
        "network",
        ends[:1],
        ends[1:],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    opset = [helper.make_opsetid("", 17)]
    return helper.make_model(graph, opset_imports=opset, ir_version=8)


@dataclass
class MadeUp:
    """A runner that makes up times by the text of a point: every seventh one crashes."""

    interrupt_after: int | None = None
    asked: list[str] = field(default_factory=list)

    def run(self, trials):
        for trial in trials:
            text = f"{trial.job.task.key} {[data_of(p) for p in trial.points.values()]}"
            self.asked.append(text)
            if self.interrupt_after is not None and len(self.asked) > self.interrupt_after:
                raise KeyboardInterrupt
            number = blake2b(text.encode(), digest_size=2).digest()[0]
            if number % 7 == 0 and trial.points:
                yield trial, Outcome(CRASH, detail="illegal instruction (SIGILL)")
            else:
                yield trial, Outcome(OK, 500.0 + 4 * number, 1000.0)

    def close(self):
        pass


@pytest.fixture(autouse=True)
def _quickly(monkeypatch):
    """Nothing here depends on how long models really take."""
    monkeypatch.setattr(whole_model, "ROUNDS", 2)
    monkeypatch.setattr(whole_model, "TURN_SECONDS", 0.001)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "records.sqlite"


def kinds(path):
    with Database(path) as database:
        return [kind_of_key(record.workload) for record in database]


@pytest.mark.parametrize("joint", [False, True])
def test_trials_are_spent_recorded_and_results_stay(path, joint):
    model, events = network(), []
    report = tw.tune(
        model, trials=24, database=path, threads=1, runner=MadeUp(), joint=joint,
        on_event=events.append,
    )  # fmt: skip
    state = report.state
    assert (state.trials, state.trials_left, report.is_interrupted) == (24, 0, False)
    assert kinds(path).count(KERNEL) >= 24
    assert kinds(path).count(MODEL) == 1
    assert state.before_ms > 0
    assert state.now_ms > 0
    assert events[0].kind == "begin"
    assert events[-1].kind == "end"
    assert sum(t.share for t in state.tasks) == pytest.approx(1)
    x = np.random.default_rng(1).normal(size=(1, 8, 12, 12)).astype(np.float32)
    drafted = tw.compile(model, database=False, cache=False).run({"x": x})[0]
    tuned = tw.compile(model, database=path, threads=1, cache=False).run({"x": x})[0]
    np.testing.assert_allclose(tuned, drafted, rtol=1e-4, atol=1e-5)


@dataclass
class LikesTiles(MadeUp):
    """Kernels whose data lie in tiles take a tenth of the time of others."""

    def run(self, trials):
        for trial, outcome in super().run(trials):
            is_cut = len(trial.job.task.params[0].layout) > 2
            times = {"time_ns": outcome.time_ns / 10, "reference_ns": outcome.reference_ns / 10}
            yield trial, replace(outcome, **times) if is_cut else outcome


def test_layouts_are_searched_in_rounds_and_what_they_take_is_kept(path, monkeypatch):
    """If the model is faster for it: here it always is."""
    monkeypatch.setattr(model_tuner, "compared", lambda *_: whole_model.Compared(2.0, 1.0))
    model, events = network(16, 8), []
    tw.tune(
        model, trials=240, database=path, threads=1, runner=LikesTiles(), strategy="random",
        on_event=events.append,
    )  # fmt: skip
    stages = [(e.state.stage, e.state.tasks) for e in events if e.kind == "stage"]
    named = [stage for stage, _ in stages]
    assert named[0] == "layouts, round 1 of 3"
    assert {"layouts, round 2 of 3", "loops", "whole model"} <= set(named)
    (convolution,) = stages[0][1]
    assert convolution.space > 10**9, "algorithms × layouts × loops"
    assert {SITE, KERNEL, MODEL} <= set(kinds(path))
    with Database(path) as database:
        sites = [r.label for r in database if kind_of_key(r.workload) == SITE]
    assert any("/" in label for label in sites), "layouts that the untuned choice does not know"
    x = np.random.default_rng(1).normal(size=(1, 16, 8, 8)).astype(np.float32)
    drafted = tw.compile(model, database=False, cache=False).run({"x": x})[0]
    tuned = tw.compile(model, database=path, threads=1, cache=False).run({"x": x})[0]
    np.testing.assert_allclose(tuned, drafted, rtol=1e-3, atol=1e-5)


def test_a_second_search_goes_on_where_the_first_ended(path):
    first, second = MadeUp(), MadeUp()
    for runner in (first, second):
        tw.tune(network(), trials=12, database=path, threads=1, runner=runner, joint=False)
    assert not set(first.asked) & set(second.asked)
    assert len({*first.asked, *second.asked}) == 24


def test_an_interrupt_keeps_everything_and_says_so(path):
    runner = MadeUp(interrupt_after=10)
    report = tw.tune(network(), trials=50, database=path, threads=1, runner=runner, joint=False)
    assert report.is_interrupted
    asked = len(set(runner.asked[:10]))
    assert report.state.trials == asked
    assert kinds(path).count(KERNEL) >= asked
    assert report.state.now_ms is not None


def test_what_has_no_choice_is_refused(path):
    ends = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [4, 4]) for n in "xy"]
    graph = helper.make_graph(
        [helper.make_node("Identity", ["x"], ["y"])], "one", ends[:1], ends[1:]
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    with raises_code("U020"):
        tw.tune(model, trials=1, database=path, runner=MadeUp())


def test_budgets_that_cannot_be_spent_are_refused(path):
    for budget in ({"trials": 0}, {"budget_s": 0.0}, {"budget_s": float("nan")}):
        with raises_code("U021"):
            tw.tune(network(), database=path, runner=MadeUp(), **budget)


def test_a_tensor_program_is_tuned_by_real_trials(path):
    from tilewright.records import Records
    from tilewright.target import Target
    from tilewright.tensor import library

    product = library.matmul(32, 48, 64)
    report = tw.tune(product, trials=6, database=path, threads=1, constants=["B"])
    assert report.state.trials == 6
    (task,) = report.state.tasks
    assert task.trials == 6
    with Database(path) as database:
        records = list(database)
        assert len(records) == 6
        assert all(r.time_ns > 0 for r in records if r.is_ok)
        kernel = tw.build(product, trace=Records(database, Target.host(), 1))
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(32, 64)), rng.normal(size=(64, 48))
    a, b, c = a.astype(np.float32), b.astype(np.float32), np.zeros((32, 48), np.float32)
    kernel(a, b, c)
    np.testing.assert_allclose(c, a @ b, rtol=1e-4, atol=1e-4)
