"""Models that are compiled for the values of inputs: what is settled, kept, refused and told."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import tilewright as tw
from tests.expect import raises_code
from tests.settled import X, axes, compilations, reshaped, summed
from tests.small import make
from tilewright.model.settled import SettledModule


@pytest.fixture
def module() -> tw.Module:
    return tw.compile(summed(), cache=False, threads=1)


def test_each_value_is_compiled_once_and_native(module, monkeypatch):
    seen = compilations(monkeypatch)
    assert isinstance(module, SettledModule)
    assert module.settled == ("axes",)
    assert not seen, "nothing is known before the first run"
    for _ in range(2):
        for dims in [(0,), (1, 2), (-1,), (0, 1, 2)]:
            (y,) = module.run({"x": X, "axes": axes(*dims)})
            assert y.shape == X.sum(dims).shape
            np.testing.assert_allclose(y, X.sum(dims), rtol=1e-6)
    assert len(seen) == 4
    assert module.by_reference == ()
    assert module.kernels > 0


def test_sizes_that_are_not_settled_stay_symbolic(module, monkeypatch):
    seen = compilations(monkeypatch)
    for n in (1, 2, 5):
        x = np.ones((n, 3, 4), np.float32)
        np.testing.assert_array_equal(module.run({"x": x, "axes": axes(1)})[0], np.full((n, 4), 3))
    assert len(seen) == 1


def test_a_model_without_such_inputs_is_no_settled_module():
    model = summed()
    model.graph.input.pop()
    model.graph.initializer.append(helper.make_tensor("axes", TensorProto.INT64, [1], [1]))
    module = tw.compile(model, cache=False)
    assert type(module) is tw.Module
    assert module.settled == ()


def test_it_has_the_face_of_a_module(module):
    feeds = {"x": X, "axes": axes(0, 2)}
    wanted = X.sum((0, 2))
    assert [str(info) for info in module.inputs] == ["x: f32[n, 3, 4]", "axes: i64[k]"]
    assert [info.name for info in module.outputs] == ["y"]
    assert module.name == "small"
    assert module.threads == 1
    assert repr(module).startswith("<module small(x: f32[n, 3, 4], axes: i64[k]) -> (y: tensor")
    into = np.zeros(3, np.float32)
    module.run_into(feeds, {"y": into})
    np.testing.assert_allclose(into, wanted)
    np.testing.assert_allclose(module.run_async(feeds).result(timeout=60)[0], wanted)
    (y,), profile = module.run_profiled(feeds)
    np.testing.assert_allclose(y, wanted)
    assert len(profile.events) == len(module.profile(feeds).events) > 0
    use = module.memory()
    assert use.image_bytes > 0
    assert use.weights_bytes > 0
    assert use.frames > 0


def test_a_session_runs_it():
    session = tw.InferenceSession(summed().SerializeToString())
    assert [arg.name for arg in session.get_inputs()] == ["x", "axes"]
    (y,) = session.run(["y"], {"x": X, "axes": axes(1)})
    np.testing.assert_allclose(y, X.sum(1))
    binding = session.io_binding()
    binding.bind_cpu_input("x", X)
    binding.bind_cpu_input("axes", axes(1))
    binding.bind_output("y")
    session.run_with_iobinding(binding)
    np.testing.assert_allclose(binding.copy_outputs_to_cpu()[0], X.sum(1))


def test_values_may_be_numbers_or_arrays_in_any_order(module, monkeypatch):
    seen = compilations(monkeypatch)
    backwards = np.array([2, 9, 1], np.int64)[::-2]
    swapped = axes(1, 2).astype(">i8")
    for value in (axes(1, 2), [1, 2], (1, 2), backwards, swapped):
        np.testing.assert_allclose(module.run({"x": X, "axes": value})[0], X.sum((1, 2)))
    assert len(seen) == 1


@pytest.mark.parametrize(
    ("value", "code"),
    [
        (np.array([1.0], np.float32), "C003"),
        (np.array([1], np.int32), "C003"),
        (np.array([[1]], np.int64), "C004"),
        (object(), "C002"),
    ],
)
def test_values_that_do_not_fit_are_refused(module, value, code):
    with raises_code(code, facts={"param": "axes", "kernel": "small"}):
        module.run({"x": X, "axes": value})
    np.testing.assert_allclose(module.run({"x": X, "axes": axes(1)})[0], X.sum(1))


def test_names_are_checked(module):
    with raises_code("C021", facts={"param": "axes", "model": "small"}):
        module.run({"x": X})
    with raises_code("C022", facts={"param": "z", "inputs": "`x`, `axes`"}):
        module.run({"x": X, "axes": axes(1), "z": X})
    with raises_code("C021", facts={"param": "x", "model": "small"}):
        module.run({"axes": axes(1)})


def test_a_declared_shape_is_kept():
    module = tw.compile(summed(axes_shape=(2,)), cache=False)
    with raises_code("C005", facts={"param": "axes"}):
        module.run({"x": X, "axes": axes(1)})
    np.testing.assert_allclose(module.run({"x": X, "axes": axes(0, 1)})[0], X.sum((0, 1)))


def test_sizes_that_a_settled_input_shares_are_checked():
    """`repeats` has as many elements as x has dimensions here: one name, one size."""
    model = make([helper.make_node("Tile", ["x", "repeats"], ["y"])], [("x", ["n", "m"])], [])
    repeats = helper.make_tensor_value_info("repeats", TensorProto.INT64, ["n"])
    model.graph.input.append(repeats)
    model.graph.output.append(helper.make_tensor_value_info("y", TensorProto.FLOAT, None))
    module = tw.compile(model, cache=False)
    x = np.ones((2, 3), np.float32)
    assert module.run({"x": x, "repeats": axes(2, 1)})[0].shape == (4, 3)
    with raises_code("C005", facts={"param": "x"}):
        module.run({"x": np.ones((3, 3), np.float32), "repeats": axes(2, 1)})


def test_values_that_make_no_sense_end_in_an_error_each_time(module):
    for _ in range(20):  # and do not count among those that were compiled
        with raises_code("M004", text="ReduceSum"):
            module.run({"x": X, "axes": axes(7)})
    np.testing.assert_allclose(module.run({"x": X, "axes": axes(0)})[0], X.sum(0))


def test_values_can_be_given_ahead(tmp_path):
    for value in (axes(1), [1]):
        module = tw.compile(summed(), cache=tmp_path, settled={"axes": value})
        assert type(module) is tw.Module
        assert [info.name for info in module.inputs] == ["x"]
        assert [str(info) for info in module.outputs] == ["y: f32[n, 4]"]
        np.testing.assert_allclose(module.run({"x": X})[0], X.sum(1))
        module.save(tmp_path / "one.tw")
        np.testing.assert_allclose(tw.load(tmp_path / "one.tw").run({"x": X})[0], X.sum(1))
    other = tw.compile(summed(), cache=tmp_path, settled={"axes": axes(2)})
    np.testing.assert_allclose(other.run({"x": X})[0], X.sum(2))


def test_some_values_can_be_given_ahead_and_others_later():
    model = reshaped()
    model.graph.node[0].output[0] = "t"
    model.graph.node.append(helper.make_node("ReduceSum", ["t", "axes"], ["y"], keepdims=0))
    model.graph.input.append(helper.make_tensor_value_info("axes", TensorProto.INT64, ["k"]))
    module = tw.compile(model, cache=False, settled={"shape": [4, 6]})
    assert module.settled == ("axes",)
    assert [info.name for info in module.inputs] == ["x", "axes"]
    (y,) = module.run({"x": X, "axes": axes(0)})
    np.testing.assert_allclose(y, X.reshape(4, 6).sum(0))


def test_values_given_ahead_must_fit():
    with raises_code("K020", text="inputs of the model: `x`, `axes`"):
        tw.compile(summed(), cache=False, settled={"axis": [1]})
    with raises_code("C003", facts={"param": "axes"}):
        tw.compile(summed(), cache=False, settled={"axes": np.array([1.5], np.float32)})


def test_a_path_may_be_anything_that_says_where_it_leads(tmp_path):
    class Place:
        def __fspath__(self) -> str:
            return str(tmp_path / "model.onnx")

    onnx.save(summed(), Place().__fspath__())
    module = tw.compile(Place(), cache=False, settled={"axes": axes(1)})
    assert module.run({"x": X})[0].shape == (2, 4)


@pytest.mark.parametrize("kind", [TensorProto.INT32, TensorProto.INT64])
def test_parameters_have_the_types_of_their_operators(kind):
    node = helper.make_node("CumSum", ["x", "axis"], ["y"])
    model = make([node], [("x", [2, 3, 4])], [("y", [2, 3, 4])])
    model.graph.input.append(helper.make_tensor_value_info("axis", kind, []))
    module = tw.compile(model, cache=False)
    for axis in (0, 1, -1):
        value = np.array(axis, helper.tensor_dtype_to_np_dtype(kind))
        np.testing.assert_allclose(module.run({"x": X, "axis": value})[0], X.cumsum(axis))
    assert module.by_reference == ()
