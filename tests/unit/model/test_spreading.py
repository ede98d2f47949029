"""Versions of a model for runs in which a size of one meets another."""

from __future__ import annotations

import os
import threading
import warnings

import numpy as np
import onnx
import pytest
from onnx import parser

import tilewright as tw
from tests.background import wait_for_writers
from tests.expect import raises_code
from tilewright.model import origin, spreading
from tilewright.model.begun import BegunModule

X, Z = np.arange(3, dtype=np.float32), np.array([7], np.float32)


def parsed(text: str) -> onnx.ModelProto:
    return parser.parse_model(
        f'<ir_version: 8, opset_import: ["" : 18, "com.microsoft" : 1]>\n{text}'
    )


def added() -> onnx.ModelProto:
    return parsed("added (float[n] x, float[m] z) => (float[k] y) { y = Add(x, z) }")


def check(run) -> None:
    for x, z in ((X, Z), (X, X), (Z, X), (Z, Z), (X[:0], Z)):
        (y,) = run({"x": x, "z": z})
        assert np.array_equal(y, x + z)


@pytest.mark.parametrize("kind", ["message", "bytes", "file"])
def test_all_ways_to_run(kind, tmp_path):
    model = added()
    path = tmp_path / "added.onnx"
    onnx.save(model, path)
    source = {"message": model, "bytes": model.SerializeToString(), "file": path}[kind]
    module = tw.compile(source, cache=False, threads=1)
    check(module.run)
    check(lambda feeds: module.run_profiled(feeds)[0])
    check(lambda feeds: module.run_async(feeds).result())
    assert module.profile({"x": X, "z": Z}).events
    into = np.empty(3, np.float32)
    for x, z in ((X, Z), (Z, X), (X[::-1], Z)):  # the last one goes the slow way
        module.run_into({"x": x, "z": z}, {"y": into})
        assert np.array_equal(into, x + z)
    with raises_code("C006"):
        module.run_into({"x": X, "z": Z}, {"y": np.empty(1, np.float32)})


def test_as_onnxruntime(tmp_path):
    options = tw.SessionOptions()
    options.add_session_config_entry("tilewright.cache", str(tmp_path))
    session = tw.InferenceSession(added().SerializeToString(), options)
    check(lambda feeds: session.run(None, feeds))
    for bound in (None, np.empty(3, np.float32)):
        binding = session.io_binding()
        binding.bind_cpu_input("x", X)
        binding.bind_cpu_input("z", Z)
        if bound is None:
            binding.bind_output("y")
        else:
            binding.bind_ortvalue_output("y", tw.OrtValue(bound))
        session.run_with_iobinding(binding)
        assert np.array_equal(binding.copy_outputs_to_cpu()[0], X + Z)


def counted(monkeypatch) -> list[object]:
    made: list[object] = []
    compiled = origin.Origin.compiled

    def noted(self, model, **options):
        made.append(self.settled)
        return compiled(self, model, **options)

    monkeypatch.setattr(origin.Origin, "compiled", noted)
    return made


def test_equal_sizes_need_no_version(monkeypatch):
    made = counted(monkeypatch)
    module = tw.compile(added(), cache=False, threads=1)
    for x in (X, Z, X[:0]):
        assert np.array_equal(module.run({"x": x, "z": x})[0], x + x)
    with raises_code("C025", text="`m` and `n` must be equal, or one of them 1"):
        module.run({"x": X, "z": X[:2]})
    assert not made


def test_a_model_without_such_sizes_keeps_no_source():
    module = tw.compile(parsed("f (float[n] x) => (float[n] y) { y = Add(x, x) }"), cache=False)
    assert module.spreading is None


def test_few_versions_are_kept(monkeypatch):
    made = counted(monkeypatch)
    monkeypatch.setattr(spreading, "KEPT", 1)
    module = tw.compile(added(), cache=False, threads=1)
    for x, z in ((X, Z), (Z, X), (Z, X), (X, Z)):
        assert np.array_equal(module.run({"x": x, "z": z})[0], x + z)
    assert len(made) == 3


def test_threads_compile_a_version_once(monkeypatch):
    made = counted(monkeypatch)
    module = tw.compile(added(), cache=False, threads=1)
    threads = [threading.Thread(target=check, args=(module.run,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 2


def test_versions_are_kept_in_the_cache(tmp_path):
    path = tmp_path / "added.onnx"
    onnx.save(added(), path)
    for again in (False, True):
        module = tw.compile(path, cache=tmp_path / "cache", threads=1)
        check(module.run)
        wait_for_writers()
        assert module.spreading is not None
        versions = module.spreading._versions._made.values()
        assert len(versions) == 2
        assert all((version.graph is None) == again for version in versions)


def test_a_compiled_file_says_that_it_cannot(tmp_path):
    tw.compile(added(), cache=False).save(tmp_path / "added.tw")
    loaded = tw.load(tmp_path / "added.tw")
    assert np.array_equal(loaded.run({"x": X, "z": X})[0], X + X)
    with raises_code("C025", text="there is no model in a compiled file"):
        loaded.run({"x": X, "z": Z})


def test_a_model_that_has_changed_is_not_compiled_in_the_place_of_the_old_one(tmp_path):
    path = tmp_path / "added.onnx"
    onnx.save(added(), path)
    model = added()
    modules = [tw.compile(source, cache=False) for source in (path, model)]
    model.graph.node[0].op_type = "Sub"
    onnx.save(model, path)
    os.utime(path, (1, 1))
    for module in modules:
        with raises_code("C025", text="changed"):
            module.run({"x": X, "z": Z})
        assert np.array_equal(module.run({"x": X, "z": X})[0], X + X)


def test_beside_values_that_are_settled_and_defaults(tmp_path):
    model = parsed("""both (float[n, 2] x, float[m, 2] z, int64[1] axes, float[1] w = {2.0})
            => (float[k] y) {
        s = Add(x, z)
        p = Mul(s, w)
        y = ReduceSum <keepdims = 0> (p, axes)
    }""")
    x, z = np.arange(6, dtype=np.float32).reshape(3, 2), np.ones((1, 2), np.float32)
    module = tw.compile(model, cache=False, threads=1)
    module.save(tmp_path / "both.tw")
    known = tw.compile(model, cache=False, threads=1, settled={"axes": [0]})
    for each in (module, tw.load(tmp_path / "both.tw"), known):
        axes = {} if each is known else {"axes": np.array([0])}
        for given in ({}, {"w": np.array([5], np.float32)}):
            (y,) = each.run({"x": x, "z": z, **axes, **given})
            assert np.array_equal(y, ((x + z) * given.get("w", 2)).sum(0))


def test_behind_texts():
    model = parsed("""texts (string[n] s, float[m, 2] z) => (float[a, 2] y) {
        c = LabelEncoder <keys_strings = ["a", "b"], values_floats = [1.0, 2.0]> (s)
        r = Unsqueeze (c, one)
        y = Add (r, z)
    }""")
    model.graph.node[0].domain = "ai.onnx.ml"
    model.opset_import.append(onnx.helper.make_opsetid("ai.onnx.ml", 2))
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.array([1]), "one"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module = tw.compile(model, cache=False, threads=1)
    assert isinstance(module, BegunModule)
    z = np.array([[3, 4]], np.float32)
    for texts, values in ((["a", "b"], [1, 2]), (["b"], [2])):
        (y,) = module.run({"s": np.array(texts, object), "z": z})
        assert np.array_equal(y, np.array(values, np.float32)[:, None] + z)


def test_what_fits_nothing_is_refused_by_what_it_was_refused_for(monkeypatch):
    """A version that does not fit is not compiled again and again."""
    model = parsed("""twice (float[n] x, float[m] z) => (float[k] y) {
        s = Add(x, z)
        y = Add(s, three)
    }""")
    model.graph.initializer.append(onnx.numpy_helper.from_array(X, "three"))
    made = counted(monkeypatch)
    module = tw.compile(model, cache=False, threads=1)
    for _ in range(2):
        with raises_code("C025"):
            module.run({"x": np.ones(2, np.float32), "z": Z})
    assert len(made) <= 1
    (y,) = module.run({"x": Z, "z": Z})
    assert np.array_equal(y, Z + Z + X)
