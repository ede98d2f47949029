"""`tilewright show MODEL --until STAGE`: models and their kernels at any stage."""

from __future__ import annotations

import json

import onnx
import pytest

from tests.small import sequence_model, two_outputs
from tests.unit.test_model_stages import settled_later
from tilewright.cli import main
from tilewright.llvm.interface import Interface
from tilewright.pipeline import KERNEL_STAGES, MODEL_STAGES


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("stages")
    onnx.save(two_outputs(), path / "small.onnx")
    onnx.save(settled_later(), path / "later.onnx")
    onnx.save(sequence_model(), path / "sequence.onnx")
    return path


@pytest.fixture(autouse=True)
def _own_cache(folder, monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(folder / "cache"))


@pytest.fixture
def model(folder):
    return str(folder / "small.onnx")


@pytest.mark.parametrize("stage", [stage.name for stage in MODEL_STAGES])
def test_each_stage_is_printed(model, stage, capsys):
    assert main(["show", model, "--until", stage, "--threads", "1"]) == 0
    text = capsys.readouterr().out
    assert "small" in text
    assert main(["show", model, "--until", stage, "--threads", "1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"stage": stage, "text": text.rstrip("\n")}


def test_times_of_the_stages(model, capsys):
    assert main(["show", model, "--until", "choose", "--times"]) == 0
    assert "optimise" in capsys.readouterr().out
    assert main(["show", model, "--until", "choose", "--times", "--json"]) == 0
    times = json.loads(capsys.readouterr().out)["time_s"]
    assert [*times] == ["read", "import", "optimise", "choose"]


def test_all_stages_go_to_a_folder(model, tmp_path, capsys):
    assert main(["show", model, "--all", str(tmp_path / "out")]) == 0
    assert capsys.readouterr().out == ""
    names = sorted(path.name for path in (tmp_path / "out").iterdir())
    expected = [f"{k:02}-{s.name}{s.suffix}" for k, s in enumerate(MODEL_STAGES)]
    assert names == expected[:-1], "a module is no text"
    text = (tmp_path / "out" / "04-plan.txt").read_text(encoding="utf-8")
    assert "kernel 1" in text


def test_all_stages_of_a_kernel_go_to_a_folder(model, tmp_path, capsys):
    command = ["show", model, "--kernel", "1", "--until", "object", "--all", str(tmp_path)]
    assert main(command) == 0
    assert capsys.readouterr().out == ""
    assert (tmp_path / "04-plan.txt").is_file()
    names = {path.name.partition("-")[2] for path in (tmp_path / "kernel_1").iterdir()}
    assert {"program.tir", "scheduled.tir", "llvm.ll", "object.o"} <= names


def test_a_kernel_is_shown_as_it_is_scheduled_unless_a_stage_is_given(model, capsys):
    assert main(["show", model, "--kernel", "1"]) == 0
    found = capsys.readouterr().out
    assert main(["show", model, "--kernel", "1", "--until", "scheduled"]) == 0
    assert capsys.readouterr().out == found


def test_the_code_of_a_kernel_is_that_of_the_model(model, capsys):
    """Results may be written over inputs, which callers with arrays do not allow."""
    assert main(["show", model, "--kernel", "0", "--until", "llvm"]) == 0
    text = capsys.readouterr().out
    assert Interface.of_text(text).in_place == ((0, 1),)


def test_no_kernel_is_compiled_to_look_at_one(model, monkeypatch, capsys):
    monkeypatch.delattr("tilewright.pipeline.model.ModelPipeline._kernels")
    assert main(["show", model, "--kernel", "0", "--until", "program"]) == 0
    assert "kernel_0" in capsys.readouterr().out


def test_a_kernel_is_measured_alone(model, capsys):
    command = ["show", model, "--kernel", "1", "--measure", "--size", "rows=5", "--threads", "1"]
    assert main(command) == 0
    text = capsys.readouterr().out
    assert text.startswith("# kernel 1: product\n")
    assert "GFLOP/s" in text
    assert "for rows = 5 (" in text
    assert main([*command, "--json"]) == 0
    (facts,) = json.loads(capsys.readouterr().out)["kernels"]
    assert facts["sizes"] == {"rows": 5}
    assert (facts["kernel"], facts["flops"]) == (1, 2 * 5 * 8 * 4)
    assert facts["moved_bytes"] == 4 * (5 * 8 + 8 * 4 + 5 * 4)
    assert 0 < facts["best_s"] <= facts["time_s"]


def test_all_kernels_are_measured_one_by_one(model, capsys):
    assert main(["show", model, "--measure", "--json"]) == 0
    kernels = json.loads(capsys.readouterr().out)["kernels"]
    assert [facts["labels"] for facts in kernels] == [["relu"], ["product"]]


@pytest.mark.parametrize(
    ("more", "code"),
    [
        (["--kernel", "7"], "K047"),
        (["--size", "cols=3"], "K042"),
        (["--target", "aarch64"], "T004"),
    ],
)
def test_measuring_is_refused(model, more, code, capsys):
    assert main(["show", model, "--measure", *more]) == 1
    assert code in capsys.readouterr().err


def test_an_unknown_stage_is_refused_with_those_of_models(model, capsys):
    assert main(["show", model, "--until", "group"]) == 1
    error = capsys.readouterr().err
    assert "K001" in error
    assert "read, import, optimise, choose, plan, kernels, link, module, program" in " ".join(
        error.split()
    )


def test_a_compiled_model_has_no_stages(model, folder, capsys):
    path = str(folder / "small.tw")
    assert main(["compile", model, "-o", path, "--threads", "1"]) == 0
    capsys.readouterr()
    assert main(["show", path, "--until", "plan"]) == 1
    assert "K046" in capsys.readouterr().err


def test_a_model_that_waits_for_values(folder, capsys):
    path = str(folder / "later.onnx")
    assert main(["show", path, "--until", "read"]) == 0
    assert "ReduceSum(x, axes)" in capsys.readouterr().out
    assert main(["show", path, "--until", "plan"]) == 0
    assert "give one with `--settle axes=…`" in capsys.readouterr().out
    assert main(["show", path, "--until", "plan", "--settle", "axes=[0]"]) == 0
    assert capsys.readouterr().out.startswith("plan small: 1 step, 1 kernel\n")


@pytest.mark.filterwarnings("default")
def test_a_model_without_a_graph(folder, capsys):
    path = str(folder / "sequence.onnx")
    assert main(["show", path, "--until", "read"]) == 0
    assert "ConcatFromSequence(parts) [axis=0]" in capsys.readouterr().out
    assert main(["show", path, "--until", "import"]) == 1
    assert "K046" in capsys.readouterr().err


def test_the_list_has_both_tables(capsys):
    assert main(["show", "--list"]) == 0
    text = capsys.readouterr().out
    assert text.index("stages of a model") < text.index("stages of a tensor program")
    assert main(["show", "--list", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert [stage["name"] for stage in facts["model_stages"]] == [s.name for s in MODEL_STAGES]
    assert [stage["name"] for stage in facts["stages"]] == [s.name for s in KERNEL_STAGES]


@pytest.mark.parametrize("stage", [stage.name for stage in KERNEL_STAGES if stage.is_resumable])
def test_the_text_of_a_kernel_is_read_again(model, stage, tmp_path, capsys):
    """As it was printed, with its title and what was decided: machine code comes of it."""
    about = ["--threads", "1", "--until"]
    assert main(["show", model, "--kernel", "0", *about, stage]) == 0
    path = tmp_path / "kernel.txt"
    path.write_text(capsys.readouterr().out, encoding="utf-8")
    assert main(["show", str(path), "--from", stage, "--trace", "draft", *about, "assembly"]) == 0
    assert "kernel_0" in capsys.readouterr().out
