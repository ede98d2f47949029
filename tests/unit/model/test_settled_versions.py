"""Versions of a model for values of its inputs: how many are kept, and where."""

from __future__ import annotations

import multiprocessing
import threading
import warnings

import numpy as np
import pytest
from onnx import TensorProto, helper

import tilewright as tw
from tests.background import wait_for_writers
from tests.expect import raises_code
from tests.settled import X, axes, compilations, reshaped, summed
from tests.small import make
from tilewright.errors import ArtefactError
from tilewright.model import settled
from tilewright.model.settled import SettledModule
from tilewright.runtime import artefact
from tilewright.runtime.cache import default_caches
from tilewright.runtime.codec import to_json
from tilewright.runtime.program import Program


@pytest.fixture
def module() -> tw.Module:
    return tw.compile(summed(), cache=False, threads=1)


def reshape_each(module, shapes):
    for shape in shapes:
        (y,) = module.run({"x": X, "shape": axes(*shape)})
        np.testing.assert_array_equal(y, X.reshape(shape))


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

    monkeypatch.setattr("tilewright.pipeline.model.ModelPipeline._plan", refuse)
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


@pytest.mark.parametrize(
    "changed",
    [
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
    extra |= {"settled": extra["settled"] | changed}
    empty = to_json(Program("summed", (), (), (), (), (), ()))
    parts = artefact.Parts(empty, b"", [content], tw.Target.host(), "test", extra)
    artefact.save(tmp_path / "forged.tw", parts)
    with pytest.raises(ArtefactError, match=r"A122|A111"):
        tw.load(tmp_path / "forged.tw")


def test_it_can_be_saved_and_loaded(tmp_path, monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(tmp_path / "cache"))
    module = tw.compile(summed(), cache=False, threads=1)
    module.save(tmp_path / "summed.tw")
    loaded = tw.load(tmp_path / "summed.tw", threads=1)
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


def test_large_values_are_not_made_keys():
    """What nobody compiles for is neither copied nor compared."""
    module = tw.compile(reshaped(), cache=False, threads=1)
    assert module._reader.key({"shape": np.ones(64, np.int64)}) is not None
    assert module._reader.key({"shape": np.ones(65, np.int64)}) is None
    assert module._reader.key({"shape": [1] * 65}) is None


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
