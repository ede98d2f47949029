"""Commands on models: compile, run, show, cache, doctor; what they print and how they end."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from numpy.testing import assert_allclose

import tilewright as tw
from tests.machine import known_machine
from tests.small import expected, rows, sequence_model, text_inside, two_outputs
from tilewright.cli import main
from tilewright.cli import show_model as shown
from tilewright.target import Target


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("models")
    onnx.save(two_outputs(), path / "small.onnx")
    return path


@pytest.fixture(autouse=True)
def _own_cache(folder, monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(folder / "cache"))


@pytest.fixture
def model(folder):
    return str(folder / "small.onnx")


@pytest.fixture
def compiled(model, folder, capsys):
    path = folder / "small.tw"
    if not path.exists():
        assert main(["compile", model, "-o", str(path), "--threads", "1"]) == 0
        capsys.readouterr()
    return str(path)


@pytest.fixture
def _known_machine(monkeypatch):
    """Rates that nobody has to measure."""
    monkeypatch.setattr(shown, "measured_host", known_machine)


def test_compile_writes_a_file_that_runs(model, folder, capsys):
    path = folder / "made.tw"
    assert main(["compile", model, "-o", str(path)]) == 0
    text = capsys.readouterr().out
    assert text.startswith(f"{path}: ")
    assert "2 kernels, in" in text
    assert "input   x: f32[rows, 8]" in text
    (scores, _) = tw.load(path).run({"x": rows(3)})
    assert_allclose(scores, expected(rows(3))[0], rtol=1e-5, atol=1e-6)


def test_compile_says_what_it_made_in_json(model, folder, capsys):
    path = folder / "again.tw"
    assert main(["compile", model, "-o", str(path), "--no-cache", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["file"] == str(path)
    assert facts["size_bytes"] == path.stat().st_size
    shapes = {output["name"]: output["shape"] for output in facts["outputs"]}
    assert shapes == {"scores": ["rows", 4], "positive": ["rows", 8]}


def test_compile_writes_beside_where_it_runs(model, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["compile", model, "--threads", "1"]) == 0
    assert (tmp_path / "small.tw").is_file()
    assert capsys.readouterr().out.startswith("small.tw: ")


def test_compile_for_another_machine(model, tmp_path, capsys):
    path = str(tmp_path / "arm.tw")
    assert main(["compile", model, "-o", path, "--target", "aarch64", "--json"]) == 0
    (x,) = json.loads(capsys.readouterr().out)["inputs"]
    assert x == {"name": "x", "dtype": "f32", "shape": ["rows", 8], "type": "tensor(float)"}
    assert main(["run", path]) == 1
    assert "A113" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["run", "bench", "show"])
def test_what_runs_here_is_refused_for_another_machine(command, model, capsys):
    other = "riscv64" if Target.host().arch != "riscv64" else "aarch64"
    assert main([command, model, "--target", other]) == 1
    assert "T004" in capsys.readouterr().err


@pytest.mark.filterwarnings("default")
def test_compile_refuses_what_no_file_can_hold(tmp_path, capsys):
    path = tmp_path / "sequence.onnx"
    onnx.save(sequence_model(), path)
    assert main(["compile", str(path), "-o", str(tmp_path / "out.tw")]) == 1
    assert "A121" in capsys.readouterr().err
    assert not (tmp_path / "out.tw").exists()


def test_run_makes_inputs_of_the_right_shape(model, capsys):
    assert main(["run", model, "--size", "rows=5", "--threads", "1"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("scores: float32[5, 4]  min ")
    assert "positive: float32[5, 8]" in text


def test_run_is_the_same_for_the_same_seed(compiled, capsys):
    texts = []
    for seed in ("1", "1", "2"):
        assert main(["run", compiled, "--seed", seed, "--json", "--print"]) == 0
        texts.append(capsys.readouterr().out)
    assert texts[0] == texts[1] != texts[2]
    (scores, _) = json.loads(texts[0])["outputs"]
    assert (scores["name"], len(scores["values"][0])) == ("scores", 4)


def test_run_reads_and_writes_arrays(compiled, tmp_path, capsys):
    np.save(tmp_path / "x.npy", rows(6))
    results = tmp_path / "results"
    command = ["run", compiled, "--input", f"x={tmp_path / 'x.npy'}", "--output", str(results)]
    assert main(command) == 0
    assert_allclose(np.load(results / "scores.npy"), expected(rows(6))[0], rtol=1e-5, atol=1e-6)
    assert np.array_equal(np.load(results / "positive.npy"), np.maximum(rows(6), 0))
    assert "scores: float32[6, 4]" in capsys.readouterr().out


def test_run_says_what_is_slow_without_a_place_in_the_code(tmp_path):
    """In a process of its own, where warnings are no errors."""
    path = tmp_path / "text.onnx"
    onnx.save(text_inside(), path)
    command = [sys.executable, "-m", "tilewright.cli", "run", str(path), "--no-cache"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert done.stderr.startswith("tilewright: 2 nodes run on the ONNX reference")
    assert "is of strings: element type string\n    `t` of x: f32[n]" in done.stderr
    assert done.stdout.startswith("sizes: n=16 (chosen; --size n=N for others)\ny: float32[16]")


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["run", "missing.onnx"], "K040"),
        (["compile", "missing.onnx"], "K040"),
        (["compile", "{model}", "--output", "missing/model.tw"], "K048"),
        (["compile", "{model}", "--output", "."], "K048"),
        (["compile", "{model}", "--output", "missing/model.tw", "--target", "aarch64"], "K048"),
        (["doctor", "missing.tw"], "K040"),
        (["show", "missing.onnx"], "K040"),
        (["run", "{model}", "--size", "row=3"], "K042"),
        (["run", "{model}", "--size", "rows"], "K041"),
        (["run", "{model}", "--size", "rows=many"], "K041"),
        (["run", "{model}", "--input", "y=1"], "K042"),
        (["run", "{model}", "--input", "x=missing.npy"], "K043"),
        (["run", "{model}", "--input", "x=[1, 2"], "K043"),
        (["run", "{model}", "--input", "x=[1, 2]"], "C004"),
        (["run", "{model}", "--target", "abacus"], "T001"),
        (["bench", "{model}", "--against", "onnxruntim"], "K045"),
        (["show", "{model}", "--stage", "program", "--kernel", "99"], "K047"),
        (["show", "{compiled}", "--graph"], "K046"),
    ],
)
def test_mistakes_end_with_code_one(arguments, code, model, compiled, capsys):
    filled = [text.format(model=model, compiled=compiled) for text in arguments]
    assert main(filled) == 1
    error = capsys.readouterr().err
    assert error.startswith(f"tilewright: {code}: ")
    assert error.endswith(f"`tilewright explain {code}` says more\n")


@pytest.mark.usefixtures("_known_machine")
def test_show_prints_kernels_and_memory(model, capsys):
    assert main(["show", model, "--size", "rows=7", "--threads", "1"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("small, 1 thread\n  input   x: f32[rows, 8]\n")
    assert "shown for x [7, 8]" in text
    assert " relu " in text
    assert "of the limit" in text
    assert "\nweights  " in text
    assert "graph small" not in text


@pytest.mark.usefixtures("_known_machine")
def test_show_tells_programs_the_same(compiled, capsys):
    assert main(["show", compiled, "--size", "rows=7", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert [row["label"] for row in facts["kernels"]] == ["relu", "product"]
    product = facts["kernels"][1]
    assert product["flops"] == 2 * 7 * 8 * 4
    limit = max(product["flops"] / 100e9, product["moved_bytes"] / 10e9)
    assert product["share_of_limit"] == pytest.approx(limit / product["time_s"])
    assert facts["memory"]["weights_bytes"] > 0
    assert facts["model"]["shapes"] == {"x": [7, 8]}


def residual_model():
    """y = (h + tanh(h·V)·V) · V with h = x·V: the sum is written over h."""
    v = np.random.default_rng(0).uniform(-0.5, 0.5, (16, 16)).astype(np.float32)
    nodes = [
        onnx.helper.make_node("MatMul", ["x", "V"], ["h"], "first"),
        onnx.helper.make_node("MatMul", ["h", "V"], ["p"]),
        onnx.helper.make_node("Tanh", ["p"], ["t"]),
        onnx.helper.make_node("MatMul", ["t", "V"], ["u"]),
        onnx.helper.make_node("Add", ["u", "h"], ["s"]),
        onnx.helper.make_node("MatMul", ["s", "V"], ["y"]),
    ]
    ports = [
        onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ["n", 16]) for name in "xy"
    ]
    weights = [onnx.numpy_helper.from_array(v, "V")]
    graph = onnx.helper.make_graph(nodes, "residual", ports[:1], ports[1:], weights)
    return onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 18)])


def test_show_tells_what_is_written_over_what(tmp_path, capsys):
    onnx.save(residual_model(), tmp_path / "residual.onnx")
    command = ["show", str(tmp_path / "residual.onnx"), "--memory", "--size", "n=5"]
    assert main(command) == 0
    assert "1 of them overwritten in place" in capsys.readouterr().out
    assert main([*command, "--json"]) == 0
    memory = json.loads(capsys.readouterr().out)["memory"]
    (below,) = memory["overwritten"]
    assert below["size_bytes"] == 320
    assert below["in_place_of"] in [buffer["name"] for buffer in memory["buffers"]]
    assert memory["without_reuse_bytes"] == 3 * 320


def test_show_prints_the_graph_alone_if_asked_for(model, capsys):
    assert main(["show", model, "--graph"]) == 0
    text = capsys.readouterr().out
    assert "graph small\n  input    x: f32[rows, 8]" in text
    assert "memory" not in text


def test_show_writes_a_chrome_trace(compiled, tmp_path, capsys):
    path = tmp_path / "trace.json"
    assert main(["show", compiled, "--memory", "--trace", str(path)]) == 0
    events = json.loads(path.read_text(encoding="utf-8"))["traceEvents"]
    assert [event["name"] for event in events] == ["relu", "product"]
    assert "arena" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("stage", "comment"), [("program", "#"), ("scheduled", "#"), ("llvm", ";")]
)
def test_show_prints_a_kernel_at_a_stage(model, stage, comment, capsys):
    assert main(["show", model, "--stage", stage, "--kernel", "1", "--threads", "1"]) == 0
    text = capsys.readouterr().out
    assert text.startswith(f"{comment} kernel 1: product\n")
    assert "kernel_1" in text
    assert "kernel_0" not in text


@pytest.mark.filterwarnings("default")
def test_show_has_nothing_to_show_of_a_sequence(tmp_path, capsys):
    path = tmp_path / "sequence.onnx"
    onnx.save(sequence_model(), path)
    assert main(["show", str(path)]) == 1
    assert "K046" in capsys.readouterr().err


def test_the_cache_is_listed_and_cleared(tmp_path, model, monkeypatch, capsys):
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(tmp_path / "cache"))
    assert main(["cache", "dir"]) == 0
    assert capsys.readouterr().out == f"{tmp_path / 'cache'}\n"
    assert main(["cache", "list"]) == 0
    assert capsys.readouterr().out == "no compiled models\n"
    _run_in_a_process(["run", model])  # what is kept is there when a process has ended
    assert main(["cache", "list"]) == 0
    assert "\nsmall.onnx " in capsys.readouterr().out
    assert main(["cache", "size", "--json"]) == 0
    sizes = json.loads(capsys.readouterr().out)
    assert sizes["models"]["entries"] == 1
    assert sizes["kernels"]["entries"] == 2
    assert main(["cache", "size"]) == 0
    assert capsys.readouterr().out.splitlines()[1].startswith("models")
    assert main(["cache", "prune"]) == 0
    assert capsys.readouterr().out.startswith("removed: 0 models, 0 kernels")
    assert main(["cache", "clear", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["models"] == 1
    assert main(["cache", "list", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == []


def test_doctor_checks_a_compiled_model(compiled, tmp_path, capsys):
    assert main(["doctor", compiled]) == 0
    text = capsys.readouterr().out
    assert "whole, and can run on this machine" in text
    assert "x: f32[rows, 8]" in text
    content = bytearray(Path(compiled).read_bytes())
    content[-1] ^= 1  # in the weights, which loading does not read
    damaged = tmp_path / "damaged.tw"
    damaged.write_bytes(content)
    assert main(["doctor", str(damaged)]) == 1
    assert "A111" in capsys.readouterr().err


def _run_in_a_process(arguments: list[str]) -> None:
    command = [sys.executable, "-m", "tilewright.cli", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""  # no progress where nobody watches
