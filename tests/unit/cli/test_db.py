"""`tilewright db`: what it prints, what it changes, and its exit codes."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from dataclasses import replace

import pytest

from tests.trials import trial
from tilewright.cli import main
from tilewright.records import Database
from tilewright.records.record import FORMAT

TRIALS = [
    trial(500, workload="aaaa-8-1", label="conv1"),
    trial(250, workload="aaaa-8-1", label="conv1", spread=0.012),
    trial(1, workload="aaaa-8-1", outcome="crash", time_ns=0.0, reference_ns=0.0),
    trial(0, workload="bbbb-1-", label="fc\x1b[31m", target="znver4-1"),
]


@pytest.fixture(autouse=True)
def path(tmp_path, monkeypatch):
    named = tmp_path / "records.sqlite"
    with Database(named) as database:
        database.add(TRIALS)
    monkeypatch.setenv("TILEWRIGHT_DATABASE", str(named))
    return named


def change(path, statement):
    with closing(sqlite3.connect(path)) as file, file:
        file.execute(statement)


def told(capsys, *arguments, status=0):
    assert main(["db", *map(str, arguments)]) == status
    return capsys.readouterr().out


def facts(capsys, *arguments, status=0):
    return json.loads(told(capsys, *arguments, "--json", status=status))


def test_list_has_a_line_for_each_workload(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    head, fc, conv = told(capsys, "list").splitlines()
    columns = [
        "label",
        "workload",
        "target",
        "threads",
        "trials",
        "failed",
        "draft",
        "best",
        "gain",
    ]
    assert head.split() == columns
    assert " ".join(conv.split()) == "conv1 aaaa-8-1 t 2 3 1 2 µs 1.25 µs 1.60×"
    assert fc.startswith("fc\\x1b[31m ")


def test_list_fits_the_screen(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "50")
    lines = told(capsys, "list").splitlines()
    assert all(len(line) <= 50 for line in lines)
    assert lines[0].split()[-1] == "gain"


def test_list_for_programs(capsys):
    rows = {row["workload"]: row for row in facts(capsys, "list")}
    assert rows["aaaa-8-1"]["gain"] == 1.6
    assert rows["aaaa-8-1"]["failures"] == 1
    assert rows["bbbb-1-"]["time_ns"] == 1000.0


def test_list_names_what_only_failed(capsys, path):
    with Database(path) as database:
        database.add(trial(workload="cccc", outcome="build", time_ns=0.0, label="odd one"))
    text = told(capsys, "list")
    assert "odd one" in text
    assert facts(capsys, "list")[0]["gain"] is None


def test_nothing_measured_yet_is_no_error(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("TILEWRIGHT_DATABASE", str(tmp_path / "none.sqlite"))
    assert told(capsys, "list") == "no records\n"
    assert facts(capsys, "best") == []
    assert not (tmp_path / "none.sqlite").exists()


def test_best_prints_a_record_in_full(capsys):
    text = told(capsys, "best", "aaaa")
    assert "time       1.25 µs, 1.60 times as fast as the draft (2 µs), spread 1.2%" in text
    assert "C: scattered.ScatteredPoint(vectors=250)" in text
    assert text.count("workload") == 1
    assert told(capsys, "best", "aaaa", "-n", "5").count("workload") == 2
    assert told(capsys, "best", "conv").count("workload") == 1
    assert told(capsys, "best").count("workload") == 2
    (found,) = facts(capsys, "best", "conv1")
    assert found["points"] == {"C": ["scattered.ScatteredPoint", {"vectors": 250}]}
    assert found["checksum"] == TRIALS[1].checksum


def test_export_and_import_are_inverse(capsys, tmp_path, path):
    lines = tmp_path / "records.jsonl"
    assert told(capsys, "export", lines) == f"{lines}: 4 records\n"
    assert told(capsys, "export") == lines.read_text()
    other = tmp_path / "other.sqlite"
    assert told(capsys, "import", lines, "--database", other).endswith(
        "4 records added, 0 known already\n"
    )
    assert facts(capsys, "import", lines, "--database", other)[str(lines)]["known"] == 4
    with Database(other) as database, Database(path) as own:
        assert list(database) == list(own) == TRIALS


def test_import_tells_what_it_leaves_out(capsys, tmp_path):
    lines = tmp_path / "records.jsonl"
    told(capsys, "export", lines)
    lines.write_text(lines.read_text().replace("conv1", "conv2"))
    assert main(["db", "import", str(lines)]) == 0
    printed = capsys.readouterr()
    assert "0 records added, 2 known already, 2 damaged and left out" in printed.out
    assert "line 1: its checksum differs; left out" in printed.err


def test_merge_adds_what_is_new(capsys, tmp_path, path):
    other = tmp_path / "other.sqlite"
    with Database(other) as database:
        database.add([TRIALS[0], trial(7)])
    assert "1 record added, 1 known already" in told(capsys, "merge", other)
    assert facts(capsys, "merge", other) == {str(other): {"added": 0, "known": 2, "bad": 0}}
    with Database(path) as database:
        assert len(database) == 5


def test_prune_keeps_the_best_and_failures(capsys, path):
    assert told(capsys, "prune", "--keep", "1") == "removed 1 record, kept 3\n"
    with Database(path) as database:
        assert list(database) == TRIALS[1:]


def test_check_finds_and_drops_what_is_damaged(capsys, path):
    assert told(capsys, "check").endswith("4 records\nall is well\n")
    with Database(path) as database:
        database.add(replace(trial(9), format=FORMAT + 1))
    change(path, "update records set record = replace(record, 'conv1', 'conv2') where number = 2")
    text = told(capsys, "check", status=1)
    assert "record 2: its checksum differs" in text
    assert "1 of another version, which are not used" in text
    found = facts(capsys, "check", status=1)
    assert (found["records"], len(found["damaged"]), found["dropped"]) == (5, 1, 0)
    assert "removed 1 damaged record" in told(capsys, "check", "--drop")
    assert told(capsys, "check").endswith("all is well\n")


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["list", "--database", "missing"], "K070"),
        (["check", "--database", "missing"], "K070"),
        (["merge", "missing"], "K070"),
        (["import", "missing"], "K070"),
        (["best", "conv9"], "K071"),
        (["list", "--database", "notes"], "U001"),
        (["merge", "notes"], "U001"),
        (["import", "notes"], "U004"),
        (["import", "."], "K070"),
        (["export", "no/such/folder"], "K048"),
        (["list", "--database", "."], "U002"),
    ],
    ids=str,
)
def test_mistakes_end_with_code_one_and_a_hint(arguments, code, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "notes").write_text("what somebody has written\n" * 100)
    assert main(["db", *arguments]) == 1
    error = capsys.readouterr().err
    assert error.startswith(f"tilewright: {code}")
    assert "hint: " in error


def test_no_database_is_no_database(capsys, monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_DATABASE", "none")
    assert main(["db", "list"]) == 1
    assert "name one by --database" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments", [[], ["burn"], ["prune"], ["prune", "--keep", "0"], ["best", "-n", "x"]], ids=str
)
def test_wrong_arguments_end_with_code_two(arguments, capsys):
    with pytest.raises(SystemExit) as left:
        main(["db", *arguments])
    assert left.value.code == 2
    assert "usage: tilewright db" in capsys.readouterr().err
