"""Small files: weights that are made when they are loaded are those that would have been stored."""

from __future__ import annotations

import copy
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import ModelProto, helper

import tilewright as tw
from tests.background import wait_for_writers
from tests.expect import raises_code
from tests.unit.model.test_control_flow import FLOAT, info, model, node
from tilewright.cli import main
from tilewright.model.assemble import Assembled, assemble
from tilewright.model.compilation import Chosen
from tilewright.model.compiler import choose_layouts
from tilewright.model.small import with_small_weights
from tilewright.runtime.artefact import Parts, open_artefact, save
from tilewright.runtime.image import Image
from tilewright.target import Target

LEVELS = ("x86-64-v2", "x86-64-v3", "x86-64-v4")
"""Each has vectors of its own width, and so other layouts of weights."""

BARE = """
import sys

class Absent:
    def find_spec(self, name, *_):
        if name.split(".")[0] in ("llvmlite", "onnx"):
            raise ImportError(name)

sys.meta_path.insert(0, Absent())
import numpy as np
import tilewright as tw

x = np.load(sys.argv[2])
np.save(sys.argv[3], tw.load(sys.argv[1]).run({"x": x})[0])
"""


def _weights(*shape: int) -> np.ndarray:
    """Numbers of very different sizes, zeros of both signs and the smallest ones among them."""
    rng = np.random.default_rng(len(shape))
    made = rng.standard_normal(shape) * 10.0 ** rng.integers(-12, 6, shape)
    made.flat[:6] = 0.0, -0.0, 1e-45, -1e-40, 1e30, -3e38
    return made.astype(np.float32)


def _network(op: str, weights: np.ndarray, space: list[Any], **attributes: Any) -> ModelProto:
    rank = weights.ndim - 2
    side = 0 if op == "Conv" else 1
    channels, filters = weights.shape[1 - side] * attributes.get("group", 1), weights.shape[side]
    made = helper.make_node(op, ["x", "w"], ["y"], pads=[1] * 2 * rank, **attributes)
    bias = node("Add", "y b", "z")
    return model(
        [made, bias],
        [info("x", FLOAT, [1, channels, *space])],
        "z",
        {"w": weights, "b": _weights(filters, *(1,) * rank)},
    )


CASES: dict[str, Callable[[], ModelProto]] = {
    "plane": lambda: _network("Conv", _weights(48, 40, 3, 3), [28, 28]),
    "uneven channels": lambda: _network("Conv", _weights(37, 33, 3, 3), [20, 20]),
    "strides": lambda: _network("Conv", _weights(40, 32, 3, 3), [40, 40], strides=[2, 2]),
    "groups": lambda: _network("Conv", _weights(64, 32, 3, 3), [28, 28], group=2),
    "volume": lambda: _network("Conv", _weights(40, 32, 3, 3, 3), [4, 20, 20]),
    "line": lambda: _network("Conv", _weights(64, 64, 3), [400]),
    "any size": lambda: _network("Conv", _weights(40, 32, 3, 3), ["h", "w"]),
    "transposed": lambda: _network(
        "ConvTranspose", _weights(48, 40, 4, 4), [24, 24], strides=[2, 2]
    ),
}


def _assembled(make: Callable[[], ModelProto], target: Target) -> Assembled:
    chosen = choose_layouts(make(), target, 2, lambda _: None)
    assert isinstance(chosen, Chosen)
    return assemble(chosen.choice.graph, target, 2)


def _runs(level: str) -> bool:
    return not Target.named(level).code_features - Target.host().features


@pytest.mark.parametrize(
    ("name", "level"),
    [*((name, LEVELS[0]) for name in CASES), *(("plane", level) for level in LEVELS[1:])],
)
def test_weights_are_those_that_would_have_been_stored(name, level):
    """To the last bit, whatever the vectors of the machine."""
    if not _runs(level):
        pytest.skip(f"this machine does not run code for {level}")
    target = Target.named(level)
    whole = _assembled(CASES[name], target)
    small = with_small_weights(whole, target, 2)
    assert small.expansion is not None, "there are Winograd weights"
    stored = small.weights
    assert stored.nbytes < whole.constants.size_bytes
    found = small.expansion.expand(stored, Image.from_bytes(small.code), 2)
    assert found.tobytes() == whole.weights.tobytes()
    assert small.program is whole.program


def _saved(path: Path, make: Callable[[], ModelProto] = CASES["plane"], **options: Any) -> Path:
    tw.compile(make(), target=LEVELS[0], cache=False, **options).save(path)
    return path


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _saved(tmp_path_factory.mktemp("small") / "small.tw", small=True, threads=1)


def _x() -> np.ndarray:
    return np.random.default_rng(1).standard_normal((1, 40, 28, 28)).astype(np.float32)


def test_a_small_file_runs_without_the_compiler(small, tmp_path):
    """Its weights are made by code of the file."""
    np.save(tmp_path / "x.npy", _x())
    command = [sys.executable, "-c", BARE, small, tmp_path / "x.npy", tmp_path / "y.npy"]
    subprocess.run(list(map(str, command)), check=True)
    (wanted,) = tw.compile(CASES["plane"](), LEVELS[0], 1, cache=False).run({"x": _x()})
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), wanted)


def test_a_small_file_is_smaller_and_stays_so(small, tmp_path):
    whole = _saved(tmp_path / "whole.tw", threads=1)
    assert small.stat().st_size < whole.stat().st_size
    tw.load(small).save(tmp_path / "again.tw")
    assert (tmp_path / "again.tw").read_bytes() == small.read_bytes()


def test_the_cache_tells_both_apart(tmp_path):
    made = [
        tw.compile(CASES["line"](), LEVELS[0], 1, cache=tmp_path, small=small)
        for small in (False, True)
    ]
    wait_for_writers()
    again = tw.compile(CASES["line"](), LEVELS[0], 1, cache=tmp_path, small=True)
    assert again.graph is None, "it comes from the cache"
    sizes = [module.memory().weights_bytes for module in (*made, again)]
    assert len(set(sizes)) == 1
    again.save(tmp_path / "again.tw")
    made[0].save(tmp_path / "whole.tw")
    assert (tmp_path / "again.tw").stat().st_size < (tmp_path / "whole.tw").stat().st_size


def test_without_weights_that_grow_both_files_are_one(tmp_path):
    def product() -> ModelProto:
        inputs = [info("x", FLOAT, ["n", 64])]
        return model([node("MatMul", "x w", "y")], inputs, "y", {"w": np.eye(64, dtype="f4")})

    whole = _saved(tmp_path / "whole.tw", product, threads=1)
    same = _saved(tmp_path / "same.tw", product, threads=1, small=True)
    assert whole.read_bytes() == same.read_bytes()


def test_files_for_another_machine_are_small_as_well(tmp_path, capsys):
    onnx.save(CASES["plane"](), tmp_path / "m.onnx")
    for options in ([], ["--small"]):
        path = tmp_path / f"m{len(options)}.tw"
        given = [tmp_path / "m.onnx", "-o", path, "--target", "aarch64", *options]
        assert main(["compile", *map(str, given)]) == 0
    assert (tmp_path / "m1.tw").stat().st_size < (tmp_path / "m0.tw").stat().st_size
    assert capsys.readouterr().out.count("input   x: f32[1, 40, 28, 28]") == 2


def _put(field: str, value: object) -> Callable[[dict[str, Any]], None]:
    return lambda expansion: expansion.update({field: value})


def _shifted(field: str, by: int) -> Callable[[dict[str, Any]], None]:
    return lambda expansion: expansion.update({field: [at + by for at in expansion[field]]})


@pytest.mark.parametrize(
    "change",
    [
        _put("bytes", 1 << 61),
        _put("bytes", -64),
        _put("bytes", True),
        _put("bytes", 64),
        _put("copied", []),
        _put("copied", [[0, 0, 1 << 40]]),
        _put("copied", [[0, 0]]),
        _put("copied", [[-64, 0, 64]]),
        _put("sources", []),
        _put("sources", ["0", "0"]),
        _put("results", [0, 0]),
        _shifted("sources", 1),
        _shifted("sources", 1 << 30),
        _shifted("results", 64),
        lambda expansion: expansion.clear(),
    ],
)
def test_what_an_expansion_says_is_not_believed(small, tmp_path, change):
    """The checksums of such a file fit: somebody wrote it so."""
    found = open_artefact(small)
    extra = copy.deepcopy(found.metadata["extra"])
    change(extra["expansion"])
    weights = [np.frombuffer(found.weights, np.uint8)]
    about = found.metadata["target"], found.metadata["tool"], extra
    path = tmp_path / "changed.tw"
    save(path, Parts(found.program_json, bytes(found.image.bytes), weights, *about))
    with raises_code("A111", text="the metadata do not say what they should"):
        tw.load(path)


def test_programs_of_expansions_are_verified(small, tmp_path):
    found = open_artefact(small)
    extra = copy.deepcopy(found.metadata["extra"])
    extra["expansion"]["program"]["steps"][0][1] = 999
    weights = [np.frombuffer(found.weights, np.uint8)]
    about = found.metadata["target"], found.metadata["tool"], extra
    path = tmp_path / "changed.tw"
    save(path, Parts(found.program_json, bytes(found.image.bytes), weights, *about))
    with raises_code("A201", text="steps[0].kernel"):
        tw.load(path)
