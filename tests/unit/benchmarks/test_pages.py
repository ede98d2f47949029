"""What the pages of results share: files are read from the command line, tables have a ruler."""

from __future__ import annotations

import json
import sys

import pytest

from scripts import pages


def test_files_of_the_command_line_become_one_page(tmp_path, monkeypatch, capsys):
    files = [tmp_path / "one.json", tmp_path / "two.json"]
    for number, file in enumerate(files):
        file.write_text(json.dumps({"number": number}), encoding="utf-8")
    monkeypatch.setattr(sys, "argv", ["page", *map(str, files)])
    pages.print_page(lambda runs: f"{[run['number'] for run in runs]}\n", "A page.\n\nMore.")
    assert capsys.readouterr().out == "[0, 1]\n"


def test_a_page_of_nothing_is_refused(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["page"])
    with pytest.raises(SystemExit, match="2"):
        pages.print_page(str, None)
    assert "the following arguments are required: results" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["bench conv", "bench --out x.json conv", "bench conv --out x"])
def test_where_a_run_is_from_does_not_tell_its_file(command):
    machine = {"cpu": "A", "target": {"cpu": "znver4"}}
    run = {"command": command, "commit": "abc", "when": "2026-01-02T03", "machine": machine}
    assert pages.origin(run) == "`bench conv`, commit abc, 2026-01-02, A (znver4)."


def test_rows_and_threads_are_named():
    assert [pages.threads_of(n) for n in (1, 2)] == ["1 thread", "2 threads"]
    rows = [{"workload": "a", "noisy": noisy} for noisy in (False, True)]
    assert [pages.workload(row) for row in rows] == ["a", "a ~"]


def test_tables_have_numbers_on_the_right():
    assert pages.table(["a", "b", "c"], [["x", "1", "2"]]) == (
        "| a | b | c |\n| --- | --: | --: |\n| x | 1 | 2 |\n"
    )
    assert pages.table(["a", "b", "c"], [], words=2).endswith("| --- | --- | --: |\n")
