"""What the names of sizes say: nothing if they mean "unknown", and not too much otherwise."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper, parser

import tilewright
from tests.expect import raises_code
from tilewright.errors import TilewrightWarning
from tilewright.frontend.onnx.named_sizes import is_proper
from tilewright.model import module as modules

UNKNOWN = ["", " ", "?", "??", "*", "_", "-", "-1", "0", "None", "none", "null", "nan", "unk__6"]
UNKNOWN += ["unk__123", "unk", "unknown", "Unknown", "N/A", "n/a", "na", "any", "dynamic", "..."]
PROPER = ["n", "N", "batch", "x_0", "DynamicDimension.0", "p2o.DynamicDimension.1", "unknown_0"]
PROPER += ["nan_count", "seq_len", "none_of", "n1", "h/2", "batch_size * 2"]


@pytest.mark.parametrize("name", UNKNOWN)
def test_words_for_what_is_not_known(name: str) -> None:
    assert not is_proper(name)


@pytest.mark.parametrize("name", PROPER)
def test_proper_names(name: str) -> None:
    assert is_proper(name)


def model_of(nodes: str, *inputs: tuple[str, list[str | int]], **weights: Any) -> onnx.ModelProto:
    made = parser.parse_graph(f"g () => (float y) {{ {nodes} }}")
    made.initializer.extend(numpy_helper.from_array(np.array(v), k) for k, v in weights.items())
    made.input.extend(helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in inputs)
    versions = [helper.make_opsetid("", 20)]
    made.output[0].type.tensor_type.ClearField("shape")
    return helper.make_model(made, ir_version=9, opset_imports=versions)


def ones(*shape: int) -> np.ndarray[Any, Any]:
    return np.ones(shape, np.float32)


@pytest.mark.parametrize("name", ["?", "-1", "None", "unk__6", "*"])
def test_sizes_that_are_not_known_differ(name: str) -> None:
    model = model_of("y = Relu(x)", ("x", [name, 3, name]))
    module = tilewright.compile(model, cache=False, threads=1)
    assert module.inputs[0].shape == ("x_0", 3, "x_2")
    assert module.spreading is None
    assert module.run({"x": ones(2, 3, 5)})[0].shape == (2, 3, 5)


def summed(*names: str) -> onnx.ModelProto:
    """Sums that do not care whether sizes are equal."""
    inputs = [(letter, [name, 2]) for letter, name in zip("xz", names, strict=True)]
    nodes = "a = ReduceSum(x) b = ReduceSum(z) y = Add(a, b)"
    return model_of(nodes, *inputs)  # type: ignore[arg-type]


def test_sizes_of_one_name_that_differ_run_with_one_warning() -> None:
    module = tilewright.compile(summed("n", "n"), cache=False, threads=1)
    assert module.run({"x": ones(3, 2), "z": ones(3, 2)})[0].item() == 12
    with pytest.warns(TilewrightWarning, match="sizes of one name differ in `g`: `n`") as told:
        assert module.run({"x": ones(3, 2), "z": ones(5, 2)})[0].item() == 16
    assert len(told) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        into = ones(1, 1)
        module.run_into({"x": ones(4, 2), "z": ones(1, 2)}, {"y": into})
        assert into.item() == 10
        assert module.run_profiled({"x": ones(0, 2), "z": ones(5, 2)})[0][0].item() == 10
    assert module.spreading is not None
    assert len(module.spreading._versions._made) == 1


def test_where_they_meet_and_one_is_one() -> None:
    model = model_of("y = Add(x, z)", ("x", ["n", "m"]), ("z", ["n", "m"]))
    module = tilewright.compile(model, cache=False, threads=1)
    with pytest.warns(TilewrightWarning, match="`m`, `n`") as told:
        (y,) = module.run({"x": ones(3, 1), "z": ones(1, 5)})
    assert len(told) == 1
    assert y.shape == (3, 5)


@pytest.mark.parametrize(("x", "z"), [((3, 2), (5, 2)), ((3, 2), (0, 2))])
def test_sizes_that_must_be_equal_are_refused_for_their_name(x: Any, z: Any) -> None:
    """Also the second time, and nobody is warned of a run that there is not."""
    model = model_of("y = Add(x, z)", ("x", ["n", 2]), ("z", ["n", 2]))
    module = tilewright.compile(model, cache=False, threads=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(2):
            with raises_code("C006", text="make all extents called `n` equal"):
                module.run({"x": ones(*x), "z": ones(*z)})
        assert module.run({"x": ones(3, 2), "z": ones(3, 2)})[0].shape == (3, 2)


def test_other_faults_are_named_first() -> None:
    module = tilewright.compile(summed("n", "n"), cache=False, threads=1)
    with raises_code("C023", text="C006"):
        module.run({"x": ones(3, 2), "z": ones(5, 2), "k": ones(1)})


def test_a_session_and_a_file(tmp_path: Path) -> None:
    session = tilewright.InferenceSession(summed("n", "n").SerializeToString())
    feeds = {"x": ones(3, 2), "z": ones(5, 2)}
    with pytest.warns(TilewrightWarning, match="differ"):
        assert session.run(None, feeds)[0].item() == 16
    session.module.save(tmp_path / "summed.tw")
    with raises_code("C006", text="there is no model in a compiled file"):
        tilewright.load(tmp_path / "summed.tw").run(feeds)


def test_a_silent_session_says_nothing() -> None:
    options = tilewright.SessionOptions()
    options.log_severity_level = 3
    session = tilewright.InferenceSession(summed("n", "n").SerializeToString(), options)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert session.run(None, {"x": ones(3, 2), "z": ones(5, 2)})[0].item() == 16


def test_a_large_model_in_memory_is_not_kept_for_names(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(modules, "MAX_HELD", 1)
    model, feeds = summed("n", "n"), {"x": ones(3, 2), "z": ones(5, 2)}
    for source in (model, model.SerializeToString()):
        with raises_code("C006", text="too large to be kept"):
            tilewright.compile(source, cache=False).run(feeds)
    onnx.save(model, tmp_path / "summed.onnx")
    with pytest.warns(TilewrightWarning, match="differ"):
        tilewright.compile(tmp_path / "summed.onnx", cache=False).run(feeds)


def test_a_model_that_runs_by_reference() -> None:
    model = model_of("a = Unknown(x) y = Add(a, z)", ("x", ["n", 2]), ("z", ["n", 2]))
    model.graph.node[0].op_type = "SequenceConstruct"
    model.graph.node.insert(1, helper.make_node("SequenceAt", ["a", "k"], ["c"]))
    model.graph.node[2].input[0] = "c"
    model.graph.input.append(helper.make_tensor_value_info("k", TensorProto.INT64, []))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TilewrightWarning)
        module = tilewright.compile(model, cache=False)
        (y,) = module.run({"x": ones(3, 2), "z": ones(1, 2), "k": np.array(0)})
    assert np.array_equal(y, 2 * ones(3, 2))


def test_values_that_are_settled_may_differ() -> None:
    """Both inputs decide what there is to compile, and their sizes have one name."""
    model = parser.parse_model("""<ir_version: 9, opset_import: ["" : 20]>
        g (float[2, 3] x, int64[n] axes, int64[n] others) => (float y, float z) {
            y = ReduceSum<keepdims = 0>(x, axes)
            z = ReduceSum<keepdims = 0>(x, others)
        }""")
    module = tilewright.compile(model, cache=False, threads=1)
    feeds = {"x": ones(2, 3), "axes": np.array([0]), "others": np.array([0, 1])}
    y, z = module.run(feeds)
    assert (y.shape, z.shape) == ((3,), ())
