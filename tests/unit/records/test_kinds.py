"""Records of sites, conversions and models: apart from those of kernels, and what they say."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from tests.trials import HOST, PRODUCT, other_points
from tilewright.cli import main
from tilewright.records import (
    Database,
    Record,
    Records,
    conversion_record,
    model_record,
    site_record,
    target_key,
)
from tilewright.records.kinds import site_times
from tilewright.schedule.measured import conversion_key, model_key, site_key
from tilewright.schedule.source import DRAFT

SITE = "conv(3, 3): f32[1, 8, 8, 16]"
DIRECT, TILED, LINES = "direct nhwc→nhwc", "F(4, 3) nhwc→nhwc", "lines nchw→nchw"


@pytest.fixture
def database(tmp_path):
    with Database(tmp_path / "records.sqlite") as opened:
        yield opened


def of_site(alternative=TILED, time_ns=80.0, reference_ns=100.0, reference=DIRECT, **facts):
    facts = {"time_ns": time_ns, "reference_ns": reference_ns, **facts}
    return site_record(SITE, alternative, reference, HOST, 2, **facts)


def of_model(time_ns, **facts):
    return model_record("abc", HOST, 2, time_ns=time_ns, reference_ns=100.0, **facts)


def of_kernel():
    (point,) = other_points(PRODUCT)
    return Record.of(PRODUCT, 2, {"C": point}, time_ns=80.0, reference_ns=100.0)


def test_they_are_none_of_kernels(database):
    moved = conversion_record("f32[1, 8, 8, 16]", "nhwc", "nchw", HOST, 2, time_ns=7.0)
    found = [of_site(), moved, of_model(90.0), of_kernel()]
    assert database.add(found) == 4
    assert [record.kind for record in database] == ["site", "conversion", "model", "kernel"]
    assert [*database.winners(target_key(HOST), 2).values()] == [found[-1]]


def test_times_are_in_proportion_to_the_reference(database):
    database.add([of_site(), of_site(LINES, 330.0, 300.0), of_site(TILED, 140.0, 200.0)])
    measured = Records(database, HOST, 2).measured
    (times,) = [measured.sites[site_key(SITE)]]
    assert (times.reference, times.reference_ns) == (DIRECT, 200.0)
    assert times.times_ns == pytest.approx({DIRECT: 200.0, TILED: 140.0, LINES: 220.0})


def test_the_last_reference_counts():
    """Others belong to the choice of another version."""
    (times,) = site_times([of_site(), of_site(DIRECT, 50.0, reference=TILED)]).values()
    assert times.reference == TILED
    assert times.times_ns == {TILED: 100.0, DIRECT: 50.0}


def test_conversions_take_what_was_measured(database):
    about = "f32[1, 8, 8, 16]", "nhwc", "nchw"
    database.add([conversion_record(*about, HOST, 2, time_ns=t) for t in (7.0, 30.0, 8.0)])
    measured = Records(database, HOST, 2).measured
    assert measured.conversions == {conversion_key(*about): 8.0}


@pytest.mark.parametrize("trace", ["", "[", "[]", "{}", '{"alternative":1,"reference":2}'])
def test_what_does_not_say_what_it_is_about_is_a_miss(database, trace):
    database.add(replace(of_site(), trace=trace))
    assert Records(database, HOST, 2).is_empty


def test_failures_and_other_machines_are_a_miss(database):
    database.add(replace(of_site(), outcome="crash", time_ns=0.0))
    database.add(replace(of_site(), target="other-0"))
    database.add(replace(of_site(), threads=1))
    assert Records(database, HOST, 2).is_empty


def test_damaged_ones_are_a_miss(database):
    database.add(of_site())
    (row,) = database.rows()
    database.remove([row.number])
    database.add_rows([replace(row, text=row.text.replace("F(4, 3)", "F(2, 3)"))])
    assert Records(database, HOST, 2).is_empty


def test_digests_know_them(database):
    digests = [Records(database, HOST, 2).digest]
    for record in (of_site(), of_site(LINES), of_model(130.0)):
        database.add(record)
        digests.append(Records(database, HOST, 2).digest)
    assert digests[0] == ""
    assert len(set(digests)) == 4


@pytest.mark.parametrize(("time_ns", "kept"), [(90.0, False), (100.9, False), (101.5, True)])
def test_a_model_that_is_slower_is_drafted(database, time_ns, kept):
    database.add([of_kernel(), of_model(50.0), of_model(time_ns)])
    source = Records(database, HOST, 2)
    found = source.for_model(model_key("abc"))
    assert (found is not source) is kept
    assert source.for_model(model_key("other")) is source
    made, drafted = found.schedule(PRODUCT), DRAFT.schedule(PRODUCT)
    assert (made.trace == drafted.trace) is kept
    if kept:
        (remark,) = set(made.remarks) - set(drafted.remarks)
        assert "with its records the model took 1.0" in remark
        assert found.digest_of(PRODUCT) == DRAFT.digest_of(PRODUCT)


def test_pruning_keeps_each_alternative_and_the_last_verdict(database):
    database.add([of_site(), of_site(LINES, 330.0), of_site(TILED, 95.0)])
    database.add([of_model(50.0), of_model(130.0)])
    assert database.prune(1) == 2
    assert {(record.kind, record.time_ns) for record in database} == {
        ("site", 80.0),
        ("site", 330.0),
        ("model", 130.0),
    }


def test_they_are_listed_by_what_they_are(database, capsys):
    database.add([of_site(label="layer 3"), of_model(90.0, label="resnet")])
    main(["db", "list", "--database", str(database.path), "--json"])
    labels = [row["label"] for row in json.loads(capsys.readouterr().out)]
    assert set(labels) == {"layer 3: F(4, 3) nhwc→nhwc", "resnet"}
    main(["db", "best", "layer 3", "--database", str(database.path)])
    assert "trace" not in capsys.readouterr().out
