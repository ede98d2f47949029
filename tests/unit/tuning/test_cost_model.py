"""Learned cost models: order, repeatability, transfer, files. Without LightGBM: the analytic."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest

from tests.expect import raises_code
from tilewright.tuning.cost_model.boosted import Boosted, Settings, make_model
from tilewright.tuning.cost_model.files import load, save
from tilewright.tuning.cost_model.joined import Joined, discount
from tilewright.tuning.cost_model.metrics import spearman
from tilewright.tuning.cost_model.model import Analytic, Samples
from tilewright.tuning.features.scaling import Features

NAMES = ("cycles_by_draft", "a", "b", "c")
COLUMNS = ("cycles_by_draft", "a", "b")


@pytest.fixture
def learns():
    pytest.importorskip("lightgbm")


def _task(seed: int, count: int = 120, names: tuple[str, ...] = NAMES) -> Samples:
    """A cost that the analytic column tells half of, and `a` and `b` the rest."""
    rows = np.random.default_rng(seed).uniform(-1, 1, (count, len(names)))
    costs = np.exp2(rows[:, 0] + 2 * (rows[:, 1] > 0) + rows[:, 2] ** 2)
    return Samples(Features(names, rows), costs * (seed + 1))


def _order(model, samples: Samples) -> float:
    return spearman(model.predict(samples.features), -samples.costs)


@pytest.mark.parametrize("objective", ["rank", "regression"])
@pytest.mark.usefixtures("learns")
def test_learns_what_the_analytic_order_lacks(objective):
    seen, rest = _task(0), _task(1)
    model = Boosted(Settings(objective=objective))
    model.fit([seen])
    assert _order(Analytic(), rest) < 0.6
    assert _order(model, rest) > 0.9


@pytest.mark.parametrize("objective", ["rank", "regression"])
@pytest.mark.usefixtures("learns")
def test_same_seed_is_the_same_model_on_any_number_of_threads(objective):
    scores = []
    for threads in (1, 2, 1):
        model = Boosted(Settings(objective=objective, seed=7, threads=threads))
        model.fit([_task(0), _task(1)])
        scores.append(model.predict(_task(2).features))
    assert np.array_equal(scores[0], scores[1])
    assert np.array_equal(scores[0], scores[2])


@pytest.mark.usefixtures("learns")
def test_tasks_are_ranked_each_for_itself():
    """Times of tasks differ by a factor of a thousand, which ranking never sees."""
    slow = _task(1)
    model = Boosted()
    model.fit([_task(0), Samples(slow.features, slow.costs * 1000)])
    assert _order(model, _task(2)) > 0.9


@pytest.mark.parametrize("objective", ["rank", "regression"])
@pytest.mark.usefixtures("learns")
def test_what_failed_is_slowest(objective):
    task = _task(0)
    failed = task.features.rows[:, 3] > 0.5
    costs = np.where(failed, np.inf, task.costs)
    model = Boosted(Settings(objective=objective))
    model.fit([Samples(task.features, costs)])
    scores = model.predict(task.features)
    assert np.median(scores[failed]) < np.median(scores[~failed])


def test_too_few_samples_leave_the_analytic_order():
    few = _task(0, 4)
    for samples in ([], [few], [Samples(few.features, np.full(4, np.inf))]):
        model = Boosted()
        model.fit(samples)
        assert np.array_equal(model.predict(few.features), Analytic().predict(few.features))


def test_features_without_a_prediction_have_no_analytic_order():
    rows = Features(("a",), np.ones((3, 1)))
    assert not Analytic().predict(rows).any()


@pytest.mark.usefixtures("learns")
def test_missing_values_are_values():
    task = _task(0)
    rows = task.features.rows.copy()
    rows[::3, 2] = np.nan
    model = Boosted()
    model.fit([Samples(Features(NAMES, rows), task.costs)])
    assert np.isfinite(model.predict(Features(NAMES, rows))).all()


@pytest.mark.usefixtures("learns")
def test_a_kind_that_was_never_measured_keeps_its_analytic_order():
    model = Boosted()
    model.fit([_task(0)])
    rows = _task(1).features.rows.copy()
    rows[:60, 2] = np.nan
    other = Features(NAMES, rows)
    scores, analytic = model.predict(other), Analytic().predict(other)
    assert np.array_equal(scores[:60], analytic[:60])
    assert (scores[60:] != analytic[60:]).all()


@pytest.mark.usefixtures("learns")
def test_columns_are_found_by_name():
    model = Boosted()
    model.fit([_task(0)])
    other = _task(1).features
    turned = other.only(NAMES[::-1])
    assert np.array_equal(model.predict(other), model.predict(turned))


@pytest.mark.usefixtures("learns")
def test_trees_look_at_a_set_of_columns(tmp_path):
    known, rest = _task(0, names=(*NAMES[:3], "packs")), _task(1, names=(*NAMES[:3], "packs"))
    orders = {}
    for columns in ("all", "decisions", "shared"):
        model = Boosted(Settings(columns=columns))
        model.fit([known])
        save(model, tmp_path / columns)
        assert load(tmp_path / columns).settings.columns == columns
        orders[columns] = model.names, _order(model, rest)
    assert orders["all"][0] == known.features.names
    assert orders["decisions"][0] == ("cycles_by_draft", "a", "b")
    assert orders["shared"][0] == ("cycles_by_draft", "packs")
    assert orders["decisions"][1] > 0.9
    assert orders["shared"][1] < 0.7


@pytest.mark.usefixtures("learns")
def test_history_orders_a_fresh_task():
    model = Joined.of([_task(k) for k in range(3)], Settings(), COLUMNS)
    fresh = _task(9)
    assert _order(model, fresh) > 0.9
    few = Samples(Features(NAMES, fresh.features.rows[:16]), fresh.costs[:16])
    model.fit([few])
    assert model.samples == 16
    assert _order(model, fresh) > 0.9


@pytest.mark.usefixtures("learns")
def test_history_of_other_columns_helps_by_the_shared_ones():
    other = _task(0, names=("cycles_by_draft", "a", "b", "of another recipe"))
    model = Joined.of([other], Settings(), COLUMNS)
    assert _order(model, _task(9)) > 0.9


@pytest.mark.usefixtures("learns")
def test_a_task_outgrows_a_misleading_history():
    """Where the history says the opposite, many samples of the task itself win."""
    wrong = _task(0)
    model = Joined.of([Samples(wrong.features, 1 / wrong.costs)], Settings(), COLUMNS)
    task, rest = _task(5, 400), _task(6)
    assert _order(model, rest) < 0
    model.fit([task])
    assert _order(model, rest) > 0.9


@pytest.mark.usefixtures("learns")
def test_a_history_that_orders_the_first_samples_wrongly_is_not_asked():
    wrong = _task(0)
    model = Joined.of([Samples(wrong.features, 1 / wrong.costs)], Settings(), COLUMNS)
    few = _task(5, 12)
    costs = few.costs.copy()
    costs[0] = np.inf  # a failure is the slowest
    model.fit([Samples(few.features, costs)])
    assert not model.is_of_use
    assert np.array_equal(model.predict(few.features), model.own.predict(few.features))
    right = Joined.of([_task(k) for k in range(3)], Settings(), COLUMNS)
    right.fit([few])
    assert right.is_of_use


def test_discount_halves_and_ends():
    assert discount(0) == 1
    assert discount(64) == 0.5
    assert discount(276) > 0
    assert discount(277) == 0


@pytest.mark.usefixtures("learns")
def test_models_are_json(tmp_path):
    path = tmp_path / "model.json"
    joined = Joined.of([_task(0), _task(1)], Settings(), COLUMNS)
    joined.fit([_task(2)])
    for model in (joined.shared, joined):
        save(model, path)
        assert json.loads(path.read_text())["format"] == "tilewright-cost-model-1"
        features = _task(3).features
        rows = features if model is joined else features.only(COLUMNS)
        assert np.array_equal(load(path).predict(rows), model.predict(rows))


@pytest.mark.parametrize(
    "change", [lambda t: t[: len(t) // 2], lambda t: t.replace("rank", "rnak")]
)
def test_damaged_files_are_refused(tmp_path, change):
    path = tmp_path / "model.json"
    save(Boosted(), path)
    path.write_text(change(path.read_text()))
    with raises_code("U011"):
        load(path)
    with raises_code("U011"):
        load(tmp_path / "missing.json")


def test_without_lightgbm_there_is_the_analytic_order(monkeypatch):
    monkeypatch.setitem(sys.modules, "lightgbm", None)
    assert isinstance(make_model(), Analytic)
    with raises_code("U010"):
        Boosted().fit([_task(0)])


@pytest.mark.usefixtures("learns")
def test_with_lightgbm_there_is_a_model_that_learns():
    assert isinstance(make_model(), Boosted)


@pytest.mark.parametrize("costs", [[1.0, 2.0], [1.0, 2.0, 0.0], [1.0, 2.0, -1.0], [1, 2, np.nan]])
def test_samples_have_a_positive_cost_each(costs):
    with pytest.raises(ValueError, match="cost"):
        Samples(Features(("a",), np.ones((3, 1))), np.array(costs))
