"""Records as a source of schedules: the best one, or the draft."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.trials import HOST, PRODUCT, other_points, trial
from tilewright.records import Database, Record, Records
from tilewright.schedule.source import DRAFT, Points, ScheduleSource, Workload, points_from
from tilewright.schedule.trace import Trace
from tilewright.tensor import library

BEST, SECOND = other_points(PRODUCT, 2)


@pytest.fixture
def database(tmp_path):
    with Database(tmp_path / "records.sqlite") as opened:
        yield opened


def measured(point=BEST, time_ns=80.0, **facts):
    return Record.of(PRODUCT, 2, {"C": point}, time_ns=time_ns, reference_ns=100.0, **facts)


def records(database, *found, threads=2):
    database.add(found)
    return Records(database, HOST, threads)


def is_drafted(source, remark=""):
    made, drafted = source.schedule(PRODUCT), DRAFT.schedule(PRODUCT)
    assert made.trace == drafted.trace
    assert len(made.remarks) == len(drafted.remarks) + bool(remark)
    assert remark in "".join(made.remarks[len(drafted.remarks) :])


def test_a_workload_gets_the_points_of_its_best_record(database):
    source = records(database, measured(SECOND, 90.0), measured())
    assert isinstance(source, ScheduleSource)
    made = source.schedule(PRODUCT)
    assert [d.point for d in made.decisions if d.blocks[0] == "C"] == [BEST]
    assert made.trace == Points({"C": BEST}).schedule(PRODUCT).trace
    assert made.trace != DRAFT.schedule(PRODUCT).trace
    assert points_from(source, PRODUCT) == {"C": BEST}


def test_digests_are_those_of_records(database):
    none = records(database)
    assert (none.digest, none.digest_of(PRODUCT)) == ("", "")
    second = records(database, measured(SECOND, 90.0))
    best = records(database, measured())
    assert (
        second.digest_of(PRODUCT)
        == measured(SECOND, 90.0, when=second.record_of(PRODUCT).when).checksum
    )
    assert len({none.digest, second.digest, best.digest}) == 3
    assert best.digest_of(replace(PRODUCT, threads=4)) == ""
    slower = records(database, measured(SECOND, 95.0))
    assert slower.digest == best.digest, "trials that win nothing change no key"


def test_what_others_write_later_does_not_matter(database):
    source = records(database, measured(SECOND, 90.0))
    digest = source.digest
    database.add(measured())
    assert source.digest == digest
    assert points_from(source, PRODUCT) == {"C": SECOND}


@pytest.mark.parametrize("time_ns", [100.0, 130.0])
def test_what_is_not_faster_than_the_draft_is_not_used(database, time_ns):
    is_drafted(records(database, measured(time_ns=time_ns)))


def test_other_threads_and_targets_are_not_used(database):
    is_drafted(records(database, measured(), threads=1))
    database.remove(row.number for row in database.rows())
    is_drafted(records(database, replace(measured(), target="other-0")))


def test_other_workloads_are_drafted(database):
    source = records(database, measured())
    other = Workload(library.softmax(8, 64), HOST)
    assert source.schedule(other).trace == DRAFT.schedule(other).trace
    assert points_from(source, other) == {}
    assert source.digest_of(other) == ""


@pytest.mark.parametrize(
    ("points", "remark"),
    [
        ({"C": replace(BEST, tile_rows=0)}, "cannot be followed (ZeroDivisionError)"),
        ({"C": replace(BEST, tile_rows=-3)}, "cannot be followed (ValueError)"),
        ({"D": BEST}, "no group of blocks takes its points"),
    ],
    ids=["zero", "negative", "block"],
)
def test_points_that_cannot_be_followed_are_a_miss_with_a_remark(database, points, remark):
    bogus = Record.of(PRODUCT, 2, points, time_ns=1.0, reference_ns=100.0)
    source = records(database, bogus, measured())
    is_drafted(source, remark)
    assert points_from(source, PRODUCT) is None, "so that the remark is made where it is read"


def test_points_of_another_recipe_are_a_miss(database):
    odd = replace(trial(0), workload=measured().workload, target=measured().target)
    odd = replace(odd, blocks=("C",))
    is_drafted(records(database, odd), "no group of blocks takes its points")


def test_blocks_that_are_left_unscheduled_are_a_miss(database, monkeypatch):
    source, plain = records(database, measured()), DRAFT.schedule

    def left_alone(workload):
        made = plain(workload)
        if workload.points:
            made.remarks.append("C: not scheduled (S001)")
        return made

    monkeypatch.setattr(type(DRAFT), "schedule", lambda _, workload: left_alone(workload))
    is_drafted(source, "it leaves blocks unscheduled")


def test_a_trace_is_followed_where_it_fits(database):
    trace = Points({"C": BEST}).schedule(PRODUCT).trace
    by_trace = replace(measured(), points={}, trace=trace.to_json())
    source = records(database, by_trace)
    assert source.schedule(PRODUCT).trace == trace
    assert points_from(source, PRODUCT) is None


@pytest.mark.parametrize(
    ("trace", "remark"),
    [("nonsense", "(S004)"), (Trace().to_json().replace("[]", "[1]"), "(S004)")],
)
def test_a_trace_that_does_not_fit_is_a_miss(database, trace, remark):
    is_drafted(records(database, replace(measured(), points={}, trace=trace)), remark)
