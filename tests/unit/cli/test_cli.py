"""The command line: what a person sees, and the exit codes."""

from __future__ import annotations

import dataclasses
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import tilewright
from tilewright.cli import doctor, main
from tilewright.explain import EXAMPLES
from tilewright.pipeline import KERNEL_STAGES
from tilewright.target import Target


def test_without_arguments_it_shows_the_help(capsys):
    assert main([]) == 0
    assert "show" in capsys.readouterr().out


@pytest.mark.parametrize(
    "command",
    ["compile", "run", "bench", "show", "tune", "report", "cache", "db", "doctor", "explain"],
)
def test_every_command_has_help_with_examples(command, capsys):
    with pytest.raises(SystemExit) as left:
        main([command, "--help"])
    assert left.value.code == 0
    text = capsys.readouterr().out
    assert f"tilewright {command} " in text
    assert "examples" in text


@pytest.mark.parametrize(
    "arguments", [["nothing"], ["compile"], ["run", "m.onnx", "--threads", "0"], ["cache", "burn"]]
)
def test_wrong_arguments_end_with_code_two(arguments, capsys):
    with pytest.raises(SystemExit) as left:
        main(arguments)
    assert left.value.code == 2
    assert "usage: tilewright" in capsys.readouterr().err


def test_show_lists_stages_and_programs(capsys):
    assert main(["show", "--list"]) == 0
    text = capsys.readouterr().out
    assert all(stage.name in text for stage in KERNEL_STAGES)
    assert "matmul:m,n,k" in text


@pytest.mark.parametrize("stage", ["program", "scheduled", "lower_blocks", "llvm", "assembly"])
def test_show_prints_each_kind_of_stage(stage, capsys):
    assert main(["show", "matmul:8,16,4", "--until", stage, "--threads", "1"]) == 0
    assert "matmul" in capsys.readouterr().out


def test_show_prints_steps_as_python_and_json(capsys):
    assert main(["show", "matmul:32,32,32", "--steps", "--threads", "1"]) == 0
    assert capsys.readouterr().out.startswith("s.")
    assert main(["show", "matmul:32,32,32", "--steps", "--json", "--threads", "1"]) == 0
    assert json.loads(capsys.readouterr().out)["steps"]


def test_show_takes_symbolic_sizes(capsys):
    assert main(["show", "matmul:m,16,4", "--until", "program"]) == 0
    assert "A: f32[m, 4]" in capsys.readouterr().out


def test_stages_written_to_a_folder_can_be_resumed_from(tmp_path, capsys):
    folder = tmp_path / "stages"
    command = ["show", "matmul:8,16,4", "--until", "assembly", "--threads", "1"]
    assert main([*command, "--all", str(folder)]) == 0
    (llvm,) = folder.glob("*-llvm.ll")
    capsys.readouterr()
    assert main(["show", str(llvm), "--until", "assembly"]) == 0
    resumed = capsys.readouterr().out
    assert main(command) == 0
    assert capsys.readouterr().out == resumed


def test_show_writes_assembly_for_another_machine(capsys):
    command = ["show", "matmul:8,16,4", "--until", "assembly", "--target", "aarch64"]
    assert main(command) == 0
    assert "fmla" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["show", "nothing_like_it:3"], "K010"),
        (["show", "matmul:3"], "K011"),
        (["show", "missing.tir"], "K012"),
        (["show", "some/where"], "K012"),
        (["show", "missing.txt"], "K012"),
        (["show", "missing.onnx"], "K040"),
        (["show", "matmul:8,8,8", "--until", "nowhere"], "K001"),
        (["show", "matmul:8,8,8", "--target", "abacus"], "T001"),
        (["show", "matmul:8,8,8", "--trace", "missing.json"], "K012"),
    ],
)
def test_mistakes_end_with_code_one_and_no_traceback(arguments, code, capsys):
    assert main(arguments) == 1
    error = capsys.readouterr().err
    assert error.startswith(f"tilewright: {code}")
    assert "Traceback" not in error


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("folder", "a folder"),
        ("folder.tir", "a folder"),
        ("notes.txt", "a file `*.txt`"),
        ("notes", "a file without an ending"),
    ],
)
def test_show_says_what_it_found_and_what_it_expects(name, found, tmp_path, capsys):
    path = tmp_path / name
    if found == "a folder":
        path.mkdir()
    else:
        path.write_text("def f(A: f32[4]):", encoding="utf-8")
    assert main(["show", str(path)]) == 1
    error = capsys.readouterr().err
    assert f"K014: `{path}` is neither a model nor a program, but {found}\n" in error
    assert "expected: a model `*.onnx` or `*.tw`, a program `*.tir` or `*.ll`" in error


def test_show_takes_any_file_for_the_stage_that_is_given(tmp_path, capsys):
    main(["show", "matmul:8,16,4", "--until", "program"])
    path = tmp_path / "program.txt"
    path.write_text(capsys.readouterr().out, encoding="utf-8")
    assert main(["show", str(path), "--from", "program", "--until", "program"]) == 0
    assert "def matmul" in capsys.readouterr().out


def test_ready_programs_come_before_folders_of_their_names(tmp_path, monkeypatch, capsys):
    (tmp_path / "matmul").mkdir()
    monkeypatch.chdir(tmp_path)
    assert main(["show", "matmul"]) == 1
    assert "K011" in capsys.readouterr().err


def test_show_suggests_the_ready_program_that_was_meant(capsys):
    assert main(["show", "matmull:8,8,8"]) == 1
    error = capsys.readouterr().err
    assert "did you mean `matmul`? `tilewright show --list` has all" in error
    assert "softmax" not in error


@pytest.mark.parametrize("command", ["compile", "run", "show", "doctor"])
def test_a_folder_is_no_model(command, tmp_path, capsys):
    folder = tmp_path / "folder.onnx"
    folder.mkdir()
    assert main([command, str(folder)]) == 1
    assert f"K040: there is no file `{folder}`\n  found: a folder" in capsys.readouterr().err


@pytest.mark.parametrize("content", [b"", b"hello", b"\x08\x07"], ids=["empty", "text", "no graph"])
def test_a_file_without_a_model_is_refused(content, tmp_path, capsys):
    """The parser of messages takes an empty file for one, and two bytes for a version."""
    path = tmp_path / "model.onnx"
    path.write_bytes(content)
    assert main(["show", str(path)]) == 1
    assert f"M001: `{path}` is not an ONNX model" in capsys.readouterr().err
    path = path.rename(tmp_path / "model.tw")
    assert main(["show", str(path)]) == 1
    assert "A110: `model.tw` is not a compiled model" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("cpu", "core_of", "text"),
    [
        ("emeraldrapids", "emeraldrapids", "emeraldrapids"),
        ("raptorlake", "alderlake", "alderlake"),
        (
            "futurelake",
            "emeraldrapids",
            "emeraldrapids, the closest known processor: `futurelake` is not in the table",
        ),
        ("futurelake", "x86-64-v3", "x86-64-v3, its level: `futurelake` is not in the table"),
    ],
)
def test_doctor_says_which_core_is_assumed(monkeypatch, capsys, cpu, core_of, text):
    host = dataclasses.replace(Target.host(), cpu=cpu, core_of=core_of)
    monkeypatch.setattr(doctor, "_self_test", lambda: 0.0)
    monkeypatch.setattr(Target, "host", staticmethod(lambda: host))
    assert main(["doctor", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["target"]["core_figures_of"] == text


def test_doctor_reports_a_right_result(capsys):
    assert main(["doctor", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["self_test"] == {"matmul": "right"}
    assert found["threads"]["default"] >= 1


def test_explain_prints_the_section_of_the_page(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "100")
    assert main(["explain", "v103"]) == 0
    section = capsys.readouterr().out
    page = (Path(__file__).parents[3] / "docs" / "errors.md").read_text(encoding="utf-8")
    assert section.startswith("### V103\n")
    assert section.strip() in page


def test_explain_asks_to_report_bugs(capsys):
    assert main(["explain", "I110"]) == 0
    assert "please report it" in capsys.readouterr().out


def test_explain_lists_all_codes():
    """In a process of its own: codes are known to those who import the module that defines them."""
    command = [sys.executable, "-m", "tilewright.cli", "explain"]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    codes = re.findall(r"^  ([A-Z]\d{3})  \S", text, flags=re.MULTILINE)
    assert EXAMPLES.keys() == {code for code in codes if not code.startswith("I")}
    assert "I110" in codes


def test_errors_point_to_their_explanation(capsys):
    assert main(["explain", "S999"]) == 1
    error = capsys.readouterr().err
    assert error.startswith("tilewright: K013: there is no error `S999`")
    assert error.endswith("`tilewright explain K013` says more\n")


@pytest.mark.parametrize("module", ["tilewright", "tilewright.cli"])
def test_the_package_is_the_command(module):
    command = [sys.executable, "-m", module, "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == tilewright.__version__
    failed = subprocess.run([*command[:3], "run"], capture_output=True, text=True, check=False)
    assert failed.returncode == 2
    assert "usage: tilewright run" in failed.stderr
