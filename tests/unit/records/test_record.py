"""A record is what it says, and knows when it is not."""

from __future__ import annotations

import json
from dataclasses import fields, replace

import pytest

from tests.trials import HOST, PRODUCT, other_points, trial
from tilewright.records import Record, RecordError, target_key, workload_key
from tilewright.records.record import FORMAT, OtherFormatError, checksum_of, text_of
from tilewright.schedule.source import Workload
from tilewright.target import Target
from tilewright.tensor import library
from tilewright.tensor.parser import parse


def renamed_product() -> Workload:
    """The same product with other names for everything."""
    text = str(PRODUCT.program)
    for old, new in (("A", "left"), ("B", "right"), ("C", "result"), ("matmul", "other")):
        for around in ("{}[", "{}:", "{}(", '"{}"', " {} ", "{},", "{})"):
            text = text.replace(around.format(old), around.format(new))
    return Workload(parse(text), HOST, 1, frozenset({"right"}))


def test_text_comes_back():
    record = Record.of(PRODUCT, 2, {"C": other_points(PRODUCT)[0]}, time_ns=5, reference_ns=6)
    assert Record.from_text(record.text, record.checksum) == record
    assert Record.from_text(record.text, record.checksum).checksum == record.checksum


def test_every_field_is_under_the_checksum():
    record = trial()
    for own in fields(record):
        value = getattr(record, own.name)
        special = {"blocks": ("x",), "points": {}, "about": {"recipe": "x"}}
        other = value + 1 if isinstance(value, int | float) else "x"
        changed = replace(record, **{own.name: special.get(own.name, other)})
        assert changed.checksum != record.checksum, own.name


def test_damaged_text_is_refused():
    record = trial()
    for place in range(0, len(record.text), 7):
        damaged = f"{record.text[:place]}~{record.text[place + 1 :]}"
        with pytest.raises(RecordError, match="checksum"):
            Record.from_text(damaged, record.checksum)


@pytest.mark.parametrize(
    "change",
    [
        {"time_ns": -1.0},
        {"time_ns": 0.0},
        {"time_ns": "fast"},
        {"time_ns": 7},  # not as it would be written
        {"threads": 0},
        {"threads": 2.5},
        {"label": None},
        {"points": [1]},
        {"blocks": "C"},
        {"outcome": ""},
        {"more": 1},
    ],
    ids=str,
)
def test_text_with_a_checksum_and_no_sense_is_refused(change):
    text = text_of({**json.loads(trial().text), **change})
    with pytest.raises(RecordError):
        Record.from_text(text, checksum_of(text))


@pytest.mark.parametrize("text", ["", "[]", "3", "{}", "[" * 100_000, '{"format":1}'])
def test_other_text_is_refused(text):
    with pytest.raises(RecordError):
        Record.from_text(text, checksum_of(text))


def test_other_formats_are_told_apart_from_damage():
    text = text_of({**json.loads(trial().text), "format": FORMAT + 1, "more": []})
    with pytest.raises(OtherFormatError):
        Record.from_text(text, checksum_of(text))


def test_gain_is_that_over_the_draft_of_the_same_turns():
    assert trial(time_ns=1000.0, reference_ns=1500.0).gain == 1.5
    assert trial(time_ns=1000.0, reference_ns=1500.0).pays
    assert not trial(time_ns=1500.0, reference_ns=1500.0).pays
    failure = trial(outcome="crash", time_ns=0.0, reference_ns=0.0)
    assert (failure.gain, failure.ratio, failure.pays) == (0.0, None, False)


def test_names_do_not_matter_to_keys_and_points():
    other = renamed_product()
    assert [p.name for p in other.program.params] == ["left", "right", "result"]
    assert workload_key(other) == workload_key(PRODUCT)
    (point,) = other_points(PRODUCT)
    record = Record.of(PRODUCT, 1, {"C": point}, time_ns=1, reference_ns=2)
    assert record.points_for(other.program) == {"result": point}


def test_keys_tell_workloads_apart():
    product = PRODUCT
    others = [
        replace(product, program=library.matmul(96, 128, 63)),
        replace(product, constants=frozenset()),
        replace(product, threads=8),
    ]
    assert len({workload_key(w) for w in (product, *others)}) == 4
    assert workload_key(replace(product, target=Target.named("aarch64"))) == workload_key(product)


def test_targets_are_told_apart_by_what_code_depends_on():
    assert len({target_key(Target.named(n)) for n in ("x86-64-v2", "x86-64-v3", "aarch64")}) == 3
    assert target_key(replace(HOST, cores=HOST.cores + 1)) == target_key(HOST)
    assert target_key(replace(HOST, frequency_ghz=9.0, name="other")) == target_key(HOST)
    assert target_key(HOST).startswith(f"{HOST.cpu}-")


def test_points_of_no_recipe_are_unreadable():
    assert trial().is_readable()
    assert not trial(points={"C": ["nowhere.Point", {}]}).is_readable()
    assert not trial(points={}).is_readable()
    assert trial(points={}, trace="{}").is_readable()
