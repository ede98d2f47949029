"""Databases of records: the best is found, and what is wrong is passed over."""

from __future__ import annotations

import json
import os
import sqlite3
import threading
from contextlib import closing
from dataclasses import replace

import pytest

from tests.expect import raises_code
from tests.trials import trial
from tilewright.errors import TuneError
from tilewright.records import Database
from tilewright.records.record import FORMAT, SLOWER, checksum_of, text_of


@pytest.fixture
def path(tmp_path):
    return tmp_path / "deep" / "records.sqlite"


@pytest.fixture
def database(path):
    with Database(path) as opened:
        yield opened


def change(path, statement, *values):
    with closing(sqlite3.connect(path)) as file, file:
        file.execute(statement, values)


def test_what_is_added_comes_back_in_order(database):
    records = [trial(k) for k in range(7)]
    assert database.add(records[0]) == 1
    assert database.add(records[1:]) == 6
    assert list(database) == records
    assert len(database) == 7


def test_adding_twice_changes_nothing(database):
    assert database.add([trial(1), trial(2)]) == 2
    assert database.add([trial(2), trial(3)]) == 1
    assert len(database) == 3


def test_many_records_are_read_in_batches(database):
    records = [trial(k) for k in range(1203)]
    database.add(records)
    seen = []
    for record in database:
        if not seen:
            database.add(trial(5000))  # nobody waits for a reader
        seen.append(record)
    assert seen == [*records, trial(5000)]


def test_the_best_gains_most_over_its_own_reference(database):
    quiet = trial(time_ns=120.0, reference_ns=150.0)
    noisy = trial(time_ns=200.0, reference_ns=300.0)
    database.add([quiet, noisy, trial(outcome="crash", time_ns=0.0, reference_ns=0.0)])
    assert database.best("w", "t", 2) == [noisy]
    assert database.best("w", "t", 2, count=5) == [noisy, quiet]


@pytest.mark.parametrize("about", [("v", "t", 2), ("w", "u", 2), ("w", "t", 4)], ids=str)
def test_records_of_others_are_none(database, about):
    database.add(trial())
    assert database.best(*about) == []
    assert list(database.records(*about)) == []
    assert about[1:] == ("t", 2) or database.winners(*about[1:]) == {}


def test_records_of_a_workload_have_failures_too(database):
    mine = [trial(1), trial(2, outcome="timeout", time_ns=0.0, detail="after 10 s"), trial(3)]
    database.add([*mine, trial(workload="v"), trial(4, threads=1)])
    assert list(database.records("w", "t", 2)) == mine
    assert len(list(database.records("w"))) == 4
    assert len(list(database.records(threads=2))) == 4


def test_winners_are_faster_than_the_draft(database):
    slow = trial(workload="slow", time_ns=2.0, reference_ns=2.0)
    database.add([trial(3), trial(1), trial(2), slow, trial(workload="v")])
    assert database.winners("t", 2) == {"w": trial(1), "v": trial(workload="v")}


def test_a_damaged_record_is_a_miss_and_hides_no_other(database, path):
    database.add([trial(1), trial(2), trial(3)])
    change(path, "update records set record = replace(record, 'trial 1', 'trial 9')")
    assert database.best("w", "t", 2) == [trial(2)]
    assert database.winners("t", 2) == {"w": trial(2)}
    assert list(database) == [trial(2), trial(3)]
    assert len(database) == 3


@pytest.mark.parametrize(
    "damage",
    [
        "ratio = 0.001",
        "outcome = 'ok', target = 't'",
        "record = x'ff00fe'",
        "checksum = 'none'",
        "record = 17",
    ],
)
def test_columns_that_do_not_fit_are_damage(database, path, damage):
    database.add([trial(1), trial(2, target="u")])
    change(path, f"update records set {damage} where target = 'u'")
    assert database.best("w", "t", 2) == [trial(1)]
    assert database.winners("t", 2) == {"w": trial(1)}
    assert [r for r in database if r.target == "t"] == [trial(1)]


def test_other_versions_and_unreadable_points_are_misses(database):
    old = replace(trial(1), format=FORMAT - 1)
    new = replace(trial(2), format=FORMAT + 1)
    odd = trial(3, points={"C": ["contraction.space.ContractionPoint", {"tile_rows": 6}]})
    database.add([old, new, odd, trial(4)])
    assert database.best("w", "t", 2) == [trial(4)]
    assert database.winners("t", 2) == {"w": trial(4)}
    assert list(database) == [odd, trial(4)]


def test_prune_keeps_the_best_and_all_failures(database):
    failures = [trial(k, outcome="build", time_ns=0.0, reference_ns=0.0) for k in range(3)]
    database.add([*failures, *map(trial, range(10)), trial(workload="v")])
    database.add(replace(trial(99), format=FORMAT - 1))
    assert database.prune(2) == 9
    assert list(database) == [*failures, trial(0), trial(1), trial(workload="v")]


def test_tasks_are_counted(database):
    database.add([trial(1), trial(2, outcome="wrong"), trial(workload="v")])
    found = [(t.workload, t.trials, t.failures) for t in database.tasks()]
    assert found == [("v", 1, 0), ("w", 2, 1)]


@pytest.mark.parametrize(
    "content", [b"not a database at all", b"x" * 5000, b"SQLite format 3\0" + b"\1" * 4000]
)
def test_another_file_is_refused_and_left_alone(tmp_path, content):
    path = tmp_path / "other"
    path.write_bytes(content)
    for readonly in (True, False):
        with raises_code("U001", text="hint: move it away"):
            Database(path, readonly=readonly)
    assert path.read_bytes() == content


def test_another_database_is_refused(tmp_path):
    change(tmp_path / "other.db", "create table orders (number)")
    for readonly in (True, False):
        with raises_code("U001", text="of something else"):
            Database(tmp_path / "other.db", readonly=readonly)


def test_a_truncated_file_is_an_error_with_a_code(path):
    with Database(path) as database:
        database.add([trial(k) for k in range(300)])
    size = path.stat().st_size
    for part in (0.9, 0.5, 0.1):
        os.truncate(path, int(size * part))
        with raises_code("U001"), Database(path, readonly=True) as database:
            list(database)


def test_flipped_bytes_never_give_a_wrong_record(path, rng):
    """A damaged file is an error, or gives what is still intact."""
    records = [trial(k) for k in range(60)]
    with Database(path) as database:
        database.add(records)
    whole = path.read_bytes()
    codes = set()
    for _ in range(150):
        data = bytearray(whole)
        for place in rng.integers(0, len(data), 8):
            data[place] ^= 1 << int(rng.integers(8))
        path.write_bytes(data)
        try:
            with Database(path, readonly=True) as database:
                best = database.best("w", "t", 2) + list(database.winners("t", 2).values())
                assert {*map(str, (*database, *best))} <= {*map(str, records)}
        except TuneError as problem:
            codes.add(problem.code.id)
    assert codes <= {"U001", "U002", "U003"}


def test_an_empty_file_is_an_empty_database(tmp_path):
    path = tmp_path / "records.sqlite"
    path.touch()
    with Database(path, readonly=True) as database:
        assert list(database) == []
    with Database(path) as database:
        database.add(trial())
    with Database(path, readonly=True) as database:
        assert list(database) == [trial()]


def test_a_missing_file_is_made_to_write_only(tmp_path):
    with raises_code("U002"):
        Database(tmp_path / "none.sqlite", readonly=True)
    assert not list(tmp_path.iterdir())


def test_reading_changes_nothing(path):
    with Database(path) as database:
        database.add(trial())
    with Database(path, readonly=True) as database, raises_code("U002"):
        database.add(trial(1))


def test_names_with_signs_are_names(tmp_path):
    with Database(tmp_path / "a?mode=memory#%41 é") as database:
        database.add(trial())
        assert database.path.is_file()


def test_a_newer_schema_is_refused(path):
    Database(path).close()
    change(path, "pragma user_version = 2")
    with raises_code("U003"):
        Database(path)


def test_the_log_is_written_ahead(path):
    Database(path).close()
    with closing(sqlite3.connect(path)) as file:
        assert file.execute("pragma journal_mode").fetchone() == ("wal",)


def test_threads_share_a_database(database):
    def add(first):
        for k in range(first, first + 50):
            database.add(trial(k))
            database.best("w", "t", 2)

    workers = [threading.Thread(target=add, args=(100 * k,)) for k in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(database) == 200


def test_a_failed_batch_adds_nothing(database):
    def broken():
        yield trial(1)
        raise KeyError

    with pytest.raises(KeyError):
        database.add(broken())
    assert len(database) == 0


def test_rows_of_other_formats_are_rows(database):
    text = text_of({**json.loads(trial().text), "format": FORMAT + 1, "new": 1})
    (row,) = _rows(database, text)
    assert row.text == text


def _rows(database, text):
    with closing(sqlite3.connect(database.path)) as file, file:
        values = (checksum_of(text), "w", "t", 2, FORMAT + 1, "ok", 0.5, text)
        columns = "checksum, workload, target, threads, format, outcome, ratio, record"
        places = "?, ?, ?, ?, ?, ?, ?, ?"
        file.execute(f"insert into records ({columns}) values ({places})", values)
    return database.rows()


def test_points_that_were_withdrawn_are_not_used(database):
    rows = [trial(n) for n in range(3)]
    database.add(rows)
    best = database.winners("t", 2)["w"]
    withdrawn = replace(best, outcome=SLOWER, time_ns=0, reference_ns=0)
    database.add(withdrawn)
    second = database.winners("t", 2)["w"]
    assert second.points != best.points
    assert second.ratio == sorted(r.ratio for r in rows)[1]
    database.add([replace(r, outcome=SLOWER, time_ns=0, reference_ns=0) for r in rows])
    assert database.winners("t", 2) == {}
