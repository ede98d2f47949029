"""How commands behave where things go wrong: a line with a code, no traceback, an exit code."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys

import onnx
import pytest

from tests.background import wait_for_writers
from tests.machine import known_machine
from tests.small import two_outputs
from tilewright.cli import compile as compile_command
from tilewright.cli import main
from tilewright.cli import show_model as shown
from tilewright.target import MachineModel, Target

COMMANDS = ["compile", "run", "bench", "show", "tune", "report", "cache", "db", "doctor"]
COMMANDS += ["explain"]
ON_MODELS = ["compile", "run", "bench", "show", "tune", "report", "doctor"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("conduct")
    onnx.save(two_outputs(), path / "small.onnx")
    return path


@pytest.fixture(autouse=True)
def _here(folder, monkeypatch):
    monkeypatch.chdir(folder)
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(folder / "cache"))
    monkeypatch.setattr(shown, "measured_host", known_machine)
    monkeypatch.setattr(shown, "PROFILE_SECONDS", 0.0)


@pytest.fixture
def compiled(folder):
    if not (folder / "small.tw").exists():
        assert main(["compile", "small.onnx", "--threads", "1"]) == 0
    return "small.tw"


def refused(capsys, code, *arguments):
    assert main(list(arguments)) == 1
    error = capsys.readouterr().err
    assert error.startswith(f"tilewright: {code}: ")
    assert "\n  hint: " in error
    assert "Traceback" not in error
    return error


def in_a_process(*arguments, **options):
    command = [sys.executable, "-m", "tilewright.cli", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


@pytest.mark.parametrize("command", ON_MODELS)
def test_files_that_are_none(command, capsys):
    refused(capsys, "K040", command, "missing.onnx")
    os.mkfifo(f"{command}.onnx")
    error = refused(capsys, "K040", command, f"{command}.onnx")
    assert "found: something that is not a regular file" in error


def test_compiled_models_are_not_compiled_again(compiled, folder, capsys):
    before = (folder / compiled).read_bytes()
    refused(capsys, "K050", "compile", compiled)
    (folder / "other").write_bytes(before)
    refused(capsys, "K050", "compile", "other", "-o", "again.tw")
    refused(capsys, "K050", "bench", compiled, "--against", "onnxruntime")
    assert (folder / compiled).read_bytes() == before


def test_a_compiled_model_is_known_whatever_it_is_called(compiled, folder, capsys):
    (folder / "renamed").write_bytes((folder / compiled).read_bytes())
    assert main(["run", "renamed"]) == 0
    assert "scores: float32[" in capsys.readouterr().out


def test_compile_writes_through_links_and_over_nothing_else(tmp_path, capsys):
    (tmp_path / "link.tw").symlink_to("made.tw")
    assert main(["compile", "small.onnx", "-o", str(tmp_path / "link.tw")]) == 0
    assert (tmp_path / "link.tw").is_symlink()
    assert (tmp_path / "made.tw").is_file()
    capsys.readouterr()
    os.mkfifo(tmp_path / "pipe.tw")
    for name, kind in (("pipe.tw", "a pipe"), ("/dev/null", "a device"), (".", "a folder")):
        error = refused(capsys, "K048", "compile", "small.onnx", "-o", str(tmp_path / name))
        assert f"it is {kind}, not a regular file" in error
    assert stat.S_ISFIFO((tmp_path / "pipe.tw").stat().st_mode)


@pytest.mark.parametrize(
    "arguments",
    [
        ["run", "small.onnx", "--output", "small.onnx"],
        ["run", "small.onnx", "--output", "small.onnx/below"],
        ["show", "small.onnx", "--trace", "nowhere/trace.json"],
        ["show", "small.onnx", "--trace", "."],
        ["show", "matmul:8,8,8", "--all", "small.onnx"],
    ],
)
def test_places_that_cannot_be_written(arguments, capsys):
    refused(capsys, "K048", *arguments)


def test_results_whose_names_are_alike_have_files_of_their_own(tmp_path):
    model = two_outputs()
    for node in model.graph.node:
        node.output[:] = [
            "a/b" if o == "scores" else "a:b" if o == "positive" else o for o in node.output
        ]
        node.input[:] = ["a:b" if i == "positive" else i for i in node.input]
    for output, name in zip(model.graph.output, ("a/b", "a:b"), strict=True):
        output.name = name
    onnx.save(model, tmp_path / "alike.onnx")
    assert main(["run", str(tmp_path / "alike.onnx"), "--output", str(tmp_path / "out")]) == 0
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["a_b.npy", "a_b_1.npy"]


def test_errors_are_json_where_json_is_wanted(capsys):
    assert main(["run", "missing.onnx", "--json"]) == 1
    out, err = capsys.readouterr()
    error = json.loads(out)["error"]
    assert (error["code"], error["facts"]) == ("K040", {"path": "missing.onnx"})
    assert error["summary"] == "there is no file `missing.onnx`"
    assert error["hint"]
    assert err.startswith("tilewright: K040: ")


@pytest.mark.parametrize(
    "arguments",
    [
        ["show", "--list"],
        ["show", "matmul:8,8,8", "--threads", "1"],
        ["show", "matmul:8,8,8", "--steps"],
        ["show", "small.onnx", "--stage", "program", "--kernel", "0"],
        ["show", "small.onnx"],
        ["explain"],
        ["explain", "K040"],
        ["explain", "I110"],
        ["doctor"],
        ["doctor", "small.tw"],
        ["cache", "list"],
        ["cache", "size"],
        ["run", "small.tw", "--print"],
    ],
)
@pytest.mark.usefixtures("compiled")
def test_every_command_has_json(arguments, capsys):
    capsys.readouterr()
    assert main([*arguments, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)


def test_interrupts_end_with_130_and_leave_no_file(folder, monkeypatch, capsys):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(compile_command, "open_module", interrupt)
    before = sorted(folder.iterdir())
    assert main(["compile", "small.onnx", "-o", "interrupted.tw"]) == 130
    assert capsys.readouterr().err == "tilewright: interrupted\n"
    assert sorted(folder.iterdir()) == before


def test_an_interrupted_process_says_one_line():
    """In the middle of its work, while other processes have their turns."""
    script = """
import os, signal, sys, threading
signal.signal(signal.SIGINT, signal.default_int_handler)  # shells ignore it in the background
from tilewright.cli import bench, main
own = bench.compete
def compete(*arguments):
    threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
    return own(*arguments)
bench.compete = compete
sys.argv = ["tilewright", "bench", "small.onnx", "--seconds", "99"]
sys.exit(main())
"""
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (130, "tilewright: interrupted\n")


def test_a_command_that_is_interrupted_while_it_is_imported_says_one_line():
    script = """
import signal, sys
import tilewright_command
class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == "tilewright.cli":
            raise KeyboardInterrupt
sys.meta_path.insert(0, Interrupting())
sys.exit(tilewright_command.main())
"""
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (130, "tilewright: interrupted\n")


@pytest.mark.parametrize(
    "variables", [{"PYTHONIOENCODING": "ascii"}, {"LC_ALL": "C", "PYTHONUTF8": "0"}]
)
def test_terminals_may_know_nothing_but_ascii(variables):
    environment = {**os.environ, "PYTHONCOERCECLOCALE": "0", **variables}
    done = in_a_process("show", "--list", env=environment)
    assert done.returncode == 0, done.stderr
    assert done.stdout.isascii()
    assert done.stderr == ""


def test_times_have_an_ascii_form(compiled, monkeypatch, capsys):
    """The texts of tables go through the same door as all others."""
    from tilewright.cli.output import _in_ascii

    problem = UnicodeEncodeError("ascii", "2 µs → 3×", 2, 9, "ordinal not in range")
    assert _in_ascii(problem) == ("us -> 3x", 9)
    monkeypatch.setenv("COLUMNS", "60")
    assert main(["show", compiled]) == 0
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 60


def test_a_reader_may_have_had_enough():
    script = f"{sys.executable} -m tilewright.cli show --list | head -c 1; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
    assert (done.stdout.splitlines()[-1][-1], done.stderr) == ("0", "")


@pytest.mark.parametrize(
    ("command", "mode"),
    [("doctor --help", "-u"), ("cache dir", "-I")],
    ids=["at once", "at the end"],
)
def test_a_full_disk_is_told(command, mode):
    with open("/dev/full", "w") as full:  # noqa: PTH123
        arguments = [sys.executable, mode, "-m", "tilewright.cli", *command.split()]
        done = subprocess.run(
            arguments, stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.returncode == 1
    assert done.stderr.startswith("tilewright: K049: results cannot be printed: No space left")
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("command", [[], *([name] for name in COMMANDS)])
def test_no_line_of_a_help_is_longer_than_eighty(command, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit):
        main([*command, "--help"])
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 80


@pytest.mark.parametrize("columns", ["60", "80", "100"])
@pytest.mark.parametrize(
    "arguments",
    [["show", "small.onnx"], ["show", "small.onnx", "--layouts"], ["cache", "list"], ["doctor"]],
)
@pytest.mark.usefixtures("compiled")
def test_tables_fit_the_screen(arguments, columns, monkeypatch, capsys):
    capsys.readouterr()
    monkeypatch.setenv("COLUMNS", columns)
    assert main(arguments) == 0
    assert max(map(len, capsys.readouterr().out.splitlines())) <= int(columns)


@pytest.mark.parametrize("text", ["0", "-1", "nan", "soon", "1e9"])
def test_times_to_measure_are_numbers_of_seconds(text, capsys):
    with pytest.raises(SystemExit) as left:
        main(["bench", "small.onnx", f"--seconds={text}"])
    assert left.value.code == 2
    assert "is not a number of seconds: more than 0, at most 3600" in capsys.readouterr().err


def test_chosen_sizes_are_told(capsys):
    assert main(["run", "small.onnx"]) == 0
    assert capsys.readouterr().out.startswith("sizes: rows=1 (chosen; --size rows=N for others)\n")
    assert main(["run", "small.onnx", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["sizes"], facts["chosen_sizes"]) == ({"rows": 1}, ["rows"])
    assert main(["run", "small.onnx", "--size", "rows=3", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["sizes"], facts["chosen_sizes"]) == ({"rows": 3}, [])


def test_sizes_that_a_model_refuses_come_with_the_option(tmp_path, capsys):
    from onnx import TensorProto, helper

    sound = helper.make_tensor_value_info("sound", TensorProto.FLOAT, [1, 1, "samples"])
    means = helper.make_tensor_value_info("means", TensorProto.FLOAT, None)
    node = helper.make_node("AveragePool", ["sound"], ["means"], kernel_shape=[400])
    graph = helper.make_graph([node], "frames", [sound], [means])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])
    onnx.save(model, tmp_path / "frames.onnx")
    path = str(tmp_path / "frames.onnx")
    assert main(["run", path]) == 0
    capsys.readouterr()
    error = refused(capsys, "C025", "run", path, "--size", "samples=10")
    assert "\n  sizes: samples=10\n" in error
    assert "`--size samples=64`" in error


def test_an_unusable_cache_is_told_once(monkeypatch, capsys):
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", "/proc/nowhere")
    done = in_a_process("run", "small.onnx")
    assert done.returncode == 0
    assert done.stderr.count("compiled models cannot be kept in /proc/nowhere") == 1
    assert main(["doctor"]) == 0
    assert "not usable (No such file or directory): every" in capsys.readouterr().out
    monkeypatch.setenv("TILEWRIGHT_CACHE_SIZE", "0")
    assert main(["doctor", "--json"]) == 0
    state = json.loads(capsys.readouterr().out)["cache_folder"]["state"]
    assert state == "not used: TILEWRIGHT_CACHE_SIZE is 0"


def test_the_cache_says_what_a_model_was_made_of(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(tmp_path))
    command = ["run", "small.onnx", "--accuracy", "strict", "--threads", "1"]
    assert main([*command, "--target", "x86-64-v2"]) == 0
    wait_for_writers()
    capsys.readouterr()
    assert main(["cache", "list", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["file"], row["model"], row["target"]) == ("small.onnx", "small", "x86-64-v2")
    assert row["accuracy"] == "strict"
    assert row["size_bytes"] > 0
    assert row["age_s"] >= 0


def test_doctor_has_numbers_and_lists(capsys):
    assert main(["doctor", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert isinstance(found["target"]["L1_bytes"], int)
    assert isinstance(found["target"]["features"], list)
    assert all(" " not in name for rows in found.values() for name in rows)


def test_bugs_have_a_code_of_their_own(monkeypatch, capsys):
    def fail(*_, **__):
        raise RuntimeError("a bug")

    monkeypatch.setattr(compile_command, "open_module", fail)
    assert main(["compile", "small.onnx", "-o", "bug.tw"]) == 70
    assert "this is a bug (RuntimeError); please report it" in capsys.readouterr().err
    with pytest.raises(RuntimeError):
        main(["--debug", "compile", "small.onnx", "-o", "bug.tw"])


def test_doctor_prints_the_machine_model(capsys):
    assert main(["doctor", "--machine"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("machine model: nominal (digest ")
    assert "fma_per_cycle" in text
    assert max(map(len, text.splitlines())) <= 80
    assert main(["doctor", "--machine", "--json"]) == 0
    assert MachineModel.from_dict(json.loads(capsys.readouterr().out)) == Target.host().machine
