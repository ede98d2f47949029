"""Lines of JSON and merging: everything arrives once, and nothing damaged does."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from tests.expect import raises_code
from tests.trials import trial
from tilewright.records import Database, RecordError
from tilewright.records.jsonl import Added, import_lines, line_of, lines_of, merge, record_of
from tilewright.records.record import FORMAT

RECORDS = [trial(k) for k in range(4)] + [trial(9, outcome="crash", time_ns=0.0, detail="é\n\x1b")]


@pytest.fixture
def filled(tmp_path):
    with Database(tmp_path / "filled.sqlite") as database:
        database.add(RECORDS)
        yield database


@pytest.fixture
def empty(tmp_path):
    with Database(tmp_path / "empty.sqlite") as database:
        yield database


def test_lines_come_back(filled, empty):
    lines = list(lines_of(filled))
    assert all("\n" not in line and json.loads(line) for line in lines)
    assert import_lines(empty, lines) == Added(5, 0)
    assert import_lines(empty, [*lines, "", " \n"]) == Added(0, 5)
    assert list(empty) == RECORDS
    assert list(lines_of(empty)) == lines


def test_lines_may_be_written_by_others():
    """Spaces, and another order of what they hold."""
    data = json.loads(line_of(trial()))
    data["record"] = dict(reversed(data["record"].items()))
    assert record_of(json.dumps(data, indent=1)) == trial()


@pytest.mark.parametrize(
    "line", ["{}", "[]", "record", "{", '{"checksum":1,"record":[]}', "[" * 9999]
)
def test_a_line_of_something_else_is_no_record(line):
    with pytest.raises(RecordError):
        record_of(line)


def test_bad_lines_are_told_of_and_left_out(empty):
    bad = line_of(trial(1)).replace("trial 1", "trial 2")
    found = import_lines(empty, [line_of(trial(0)), bad, "what?", line_of(trial(3))])
    assert (found.added, found.known) == (2, 0)
    assert found.bad == ("line 2: its checksum differs", "line 3: it is no line of a record")


def test_a_file_of_something_else_is_refused(empty):
    with raises_code("U004", text="`notes.txt`"):
        import_lines(empty, ["some", "notes"], "notes.txt")
    assert import_lines(empty, []) == Added()


def test_merging_is_idempotent_and_keeps_everything(filled, empty):
    newer = replace(trial(50), format=FORMAT + 1)
    empty.add([trial(2), trial(77), newer])
    assert merge(filled, empty) == Added(2, 1)
    assert merge(filled, empty) == Added(0, 3)
    assert merge(empty, filled).added == 4
    kept = {row.checksum for row in filled.rows()}
    assert kept == {row.checksum for row in empty.rows()}
    assert kept == {r.checksum for r in (*RECORDS, trial(77), newer)}
    assert filled.best("w", "t", 2) == empty.best("w", "t", 2) == [trial(0)]


def test_damaged_rows_are_not_merged(filled, empty, monkeypatch):
    rows = list(filled.rows())
    rows[1] = replace(rows[1], text=rows[1].text.replace("trial 1", "trial 8"))
    rows[2] = replace(rows[2], text=rows[2].text.replace(f'"format":{FORMAT}', '"format":99'))
    monkeypatch.setattr(filled, "rows", lambda: iter(rows))
    found = merge(empty, filled)
    assert found.added == 3
    assert [bad.partition(": ")[2] for bad in found.bad] == ["its checksum differs"] * 2
