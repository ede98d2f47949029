"""Two recordings side by side: a difference is found, shown once, and told by the exit code."""

from __future__ import annotations

import pytest

from replay.command_line import main
from replay.compare import compare
from replay.folder import Index, Texts, write_index

PLAIN = {"trace": "s.split(i)\ns.fuse(a)", "llvm": "define void @f\n  ret void"}
CHANGED = {"trace": "s.split(j)\ns.fuse(a)", "llvm": "define void @g\n  ret void"}


@pytest.fixture
def made(tmp_path):
    """Writes a recording: texts by record and target."""

    def make(name, records, missing=()):
        folder = tmp_path / name
        texts = Texts(folder)
        hashes = {
            record: {target: texts.put_all(stages) for target, stages in targets.items()}
            for record, targets in records.items()
        }
        write_index(folder, Index(hashes, "package", list(missing)))
        return str(folder)

    return make


def test_equal_recordings_are_a_null_diff(made, capsys):
    records = {"a": {"v3": PLAIN}, "b": {"v3": CHANGED}}
    assert main(["compare", made("one", records), made("two", records)]) == 0
    printed = capsys.readouterr().out
    assert "nothing differs in 4 texts" in printed
    assert "differ:" not in printed


def test_a_difference_is_shown_in_its_first_stage(made, capsys):
    one = made("one", {"a": {"v3": PLAIN}, "b": {"v3": PLAIN}})
    two = made("two", {"a": {"v3": PLAIN}, "b": {"v3": CHANGED}})
    assert main(["compare", one, two]) == 1
    printed = capsys.readouterr().out
    assert "differ: 1 records\n  b: trace, llvm (v3)" in printed
    assert "b for v3, trace:" in printed
    assert "-s.split(i)\n+s.split(j)\n s.fuse(a)" in printed
    assert "define" not in printed
    assert [line.split() for line in printed.splitlines()[:3]] == [
        ["stage", "v3"],
        ["trace", "equal", "1"],
        ["trace", "differ", "1"],
    ]


def test_a_difference_of_several_targets_is_shown_once(made, capsys):
    one = made("one", {"a": {"v2": PLAIN, "v3": PLAIN}})
    two = made("two", {"a": {"v2": CHANGED, "v3": CHANGED}})
    assert main(["compare", one, two, "--diff", "5"]) == 1
    printed = capsys.readouterr().out
    assert printed.count("+s.split(j)") == 1
    assert "a: trace, llvm (v2, v3)" in printed


def test_long_differences_are_shortened(made, capsys):
    one = made("one", {"a": {"v3": {"llvm": "\n".join(map(str, range(100)))}}})
    two = made("two", {"a": {"v3": {"llvm": "\n".join(map(str, range(1000, 1100)))}}})
    assert main(["compare", one, two, "--lines", "10"]) == 1
    assert "… and 193 lines more" in capsys.readouterr().out
    assert main(["compare", one, two, "--diff", "0"]) == 1
    assert "1050" not in capsys.readouterr().out


def test_what_differs_in_a_long_line_is_shown_alone(made, capsys):
    arguments = [f"argument_{number}" for number in range(40)]
    one = made("one", {"a": {"v3": {"lowered": f"f({', '.join(arguments)})"}}})
    arguments[30] = "another"
    two = made("two", {"a": {"v3": {"lowered": f"f({', '.join(arguments)})"}}})
    assert main(["compare", one, two]) == 1
    printed = capsys.readouterr().out
    assert "-    argument_30,\n+    another,\n" in printed
    assert "argument_20" not in printed


def test_a_missing_stage_is_said(made, capsys):
    one = made("one", {"a": {"v3": PLAIN}})
    lacking = made("two", {"a": {"v3": {"trace": PLAIN["trace"]}}}, ["emit: there is no x:emit"])
    assert main(["compare", one, lacking]) == 1
    printed = capsys.readouterr().out
    assert "lacks an entry point: emit: there is no x:emit" in printed
    assert f"only in {one}: 1 records\n  a: llvm (v3)" in printed


def test_records_of_one_side_are_told_apart():
    one, two = Index({"a": {"v3": {"llvm": "0"}}}), Index({"b": {"v3": {"llvm": "0"}}})
    result = compare(one, two)
    assert result.only_first == [("a", "v3", "llvm")]
    assert result.only_second == [("b", "v3", "llvm")]
    assert not result.is_null


def test_what_cannot_be_done_ends_with_two(tmp_path, capsys):
    assert main(["compare", str(tmp_path), str(tmp_path)]) == 2
    assert "holds no recording" in capsys.readouterr().err
    assert main(["record", str(tmp_path), "--only", "nothing like it"]) == 2
    assert "nothing in the corpus matches" in capsys.readouterr().err


def test_names_of_the_corpus_are_listed(capsys):
    assert main(["list", "--only", "models/gru"]) == 0
    assert capsys.readouterr().out == "models/gru\n"
