"""What was measured of sites and whole models changes how a model is compiled."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tests import feature_maps
from tests.background import wait_for_writers
from tilewright.calibration import with_machine_model
from tilewright.graph.structure import graph_key
from tilewright.layouts.sites import sites_of
from tilewright.model.compilation import Chosen
from tilewright.model.compile_arguments import schedules_of
from tilewright.model.compiler import Compiling
from tilewright.pipeline import ModelPipeline
from tilewright.records import Database, Records, conversion_record, model_record, site_record
from tilewright.schedule.source import DRAFT
from tilewright.target import Target

TARGET = with_machine_model(Target.host())


@pytest.fixture
def database(tmp_path):
    with Database(tmp_path / "records.sqlite") as opened:
        yield opened


def chosen(source=DRAFT) -> Chosen:
    how = Compiling(TARGET, 1, "default", "auto", schedules=source)
    made = ModelPipeline(how).run(feature_maps.network(), until="choose").value
    assert isinstance(made, Chosen)
    return made


def slowest_fast(drafted: Chosen):
    """A record that says that the slowest alternative of a convolution is very fast."""
    site = next(s for s in sites_of(drafted.graph, drafted.settings) if s.conv is not None)
    (own,) = [a for s, a in drafted.choice.sites if s.nodes == site.nodes]
    slowest = max((a for a in site.alternatives if not a.result.halo), key=lambda a: a.cycles)
    times = {"time_ns": 1.0, "reference_ns": 1e6, "label": "first"}
    record = site_record(site.workload, slowest.key(4), own.key(4), TARGET, 1, **times)
    return site, slowest, record


def test_a_record_of_a_site_changes_the_choice(database):
    drafted = chosen()
    site, slowest, record = slowest_fast(drafted)
    database.add(record)
    made = chosen(Records(database, TARGET, 1))
    (taken,) = [a for s, a in made.choice.sites if s.workload == site.workload]
    (before,) = [a for s, a in drafted.choice.sites if s.workload == site.workload]
    assert taken.algorithm == slowest.algorithm
    assert taken.algorithm != before.algorithm


def test_results_stay_and_the_cache_knows(database, tmp_path, monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_CACHE", str(tmp_path / "cache"))
    feeds = feature_maps.picture()
    model = feature_maps.network()
    told: list[str] = []

    def run():
        told.clear()
        module = tw.compile(
            model, threads=1, database=database.path, progress=lambda p: told.append(p.stage)
        )
        wait_for_writers()
        return module.run(feeds)[0]

    database.add(conversion_record("f32[1]", "nhwc", "nchw", TARGET, 1, time_ns=1.0))
    wanted = run()
    assert "choose" in told
    run()
    assert "choose" not in told
    database.add(slowest_fast(chosen())[2])
    np.testing.assert_allclose(run(), wanted, rtol=1e-3, atol=1e-4)
    assert "choose" in told


def test_a_model_that_was_slower_is_drafted(database):
    drafted = chosen()
    _, _, record = slowest_fast(drafted)
    key = graph_key(drafted.graph)
    times = {"time_ns": 120.0, "reference_ns": 100.0}
    database.add([record, model_record(key, TARGET, 1, **times)])
    made = chosen(Records(database, TARGET, 1))
    assert str(made) == str(drafted)
    database.add(model_record(key, TARGET, 1, time_ns=90.0, reference_ns=100.0))
    assert str(chosen(Records(database, TARGET, 1))) != str(drafted)


def test_records_of_sites_alone_are_used(database):
    assert schedules_of(database, TARGET, 1) is DRAFT
    database.add(model_record("abc", TARGET, 1, time_ns=120.0, reference_ns=100.0))
    assert schedules_of(database, TARGET, 1) is DRAFT
    database.add(slowest_fast(chosen())[2])
    assert isinstance(schedules_of(database, TARGET, 1), Records)


def test_the_key_of_a_graph_is_its_structure():
    first, again, wider = (feature_maps.graph(batch) for batch in (1, 1, 2))
    assert graph_key(first) == graph_key(again) != graph_key(wider)
