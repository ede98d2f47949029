"""Names of a model on a terminal: no command lets them steer it, and JSON has them as they are."""

from __future__ import annotations

import ast
import json

import pytest

import tilewright.cli
from tests.hostile.forged import forge, forged, require_readable
from tests.machine import known_machine
from tests.meta.source_files import sources
from tests.settled import reshaped
from tests.small import sequence_model, text_inside, two_outputs
from tilewright.cli import main, show_model

MODELS = {
    "plain": two_outputs(),
    "strings": sequence_model(),
    "settled": reshaped(),
    "inside": text_inside(),
}
COMMANDS = [
    ["compile", "plain.onnx", "-o", "made.tw"],
    ["compile", "settled.onnx", "-o", "made.tw"],
    ["compile", "settled.onnx", "-o", "made.tw", "--target", "aarch64"],
    ["compile", "strings.onnx", "-o", "made.tw"],
    ["compile", "inside.onnx", "-o", "made.tw"],
    ["show", "plain.onnx"],
    ["show", "plain.onnx", "--graph"],
    ["show", "plain.onnx", "--layouts"],
    ["show", "plain.onnx", "--layouts", "--memory"],
    ["show", "plain.onnx", "--memory", "--kernels"],
    *(["show", "plain.onnx", "--stage", stage] for stage in ("draft", "llvm", "assembly")),
    ["show", "settled.onnx"],
    ["show", "strings.onnx"],
    ["show", "inside.onnx", "--graph", "--kernels"],
    ["show", "plain.tw"],
    ["show", "plain.tw", "--graph"],
    ["run", "plain.onnx"],
    ["run", "plain.tw", "--print"],
    ["run", "strings.onnx"],
    ["run", "settled.onnx"],
    ["run", "plain.onnx", "--size", "other=3"],
    ["run", "plain.onnx", "--input", "other=3"],
    ["run", "plain.onnx", "--settle", "other=3"],
    ["doctor", "plain.tw"],
    ["cache", "list"],
    ["bench", "plain.onnx", "--seconds", "0.1"],
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("forged")
    for name, model in MODELS.items():
        (folder / f"{name}.onnx").write_bytes(forge(model).SerializeToString())
    return folder


@pytest.fixture(autouse=True)
def _here(folder, monkeypatch):
    """Commands run in the folder, and nobody has to measure a machine."""
    monkeypatch.chdir(folder)
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(folder / "cache"))
    monkeypatch.setattr(show_model, "measured_host", known_machine)
    monkeypatch.setattr(show_model, "PROFILE_SECONDS", 0.0)


@pytest.fixture
def _compiled(folder, capsys):
    if not (folder / "plain.tw").exists():
        assert main(["compile", "plain.onnx", "-o", "plain.tw", "--threads", "1"]) == 0
        capsys.readouterr()


@pytest.mark.usefixtures("_compiled")
@pytest.mark.filterwarnings("always")
@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_no_command_prints_what_steers_a_terminal(command, capsys):
    threads = ["--threads", "1"] if command[0] in {"compile", "show", "run", "bench"} else []
    assert main([*command, *threads]) in {0, 1}
    out, err = capsys.readouterr()
    assert out or err
    # Tables of assembly have tabs, and programs have names of sizes in full.
    require_readable(out.replace("\t", " "), longest=None)
    require_readable(err)


@pytest.mark.usefixtures("_compiled")
def test_json_has_names_as_they_are(capsys):
    def facts(*command: str) -> dict:
        assert main([*command, "--json"]) == 0
        text = capsys.readouterr().out
        require_readable(text, longest=None)
        return json.loads(text)

    made = facts("compile", "plain.onnx", "-o", "made.tw", "--threads", "1")
    assert made["inputs"][0]["name"] == forged("x")
    names = [output["name"] for output in facts("run", "plain.tw")["outputs"]]
    assert names == [forged("scores"), forged("positive")]
    head = facts("show", "plain.tw", "--memory")["model"]
    assert head["name"] == forged("small")
    assert head["outputs"][1]["name"] == forged("positive")
    head = facts("show", "plain.onnx", "--layouts", "--threads", "1")["model"]
    assert head["inputs"][0]["name"] == forged("x")
    assert facts("doctor", "plain.tw")["model"]["name"] == forged("small")
    assert facts("cache", "list")[0]["model"] == forged("small")


def test_commands_print_through_one_door():
    """Only `cli/output.py` prints: nothing else has to think of terminals."""
    assert tilewright.cli.main is main
    doors = [
        source.at(node.lineno)
        for source in sources()
        if source.part == "cli" and source.name != "cli.output"
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        if node.func.id == "print"
    ]
    assert not doors, "\n".join(doors)
