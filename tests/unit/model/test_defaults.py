"""Inputs that have a default: weights that a model lists as inputs, too."""

from __future__ import annotations

import os
import threading
import warnings

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper, parser

import tilewright as tw
from tests.expect import raises_code
from tilewright.model import defaults
from tilewright.model.settled import SettledModule
from tilewright.model.whole import WholeModule

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def scaled(ir_version: int = 8) -> onnx.ModelProto:
    """x * w + b, both of which have defaults."""
    return parser.parse_model(f"""
        <ir_version: {ir_version}, opset_import: ["" : 17]>
        scaled (float[n, 3] x, float[3] w = {{1.0, 2.0, 3.0}}, float[1] b = {{10.0}})
            => (float[n, 3] y) {{
            p = Mul(x, w)
            y = Add(p, b)
        }}""")


def floats(*values) -> np.ndarray:
    return np.array(values, np.float32)


W, B = floats(1, 2, 3), floats(10)
GIVEN = [
    {},
    {"w": floats(-1, 0, 4)},
    {"b": floats(7)},
    {"b": floats(1), "w": floats(0, 1, 0)},
]


def check(run) -> None:
    for given in (*GIVEN, *GIVEN):
        (y,) = run({"x": X, **given})
        assert np.array_equal(y, X * given.get("w", W) + given.get("b", B))


@pytest.mark.parametrize("kind", ["message", "bytes", "file"])
def test_a_run_may_give_what_has_a_default(kind, tmp_path):
    model = scaled()
    path = tmp_path / "scaled.onnx"
    onnx.save(model, path)
    source = {"message": model, "bytes": model.SerializeToString(), "file": path}[kind]
    module = tw.compile(source, cache=False, threads=1)
    assert [info.name for info in module.inputs] == ["x"]
    assert [str(info) for info in module.overridable] == ["w: f32[3]", "b: f32[1]"]
    check(module.run)
    check(lambda feeds: module.run_profiled(feeds)[0])
    check(lambda feeds: module.run_async(feeds).result())
    into = np.empty((2, 3), np.float32)
    module.run_into({"x": X, "b": floats(1)}, {"y": into})
    assert np.array_equal(into, X * W + 1)
    assert module.profile({"x": X, "b": floats(1)}).events


def test_as_onnxruntime(tmp_path):
    ort = pytest.importorskip("onnxruntime")
    content = scaled().SerializeToString()
    other = ort.InferenceSession(content, providers=["CPUExecutionProvider"])
    options = tw.SessionOptions()
    options.add_session_config_entry("tilewright.cache", str(tmp_path))
    session = tw.InferenceSession(content, options)
    found, wanted = (s.get_overridable_initializers() for s in (session, other))
    assert [(a.name, a.shape, a.type) for a in found] == [(b.name, b.shape, b.type) for b in wanted]
    assert [i.name for i in session.get_inputs()] == [i.name for i in other.get_inputs()]
    for given in GIVEN:
        a, b = (s.run(None, {"x": X, **given}) for s in (session, other))
        assert np.array_equal(a, b)
    binding = session.io_binding()
    binding.bind_cpu_input("x", X)
    binding.bind_cpu_input("w", floats(0, 0, 0))
    binding.bind_output("y")
    session.run_with_iobinding(binding)
    assert np.array_equal(binding.copy_outputs_to_cpu()[0], np.full((2, 3), 10, np.float32))


def test_before_version_four_weights_are_constants():
    module = tw.compile(scaled(3), cache=False)
    assert not module.overridable
    with raises_code("C022"):
        module.run({"x": X, "w": W})


def test_names_and_shapes_are_checked_as_those_of_other_inputs():
    module = tw.compile(scaled(), cache=False)
    with raises_code("C022"):
        module.run({"x": X, "w": W, "v": W})
    with raises_code("C021"):
        module.run({"w": W})
    with raises_code("C005"):
        module.run({"x": X, "w": floats(1, 2)})


def test_few_versions_are_kept(monkeypatch):
    made: list[frozenset[str]] = []
    compiled = defaults.Origin.compiled

    def counted(self, model):
        made.append(self.given)
        return compiled(self, model)

    monkeypatch.setattr(defaults.Origin, "compiled", counted)
    monkeypatch.setattr(defaults, "KEPT", 2)
    module = tw.compile(scaled(), cache=False, threads=1)
    check(module.run)  # three sets in turn, of which two are kept
    assert len(made) == 6
    module.run({"x": X, **GIVEN[-1]})
    assert len(made) == 6


def test_versions_are_kept_in_the_cache(tmp_path):
    path = tmp_path / "scaled.onnx"
    onnx.save(scaled(), path)
    for again in (False, True):
        module = tw.compile(path, cache=tmp_path / "cache", threads=1)
        assert module.graph is None or not again
        check(module.run)
        for thread in threading.enumerate():
            if thread.name == "tilewright-cache-writer":
                thread.join()
        assert module.defaults is not None
        graphs = [module.defaults.version({"x": X, **given}).graph for given in GIVEN[1:]]
        assert all((graph is None) == again for graph in graphs)


def test_threads_compile_a_version_once(monkeypatch):
    made: list[frozenset[str]] = []
    compiled = defaults.Origin.compiled

    def counted(self, model):
        made.append(self.given)
        return compiled(self, model)

    monkeypatch.setattr(defaults.Origin, "compiled", counted)
    module = tw.compile(scaled(), cache=False, threads=1)
    threads = [threading.Thread(target=check, args=(module.run,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(map(len, made)) == [1, 1, 2]


def test_a_saved_module_keeps_its_defaults(tmp_path):
    tw.compile(scaled(), cache=False).save(tmp_path / "scaled.tw")
    for path in (tmp_path / "scaled.tw", tmp_path / "again.tw"):
        loaded = tw.load(path)
        assert not loaded.overridable
        assert not tw.InferenceSession(path).get_overridable_initializers()
        assert np.array_equal(loaded.run({"x": X})[0], X * W + B)
        with raises_code("C035", text="compiled file"):
            loaded.run({"x": X, "w": W})
        loaded.save(tmp_path / "again.tw")


@pytest.mark.parametrize("cache", [True, False])
def test_a_file_that_has_changed_is_not_compiled_in_the_place_of_the_old_one(tmp_path, cache):
    path = tmp_path / "scaled.onnx"
    onnx.save(scaled(), path)
    module = tw.compile(path, cache=tmp_path / "cache" if cache else False)
    changed = scaled()
    changed.graph.node[1].op_type = "Sub"
    onnx.save(changed, path)
    os.utime(path, (1, 1))
    with raises_code("C035", text="changed"):
        module.run({"x": X, "w": W})
    path.unlink()
    with raises_code("C035", text="changed"):
        module.run({"x": X, "w": W})
    assert np.array_equal(module.run({"x": X})[0], X * W + B)


def test_a_message_that_has_changed_is_noticed():
    model = scaled()
    module = tw.compile(model, cache=False)
    model.graph.node[1].op_type = "Sub"
    with raises_code("C035", text="changed"):
        module.run({"x": X, "w": W})


def reshaped() -> onnx.ModelProto:
    return parser.parse_model("""
        <ir_version: 8, opset_import: ["" : 17]>
        reshaped (float[n, 3] x, int64[2] shape = {3, -1}) => (float[a, b] y) {
            y = Reshape(x, shape)
        }""")


def test_a_default_may_decide_what_is_compiled():
    module = tw.compile(reshaped(), cache=False)
    assert not module.settled
    for shape in (None, [1, 6], [6, 1], [1, 6]):
        given = {} if shape is None else {"shape": np.array(shape)}
        assert module.run({"x": X, **given})[0].shape == tuple(shape or (3, 2))
    assert module.defaults is not None
    assert isinstance(module.defaults.version({"shape": np.array([1, 6])}), SettledModule)


def settling() -> onnx.ModelProto:
    """An input that must be known, beside one that has a default."""
    return parser.parse_model("""
        <ir_version: 8, opset_import: ["" : 18]>
        settling (float[n, 3] x, int64[1] axes, float[1] w = {2.0}) => (float[m] y) {
            p = Mul(x, w)
            y = ReduceSum <keepdims = 0> (p, axes)
        }""")


def test_beside_inputs_that_are_settled(tmp_path):
    module = tw.compile(settling(), cache=False)
    module.save(tmp_path / "settling.tw")
    known = tw.compile(settling(), cache=False, settled={"axes": [0]})
    for each in (module, tw.load(tmp_path / "settling.tw"), known):
        assert [info.name for info in each.overridable] == ["w"]
        axes = {} if each is known else {"axes": np.array([0])}
        assert np.array_equal(each.run({"x": X, **axes})[0], (2 * X).sum(0))
        into = np.empty(3, np.float32)
        each.run_into({"x": X, "w": floats(3), **axes}, {"y": into})
        assert np.array_equal(into, (3 * X).sum(0))
        assert each.run_profiled({"x": X, "w": floats(4), **axes})[0][0][0] == 12


def test_models_that_run_by_reference_as_a_whole():
    text = helper.make_tensor_value_info("s", TensorProto.STRING, ["n"])
    weight = helper.make_tensor_value_info("w", TensorProto.STRING, [1])
    graph = helper.make_graph(
        [helper.make_node("StringConcat", ["s", "w"], ["y"])],
        "texts",
        [text, weight],
        [helper.make_tensor_value_info("y", TensorProto.STRING, ["n"])],
        [numpy_helper.from_array(np.array(["!"], object), "w")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module = tw.compile(model, cache=False)
        assert isinstance(module, WholeModule)
        texts = np.array(["a", "b"], object)
        assert module.run({"s": texts})[0].tolist() == ["a!", "b!"]
        given = {"s": texts, "w": np.array(["?"], object)}
        assert module.run(given)[0].tolist() == ["a?", "b?"]


def test_a_damaged_list_of_defaults_is_refused(tmp_path):
    module = tw.compile(scaled(), cache=False)
    module._extra["defaults"][0]["shape"] = [None]
    module.save(tmp_path / "scaled.tw")
    with raises_code("A111"):
        tw.load(tmp_path / "scaled.tw")


def test_a_new_process_has_locks_of_its_own():
    module = tw.compile(scaled(), cache=False, threads=1)
    assert module.defaults is not None
    versions = module.defaults._versions
    with versions._lock, versions._compiling:
        child = os.fork()
        if child == 0:
            os._exit(0 if versions._known(frozenset({"w"})) == () else 1)
    assert os.waitpid(child, 0)[1] == 0
