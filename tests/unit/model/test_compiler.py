"""`compile`: the cache, threads, warnings, progress, and every size from one module."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper

import tilewright as tw
from tests.background import wait_for_writers
from tests.expect import raises_code
from tests.feature_maps import network, picture
from tests.small import WEIGHTS, expected, make, rows, two_outputs
from tilewright.frontend.onnx import import_model
from tilewright.frontend.onnx.registry import HANDLERS
from tilewright.graph import interpret
from tilewright.model import compiler
from tilewright.runtime.cache import default_caches
from tilewright.runtime.pool import most_threads
from tilewright.target import Target
from tilewright.tensor.layout import Reorder, Split


def compiled(cache, threads=1, model=None, **settings):
    told: list[str] = []
    module = tw.compile(
        two_outputs() if model is None else model,
        threads=threads,
        cache=cache,
        progress=lambda step: told.append(step.stage),
        **settings,
    )
    wait_for_writers()
    return module, told


def test_a_module_from_the_cache_gives_the_same_bits(tmp_path):
    first, told = compiled(tmp_path)
    assert "kernels" in told
    second, told = compiled(tmp_path)
    assert told == ["look into the cache"]
    for a, b in zip(first.run({"x": rows(7)}), second.run({"x": rows(7)}), strict=True):
        assert a.tobytes() == b.tobytes()
    assert (second.inputs, second.outputs, second.meta) == (
        first.inputs,
        first.outputs,
        first.meta,
    )


def test_bytes_files_and_models_are_one_model(tmp_path):
    model = two_outputs()
    path = tmp_path / "model.onnx"
    path.write_bytes(model.SerializeToString())
    compiled(tmp_path / "cache", model=model)
    for same in (path, str(path), path.read_bytes()):
        assert compiled(tmp_path / "cache", model=same)[1] == ["look into the cache"]


def test_other_weights_and_settings_are_not_found(tmp_path):
    compiled(tmp_path)
    changed = two_outputs()
    changed.graph.initializer[0].raw_data = (WEIGHTS * 2).tobytes()
    module, told = compiled(tmp_path, model=changed)
    assert "kernels" in told
    np.testing.assert_allclose(module.run({"x": rows(3)})[0], 2 * expected(rows(3))[0], rtol=1e-5)
    assert "kernels" in compiled(tmp_path, accuracy="strict")[1]
    assert "kernels" in compiled(tmp_path, layouts="nchw")[1]
    assert compiled(tmp_path, layouts="nchw")[1] == ["look into the cache"]


def test_without_a_cache_nothing_is_read_or_written(monkeypatch):
    def refuse(*_):
        raise AssertionError("the cache is used")

    monkeypatch.setattr(compiler, "default_caches", refuse)
    module, told = compiled(cache=False)
    assert "look into the cache" not in told
    np.testing.assert_allclose(module.run({"x": rows(2)})[1], expected(rows(2))[1])


@pytest.mark.parametrize("damage", ["cut", "changed", "empty"])
def test_a_damaged_entry_is_compiled_again(tmp_path, damage):
    compiled(tmp_path)
    (entry,) = default_caches(tmp_path).models.entries()
    data = bytearray(entry.path.read_bytes())
    entry.path.chmod(0o600)
    if damage == "changed":
        data[len(data) // 2 :] = bytes(len(data) - len(data) // 2)
    entry.path.write_bytes({"cut": data[: len(data) // 2], "empty": b""}.get(damage, data))
    module, told = compiled(tmp_path)
    assert "kernels" in told
    np.testing.assert_allclose(module.run({"x": rows(2)})[0], expected(rows(2))[0], rtol=1e-5)
    assert compiled(tmp_path)[1] == ["look into the cache"], "and is whole again"


@pytest.mark.parametrize("threads", [1, 2])
def test_threads_are_those_that_were_asked_for(threads):
    module, _ = compiled(cache=False, threads=threads)
    assert module.threads == threads
    np.testing.assert_allclose(module.run({"x": rows(33)})[0], expected(rows(33))[0], rtol=1e-5)


def test_what_is_kept_serves_every_number_of_threads(tmp_path):
    first, _ = compiled(tmp_path, threads=1)
    found, told = compiled(tmp_path, threads=3)
    assert told == ["look into the cache"]
    assert (first.threads, found.threads) == (1, 3)


@pytest.mark.parametrize("threads", [0, -1, True, 2.0, most_threads() + 1, 10**30])
def test_what_is_no_number_of_threads_is_refused(threads):
    with raises_code("K004"):
        tw.compile(two_outputs(), threads=threads, cache=False)


def test_stages_are_told_in_order(tmp_path):
    stages = ["read", "import", "optimise", "choose", "plan", *["kernels"] * 3, "link"]
    assert compiled(tmp_path)[1] == ["look into the cache", *stages]


@pytest.mark.parametrize("layouts", ["nchw8", "NHWC", "nchw1c", "", None])
def test_unknown_layouts_are_refused_before_any_work(layouts, tmp_path):
    told: list[str] = []
    with raises_code("K060", text="nchw8c"):
        tw.compile(
            tmp_path / "missing.onnx",
            layouts=layouts,
            cache=tmp_path / "cache",
            progress=lambda step: told.append(step.stage),
        )
    assert not told
    assert not (tmp_path / "cache").exists()


@pytest.mark.parametrize("layouts", ["auto", "nhwc", "nchw", "nchw8c", "nchw16c", "nchw4c"])
def test_all_layouts_give_the_same_results(layouts):
    model = network("batch")
    module, _ = compiled(cache=False, model=model, layouts=layouts)
    graph = import_model(model).graph
    for batch in (1, 3):
        (found,), (wanted,) = module.run(picture(batch)), interpret(graph, picture(batch))
        assert found.shape == wanted.shape
        np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=1e-4)


def test_layouts_are_those_that_were_asked_for():
    def stored(layouts):
        chosen = compiler.choose_layouts(
            network(), Target.host(), 1, lambda _: None, layouts=layouts
        )
        nodes = chosen.choice.graph.nodes
        return {v.layout for node in nodes for v in node.outputs if v.layout}

    kept = {steps[-1:] for steps in stored("nchw")}
    assert kept == {(Reorder((0, 3, 1, 2)),)}
    assert (Split(3, 4), Reorder((0, 3, 1, 2, 4))) in stored("nchw4c")
    assert not any(isinstance(step, Split | Reorder) for s in stored("nhwc") for step in s)


def unique_twice():
    nodes = [
        helper.make_node("Unique", ["x"], ["u"], "first"),
        helper.make_node("Unique", ["y"], ["v"], "second"),
        helper.make_node("Relu", ["u"], ["r"]),
    ]
    return make(nodes, [("x", ["n"]), ("y", ["m"])], [("r", ["a"]), ("v", ["b"])])


def test_one_warning_names_what_runs_by_reference(tmp_path, monkeypatch):
    monkeypatch.delitem(HANDLERS, ("", "Unique"))
    for _ in range(2):  # compiled, then from the cache
        with pytest.warns(tw.TilewrightWarning, match="reference") as caught:
            module, _ = compiled(tmp_path, model=unique_twice())
        assert len(caught) == 1
        assert "Unique" in str(caught[0].message)
        assert len(module.by_reference) == 2
        x, y = np.array([3, -1, 3], np.float32), np.array([2, 1], np.float32)
        r, v = module.run({"x": x, "y": y})
        assert (r.tolist(), v.tolist()) == ([0, 3], [1, 2])


def attention_like():
    """Products, a softmax and a residual sum over two symbolic sizes."""
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["h"]),
        helper.make_node("Transpose", ["h"], ["t"], perm=[0, 2, 1]),
        helper.make_node("MatMul", ["x", "t"], ["scores"]),
        helper.make_node("Softmax", ["scores"], ["p"], axis=-1),
        helper.make_node("MatMul", ["p", "h"], ["mixed"]),
        helper.make_node("Add", ["mixed", "x"], ["y"]),
        helper.make_node("Shape", ["y"], ["shape"]),
    ]
    w = np.random.default_rng(1).uniform(-1, 1, (6, 6)).astype(np.float32)
    model = make(nodes, [("x", ["batch", "seq", 6])], [("y", ["batch", "seq", 6])], {"w": w})
    shape = helper.make_tensor_value_info("shape", TensorProto.INT64, [3])
    model.graph.output.append(shape)
    return model


def test_one_module_runs_at_every_size():
    model = attention_like()
    graph = import_model(model).graph
    module, _ = compiled(cache=False, threads=2, model=model)
    rng = np.random.default_rng(3)
    for batch, seq in [(1, 1), (2, 5), (3, 17), (1, 64), (2, 5)]:
        feeds = {"x": rng.uniform(-1, 1, (batch, seq, 6)).astype(np.float32)}
        for found, wanted in zip(module.run(feeds), interpret(graph, feeds), strict=True):
            assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
            np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)
