"""Modules for other machines: compiled, saved and looked into here, run there."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

import tilewright as tw
from tests.expect import raises_code
from tests.small import rows, two_outputs
from tilewright.cli import main
from tilewright.model.foreign import ForeignModule
from tilewright.target import Target

HOST = Target.host()
OTHERS = ("x86-64", "aarch64", "riscv64", "riscv64+v")
FOREIGN = [name for name in OTHERS if Target.named(name).missing_on(HOST)]


@pytest.fixture(params=FOREIGN)
def module(request: pytest.FixtureRequest) -> tw.Module:
    return tw.compile(two_outputs(), target=request.param, threads=1, cache=False)


def test_it_runs_nowhere_here(module: tw.Module) -> None:
    feeds, scores = {"x": rows(3)}, np.zeros((3, 4), np.float32)
    with raises_code("T006", text="this machine lacks the architecture"):
        module.run(feeds)
    with raises_code("T006"):
        module.run_into(feeds, {"scores": scores})
    with raises_code("T006"):
        module.profile(feeds)
    with raises_code("T006"):
        module.run_async(feeds).result(timeout=60)


def test_it_can_be_looked_into(module: tw.Module) -> None:
    here = tw.compile(two_outputs(), threads=1, cache=False)
    assert isinstance(module, ForeignModule)
    assert (module.name, module.threads, module.kernels) == (here.name, 1, here.kernels)
    assert (module.inputs, module.outputs) == (here.inputs, here.outputs)
    assert module.graph is not None
    use = module.memory()
    assert (use.frames, use.arena_bytes) == (0, 0)
    assert min(use.weights_bytes, use.image_bytes) > 0


def test_the_file_is_that_of_the_command_line(module: tw.Module, tmp_path: Path) -> None:
    assert isinstance(module, ForeignModule)
    model, by_command, by_module = (tmp_path / name for name in ("m.onnx", "c.tw", "m.tw"))
    onnx.save(two_outputs(), model)
    command = ["compile", str(model), "-o", str(by_command), "--threads", "1"]
    assert main([*command, "--target", module.target.name]) == 0
    module.save(by_module)
    assert by_module.read_bytes() == by_command.read_bytes()
    with raises_code("A113"):
        tw.load(by_module)


def test_the_cache_is_left_alone(tmp_path: Path) -> None:
    tw.compile(two_outputs(), target=FOREIGN[0], cache=tmp_path / "cache")
    assert not (tmp_path / "cache").exists()
