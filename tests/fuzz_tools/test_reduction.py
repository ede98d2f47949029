"""Findings become small, stay findings, and survive as text."""

from __future__ import annotations

import copy
from dataclasses import replace

import numpy as np
import pytest
from onnx import numpy_helper

from fuzz import judge as judging
from fuzz.__main__ import main
from fuzz.case import Case, Setting
from fuzz.engines import run_reference
from fuzz.generate import generate
from fuzz.judge import judge
from fuzz.kept import read_kept, text_of, write_kept
from fuzz.reduction import reduce_case


def _tanh_as_sinh(case):
    model = copy.deepcopy(case.model)
    for node in model.graph.node:
        node.op_type = {"Tanh": "Sinh"}.get(node.op_type, node.op_type)
    return run_reference(model, case.runs), []


@pytest.fixture
def planted(monkeypatch):
    monkeypatch.setattr(judging, "run_tilewright", _tanh_as_sinh)
    ops = ["Tanh", "Add", "Transpose", "Relu", "Mul", "Concat"]
    for seed in range(200):
        case = generate(seed, ops=ops, opset=17)
        if len(case.operators) >= 4 and "Tanh" in case.operators and judge(case).kind == "wrong":
            return case
    raise AssertionError("no such graph")


def test_a_planted_fault_is_reduced_to_its_operator(planted):
    small, verdict = reduce_case(planted, judge(planted), judge=judge)
    assert verdict.kind == "wrong"
    assert small.operators == ["Tanh"]
    assert len(small.runs) == 1
    assert all(a.size <= 2 for a in small.runs[0].values())
    assert small.setting == Setting()


def test_what_is_kept_reads_back_as_the_same_case(tmp_path):
    for seed in (2, 13, 41, 52, 62, 68, 75, 88):
        case = generate(seed)
        path = tmp_path / f"case_{seed}.py"
        write_kept(path, case, judging.Verdict("wrong", 'a "quoted" text'))
        again = read_kept(path).case
        assert again.setting == case.setting
        assert again.model.graph.node == case.model.graph.node
        assert again.model.graph.input == case.model.graph.input
        assert again.model.graph.output == case.model.graph.output
        assert again.model.functions == case.model.functions
        for a, b in zip(again.model.graph.initializer, case.model.graph.initializer, strict=True):
            np.testing.assert_array_equal(numpy_helper.to_array(a), numpy_helper.to_array(b))
        for a, b in zip(again.runs, case.runs, strict=True):
            assert all(a[n].tobytes() == b[n].tobytes() and a[n].dtype == b[n].dtype for n in b)


def test_cases_go_through_files_and_pipes(tmp_path):
    case = replace(generate(5), setting=Setting("strict", 2))
    case.save(tmp_path / "model.onnx")
    for again in (
        Case.load(tmp_path / "model.onnx", case.setting),
        Case.from_bytes(case.to_bytes()),
    ):
        assert again.model == case.model
        assert again.setting == case.setting
        for a, b in zip(again.runs, case.runs, strict=True):
            assert all(a[n].tobytes() == b[n].tobytes() and a[n].dtype == b[n].dtype for n in b)


def test_the_text_says_what_was_found():
    text = text_of(generate(3), judging.Verdict("refused", "ModelError: no"))
    assert text.startswith('"""refused: ModelError: no')


def test_the_commands_have_help_and_exit_codes(capsys, tmp_path):
    assert main([]) == 2
    assert main(["--help"]) == 0
    assert "graphs" in capsys.readouterr().out
    with pytest.raises(SystemExit) as ended:
        main(["graphs", "--ops", "NoSuch"])
    assert ended.value.code == 2
    out = tmp_path / "report.json"
    options = ["--count", "2", "--ops", "Abs", "--out", str(out), "--keep", str(tmp_path)]
    assert main(["graphs", *options]) == 0
    assert '"graphs": 2' in out.read_text()


def test_reduce_writes_a_small_text(planted, tmp_path, capsys):
    planted.save(tmp_path / "big.onnx")
    assert main(["reduce", str(tmp_path / "big.onnx")]) == 0
    assert read_kept(tmp_path / "big_small.py").case.operators == ["Tanh"]
    assert "written to" in capsys.readouterr().out


def test_reduce_says_if_there_is_nothing(tmp_path):
    generate(0, ops=["Abs"]).save(tmp_path / "fine.onnx")
    assert main(["reduce", str(tmp_path / "fine.onnx")]) == 1
