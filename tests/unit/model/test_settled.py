"""Models that are compiled for the values of inputs: what is settled, kept, refused and told."""

from __future__ import annotations

import multiprocessing
import threading
import warnings

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import tilewright as tw
from tests.background import wait_for_writers
from tests.expect import raises_code
from tests.small import make, sequence_model
from tilewright.errors import ArtefactError
from tilewright.model import settled
from tilewright.model.settled import SettledModule
from tilewright.runtime import artefact
from tilewright.runtime.cache import default_caches
from tilewright.runtime.codec import to_json
from tilewright.runtime.program import Program

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


def summed(axes_type=TensorProto.INT64, axes_shape=("k",)):
    """`y = sum(relu(x), axes)`, where axes are an input: the rank of y depends on their values."""
    nodes = [
        helper.make_node("Relu", ["x"], ["r"]),
        helper.make_node("ReduceSum", ["r", "axes"], ["y"], keepdims=0),
    ]
    model = make(nodes, [("x", ["n", 3, 4])], [])
    axes = helper.make_tensor_value_info("axes", axes_type, axes_shape)
    model.graph.input.append(axes)
    model.graph.output.append(helper.make_tensor_value_info("y", TensorProto.FLOAT, None))
    return model


def axes(*numbers):
    return np.array(numbers, np.int64)


def reshaped():
    """`y = reshape(x, shape)`: only sizes of y depend on values, its rank on their number."""
    model = make([helper.make_node("Reshape", ["x", "shape"], ["y"])], [("x", [2, 3, 4])], [])
    shape = helper.make_tensor_value_info("shape", TensorProto.INT64, ["rank"])
    model.graph.input.append(shape)
    model.graph.output.append(helper.make_tensor_value_info("y", TensorProto.FLOAT, None))
    return model


@pytest.fixture
def module() -> tw.Module:
    return tw.compile(summed(), cache=False, threads=1)


def compilations(monkeypatch) -> list[object]:
    """What models are compiled for from now on."""
    seen: list[object] = []
    whole = settled.Unsettled.compiled

    def counted(self, values):
        seen.append(values)
        return whole(self, values)

    monkeypatch.setattr(settled.Unsettled, "compiled", counted)
    return seen


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


def test_threads_that_ask_for_a_new_value_wait_for_one_compilation(module, monkeypatch):
    seen = compilations(monkeypatch)
    barrier, results = threading.Barrier(6), []

    def work(number):
        barrier.wait(timeout=60)
        dims = (number % 2,)
        results.append((dims, module.run({"x": X, "axes": axes(*dims)})[0]))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=120)
    assert len(results) == 6
    for dims, y in results:
        np.testing.assert_allclose(y, X.sum(dims))
    assert len(seen) == 2


def reshape_each(module, shapes):
    for shape in shapes:
        (y,) = module.run({"x": X, "shape": axes(*shape)})
        np.testing.assert_array_equal(y, X.reshape(shape))


def test_the_last_versions_are_kept(monkeypatch):
    monkeypatch.setattr(settled, "KEPT", 2)
    seen = compilations(monkeypatch)
    module = tw.compile(reshaped(), cache=False, threads=1)
    reshape_each(module, [(24,), (2, 12), (24,), (4, 6), (24,), (2, 12)])
    assert len(seen) == 4, "(2, 12) was the least recently used one when (4, 6) came"


def test_large_versions_are_not_kept(monkeypatch):
    monkeypatch.setattr(settled, "KEPT_BYTES", 0)
    seen = compilations(monkeypatch)
    model = summed()
    weights = helper.make_tensor("w", TensorProto.FLOAT, [4], [1, 2, 3, 4])
    model.graph.initializer.append(weights)
    model.graph.node[0].CopyFrom(helper.make_node("Mul", ["x", "w"], ["r"]))
    module = tw.compile(model, cache=False, threads=1)
    for dims in [(0,), (0,), (1,), (0,)]:
        (y,) = module.run({"x": X, "axes": axes(*dims)})
        np.testing.assert_allclose(y, (X * [1, 2, 3, 4]).sum(dims))
    assert len(seen) == 3, "the last one is kept whatever its size"


def test_values_that_keep_changing_are_told_once_and_run_by_reference(monkeypatch):
    monkeypatch.setattr(settled, "FREE", (3, 3))
    seen = compilations(monkeypatch)
    module = tw.compile(reshaped(), cache=False, threads=1)
    shapes = [(24,), (2, 12), (4, 6), (3, 8), (6, 4), (1, 24)]
    with pytest.warns(tw.TilewrightWarning) as caught:
        reshape_each(module, shapes)
    (told,) = caught
    assert str(told.message) == (
        "`small` was compiled for 3 values of `shape`, which keep changing: new ones run on the "
        "ONNX reference implementation, which is slow. Pass the same values again, or make them "
        "constants of the model"
    )
    assert len(seen) == 4, "three values, and the model as it is"
    assert module.by_reference
    module.run({"x": X, "shape": axes(24)})
    assert len(seen) == 4, "what was compiled before is still there"


def test_values_that_are_used_pay_for_new_ones(monkeypatch):
    monkeypatch.setattr(settled, "FREE", (1, 1))
    monkeypatch.setattr(settled, "RUNS_EACH", 4)
    seen = compilations(monkeypatch)
    module = tw.compile(reshaped(), cache=False, threads=1)
    for _ in range(5):
        module.run({"x": X, "shape": axes(24)})
    module.run({"x": X, "shape": axes(4, 6)})
    assert len(seen) == 2
    assert module.by_reference == ()


def test_there_is_an_end_to_compiling(monkeypatch):
    monkeypatch.setattr(settled, "RUNS_EACH", 1)
    monkeypatch.setattr(settled, "MOST", 2)
    seen = compilations(monkeypatch)
    module = tw.compile(reshaped(), cache=False, threads=1)
    with pytest.warns(tw.TilewrightWarning, match="keep changing"):
        reshape_each(module, [(24,), (24,), (2, 12), (2, 12), (4, 6)])
    assert [values is None for values in seen] == [False, False, True]


def test_long_vectors_are_no_parameters(monkeypatch):
    """A shape of 70 dimensions is data, whatever it is for."""
    seen = compilations(monkeypatch)
    model = make(
        [helper.make_node("Tile", ["x", "repeats"], ["y"])], [("x", ["n"])], [("y", ["m"])]
    )
    model.graph.input.append(helper.make_tensor_value_info("repeats", TensorProto.INT64, ["k"]))
    monkeypatch.setattr("tilewright.frontend.onnx.settled.MAX_ELEMENTS", 0)
    module = tw.compile(model, cache=False)
    with pytest.warns(tw.TilewrightWarning, match="Tile"):
        (y,) = module.run({"x": X[0, 0], "repeats": axes(2)})
    assert y.shape == (8,)
    assert seen == [None]


def test_what_stays_by_reference_is_told_when_it_is_compiled():
    nodes = [
        helper.make_node("Cast", ["x"], ["t"], to=TensorProto.STRING),
        helper.make_node("Cast", ["t"], ["f"], to=TensorProto.FLOAT),
        helper.make_node("ReduceSum", ["f", "axes"], ["y"], keepdims=0),
    ]
    model = make(nodes, [("x", ["n", 3])], [])
    model.graph.input.append(helper.make_tensor_value_info("axes", TensorProto.INT64, ["k"]))
    model.graph.output.append(helper.make_tensor_value_info("y", TensorProto.FLOAT, None))
    module = tw.compile(model, cache=False)
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    with pytest.warns(tw.TilewrightWarning, match="reference"):
        np.testing.assert_allclose(module.run({"x": x, "axes": axes(1)})[0], x.sum(1))
    np.testing.assert_allclose(module.run({"x": x, "axes": axes(0)})[0], x.sum(0))
    assert module.by_reference


def test_versions_are_found_in_the_cache(tmp_path, monkeypatch):
    def run_both():
        module = tw.compile(summed(), cache=tmp_path, threads=1)
        for dims in [(0,), (1, 2)]:
            np.testing.assert_allclose(module.run({"x": X, "axes": axes(*dims)})[0], X.sum(dims))
        wait_for_writers()
        return module

    run_both()
    assert len(default_caches(tmp_path).models.entries()) == 2

    def refuse(*_, **__):
        raise AssertionError("something is compiled")

    monkeypatch.setattr("tilewright.model.assemble.assemble", refuse)
    assert run_both().by_reference == ()


def test_values_that_were_given_ahead_count_in_the_cache(tmp_path):
    model = reshaped()
    model.graph.node[0].output[0] = "t"
    model.graph.node.append(helper.make_node("ReduceSum", ["t", "axes"], ["y"], keepdims=0))
    model.graph.input.append(helper.make_tensor_value_info("axes", TensorProto.INT64, ["k"]))
    for shape in [(4, 6), (2, 12), (4, 6)]:
        module = tw.compile(model, cache=tmp_path, settled={"shape": shape}, threads=1)
        np.testing.assert_allclose(
            module.run({"x": X, "axes": axes(0)})[0], X.reshape(shape).sum(0)
        )
        wait_for_writers()


def test_the_general_version_in_the_cache_is_not_the_model(tmp_path, monkeypatch):
    monkeypatch.setattr(settled, "FREE", (0, 0))
    module = tw.compile(reshaped(), cache=tmp_path, threads=1)
    with pytest.warns(tw.TilewrightWarning, match="keep changing"):
        reshape_each(module, [(24,)])
    wait_for_writers()
    assert len(default_caches(tmp_path).models.entries()) <= 1
    monkeypatch.undo()
    again = tw.compile(reshaped(), cache=tmp_path, threads=1)
    assert isinstance(again, SettledModule)
    reshape_each(again, [(24,)])
    assert again.by_reference == ()


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
    with raises_code("K020", text="inputs of the model: x, axes"):
        tw.compile(summed(), cache=False, settled={"axis": [1]})
    with raises_code("C003", facts={"param": "axes"}):
        tw.compile(summed(), cache=False, settled={"axes": np.array([1.5], np.float32)})


@pytest.mark.parametrize(
    "changed",
    [
        {"threads": 0},
        {"threads": 1 << 40},
        {"threads": True, "accuracy": "loose"},
        {"threads": "two"},
        {"accuracy": 3},
        {"accuracy": "loose"},
        {"layouts": "nchw0c"},
        {"values": ["x", "y"]},
        {"values": [["axes"]]},
        {"forms": "x"},
    ],
    ids=str,
)
def test_what_a_file_says_is_not_believed(tmp_path, changed):
    """Checksums fit: whoever can write a file can make them."""
    tw.compile(summed(), cache=False, threads=1).save(tmp_path / "summed.tw")
    found = artefact.open_artefact(tmp_path / "summed.tw")
    extra, content = dict(found.metadata["extra"]), bytes(found.weights)
    settled = {**extra["settled"]} | {k: v for k, v in changed.items() if k != "threads"}
    extra |= {"settled": settled, "threads": changed.get("threads", 1)}
    empty = to_json(Program("summed", (), (), (), (), (), ()))
    parts = artefact.Parts(empty, b"", [content], tw.Target.host(), "test", extra)
    artefact.save(tmp_path / "forged.tw", parts)
    with pytest.raises(ArtefactError, match=r"A122|A111"):
        tw.load(tmp_path / "forged.tw")


def test_it_can_be_saved_and_loaded(tmp_path, monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(tmp_path / "cache"))
    module = tw.compile(summed(), cache=False, threads=1)
    module.save(tmp_path / "summed.tw")
    loaded = tw.load(tmp_path / "summed.tw")
    assert isinstance(loaded, SettledModule)
    assert (loaded.inputs, loaded.outputs, loaded.meta) == (
        module.inputs,
        module.outputs,
        module.meta,
    )
    assert (loaded.threads, loaded.settled) == (1, ("axes",))
    np.testing.assert_allclose(loaded.run({"x": X, "axes": axes(0, 2)})[0], X.sum((0, 2)))
    loaded.save(tmp_path / "again.tw")
    assert (tmp_path / "again.tw").read_bytes() == (tmp_path / "summed.tw").read_bytes()


def test_a_damaged_model_in_a_file_is_found(tmp_path):
    path = tmp_path / "summed.tw"
    tw.compile(summed(), cache=False, threads=1).save(path)
    data = bytearray(path.read_bytes())
    data[data.rindex(b"ReduceSum")] ^= 1
    path.write_bytes(data)
    with raises_code("A111", text="weights"):
        tw.load(path)


def test_sequences_are_settled_by_their_lengths_and_ranks(monkeypatch):
    seen = compilations(monkeypatch)
    module = tw.compile(sequence_model(TensorProto.FLOAT), cache=False)
    assert module.settled == ("parts",)
    for sizes in [(2, 1), (5, 3), (1,), (1, 2, 3)]:
        parts = [np.full(size, size, np.float32) for size in sizes]
        np.testing.assert_array_equal(module.run({"parts": parts})[0], np.concatenate(parts))
    assert len(seen) == 4, "one for each length, and places of single elements"
    assert module.by_reference == ()
    for wrong, code in [(X, "C002"), ([None], "C002"), ([X.astype(np.float64)[0, 0]], "C003")]:
        with raises_code(code):
            module.run({"parts": wrong})


def test_sequences_can_be_outputs():
    node = helper.make_node("SplitToSequence", ["x", "sizes"], ["parts"], axis=0)
    model = make([node], [("x", [6])], [])
    model.graph.input.append(helper.make_tensor_value_info("sizes", TensorProto.INT64, ["k"]))
    parts = helper.make_tensor_sequence_value_info("parts", TensorProto.FLOAT, None)
    model.graph.output.append(parts)
    module = tw.compile(model, cache=False)
    x = np.arange(6, dtype=np.float32)
    for sizes in [(2, 4), (1, 2, 3), (6,)]:
        (found,) = module.run({"x": x, "sizes": axes(*sizes)})
        assert isinstance(found, list)
        assert [len(part) for part in found] == list(sizes)
        np.testing.assert_array_equal(np.concatenate(found), x)
    assert module.by_reference == ()


def test_values_given_ahead_leave_sequences_to_be_put_together(tmp_path):
    node = helper.make_node("SplitToSequence", ["x", "sizes"], ["parts"], axis=0)
    model = make([node], [("x", [6])], [])
    model.graph.input.append(helper.make_tensor_value_info("sizes", TensorProto.INT64, ["k"]))
    parts = helper.make_tensor_sequence_value_info("parts", TensorProto.FLOAT, None)
    model.graph.output.append(parts)
    x = np.arange(6, dtype=np.float32)
    for _ in range(2):  # compiled, then from the cache
        module = tw.compile(model, cache=tmp_path, settled={"sizes": [2, 4]})
        assert [info.name for info in module.inputs] == ["x"]
        (found,) = module.run({"x": x})
        assert [part.tolist() for part in found] == [[0, 1], [2, 3, 4, 5]]


def test_outputs_alone_need_nothing_to_be_known():
    model = make([helper.make_node("SplitToSequence", ["x"], ["parts"])], [("x", [2, 3])], [])
    parts = helper.make_tensor_sequence_value_info("parts", TensorProto.FLOAT, None)
    model.graph.output.append(parts)
    module = tw.compile(model, cache=False)
    assert module.settled == ()
    assert module.kernels > 0, "it is compiled at once"
    (found,) = module.run({"x": X[0, :2, :3].copy()})
    assert [part.tolist() for part in found] == [X[0, :1, :3].tolist(), X[0, 1:2, :3].tolist()]


def test_optionals_are_settled_by_their_presence(monkeypatch):
    seen = compilations(monkeypatch)
    kind = helper.make_optional_type_proto(helper.make_tensor_type_proto(TensorProto.FLOAT, None))
    nodes = [helper.make_node("OptionalHasElement", ["o"], ["has"])]
    model = make(nodes, [], [])
    model.graph.input.append(helper.make_value_info("o", kind))
    model.graph.output.append(helper.make_tensor_value_info("has", TensorProto.BOOL, []))
    module = tw.compile(model, cache=False)
    found = [module.run({"o": value})[0].item() for value in (None, X, X[0], None)]
    assert found == [False, True, True, False]
    assert len(seen) == 3
    assert module.by_reference == ()


def test_tensors_of_any_rank_are_settled_by_their_rank(monkeypatch):
    seen = compilations(monkeypatch)
    model = make([helper.make_node("Relu", ["x"], ["y"])], [], [])
    for where, name in ((model.graph.input, "x"), (model.graph.output, "y")):
        where.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, None))
    module = tw.compile(model, cache=False)
    for x in (X, X[0], X[:1], X[0, 0]):
        np.testing.assert_array_equal(module.run({"x": x - 9})[0], np.maximum(x - 9, 0))
    module.run({"x": X[:, :2]})
    assert len(seen) == 4
    assert module.by_reference == ()


def test_sizes_of_one_are_broadcast_where_shapes_are_not_declared():
    model = make([helper.make_node("Add", ["a", "b"], ["y"])], [], [])
    for where, names in ((model.graph.input, "ab"), (model.graph.output, "y")):
        where.extend(helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in names)
    module = tw.compile(model, cache=False)
    for a, b in [(X, X[:1]), (X, X), (X[:, :1], X[:1]), (X, X[0, 0]), (X[0, 0], X), (X[:0], X[:1])]:
        np.testing.assert_array_equal(module.run({"a": a, "b": b})[0], a + b)
    assert module.by_reference == ()


def test_sizes_are_settled_where_ranks_are_not_enough(monkeypatch):
    """How many pieces a tensor has is a size of it, here of a tensor of any shape."""
    seen = compilations(monkeypatch)
    model = make([helper.make_node("SplitToSequence", ["x"], ["parts"])], [], [])
    model.graph.input.append(helper.make_tensor_value_info("x", TensorProto.FLOAT, None))
    parts = helper.make_tensor_sequence_value_info("parts", TensorProto.FLOAT, None)
    model.graph.output.append(parts)
    module = tw.compile(model, cache=False)
    for count in (2, 3, 2):
        (found,) = module.run({"x": X[0, :count]})
        assert [part.tolist() for part in found] == [[row.tolist()] for row in X[0, :count]]
    assert module.by_reference == ()
    assert len(seen) == 3, "ranks, then sizes, then other sizes"


def test_threads_with_other_sizes_do_not_share_what_is_made_for_some():
    """All begin with a key without sizes; whoever is first finds that these count."""
    nodes = [
        helper.make_node("SplitToSequence", ["x"], ["parts"], axis=0),
        helper.make_node("ConcatFromSequence", ["parts"], ["y"], axis=0),
    ]
    model = make(nodes, [], [])
    model.graph.input.append(helper.make_tensor_value_info("x", TensorProto.FLOAT, None))
    model.graph.output.append(helper.make_tensor_value_info("y", TensorProto.FLOAT, None))
    module = tw.compile(model, cache=False, threads=1)
    sizes = range(2, 8)
    barrier = threading.Barrier(len(sizes))
    found: dict[int, object] = {}

    def work(size: int) -> None:
        x = np.arange(size, dtype=np.float32)
        barrier.wait()
        try:
            found[size] = module.run({"x": x})[0].tolist()
        except Exception as problem:  # noqa: BLE001  (the comparison shows it)
            found[size] = problem

    threads = [threading.Thread(target=work, args=(size,)) for size in sizes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {size: list(range(size)) for size in sizes}
    assert module.by_reference == ()
    assert len(module._versions) == len(sizes), "each under its own key, and under no other"


def test_large_values_are_not_made_keys():
    """What nobody compiles for is neither copied nor compared."""
    module = tw.compile(reshaped(), cache=False, threads=1)
    assert module._reader.key({"shape": np.ones(64, np.int64)}) is not None
    assert module._reader.key({"shape": np.ones(65, np.int64)}) is None
    assert module._reader.key({"shape": [1] * 65}) is None


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


def _child(module, queue):
    (y,) = module.run({"x": X, "axes": axes(1, 2)})  # new in this process
    (z,) = module.run({"x": X, "axes": axes(0)})  # compiled before the fork
    queue.put((y.tolist(), z.tolist()))


def test_it_works_after_a_fork(module):
    module.run({"x": X, "axes": axes(0)})
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    with module._lock, warnings.catch_warnings():  # as if another thread had it
        warnings.simplefilter("ignore")  # Python warns of forks beside threads
        process = context.Process(target=_child, args=(module, queue))
        process.start()
    found = queue.get(timeout=120)
    process.join(timeout=60)
    assert found == (X.sum((1, 2)).tolist(), X.sum(0).tolist())
    assert process.exitcode == 0
