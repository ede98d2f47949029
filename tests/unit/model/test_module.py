"""`tilewright.compile` and the module that it gives, from the outside."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import tilewright as tw
from tests.background import wait_for_writers
from tests.expect import raises_code
from tests.small import expected, rows, two_outputs
from tilewright.model.endings import Ending
from tilewright.runtime.artefact import Parts, open_artefact, save


@pytest.fixture(scope="module")
def module() -> tw.Module:
    return tw.compile(two_outputs(), threads=2, cache=False)


@pytest.mark.parametrize("count", [1, 5, 64])
def test_one_module_serves_every_size(module, count):
    x = rows(count)
    for found, wanted in zip(module.run({"x": x}), expected(x), strict=True):
        assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


def test_inputs_and_outputs_are_described(module):
    assert [str(info) for info in module.inputs] == ["x: f32[rows, 8]"]
    assert [str(info) for info in module.outputs] == [
        "scores: f32[rows, 4]",
        "positive: f32[rows, 8]",
    ]
    assert module.inputs[0].type == "tensor(float)"
    assert "2 threads" in repr(module)


def test_runs_in_the_background(module):
    xs = [rows(k) for k in range(1, 6)]
    futures = [module.run_async({"x": x}) for x in xs]
    for x, future in zip(xs, futures, strict=True):
        assert_allclose(future.result(timeout=60)[0], expected(x)[0], rtol=1e-5, atol=1e-6)


def test_errors_in_the_background_come_with_the_result(module):
    with raises_code("C021"):
        module.run_async({}).result(timeout=60)


def test_results_go_into_arrays_of_the_caller(module):
    x, scores = rows(3), np.zeros((3, 4), np.float32)
    module.run_into({"x": x}, {"scores": scores})
    assert_allclose(scores, expected(x)[0], rtol=1e-5, atol=1e-6)


def test_profile_tells_the_work_of_each_kernel(module):
    outputs, profile = module.run_profiled({"x": rows(5)})
    assert_allclose(outputs[0], expected(rows(5))[0], rtol=1e-5, atol=1e-6)
    assert [event.label for event in profile.events] == ["relu", "product"]
    assert [event.flops for event in profile.events] == [0, 2 * 5 * 8 * 4]
    moved = [event.moved_bytes for event in module.profile({"x": rows(5)}).events]
    assert moved == [2 * 5 * 8 * 4, 4 * (5 * 8 + 8 * 4 + 5 * 4)]


def test_memory_is_what_weights_and_code_take(module):
    module.run({"x": rows(2)})
    use = module.memory()
    assert use.weights_bytes >= 8 * 4 * 4
    assert use.image_bytes > 0
    assert use.frames >= 1


def test_a_saved_module_is_the_same_when_loaded_and_saved_again(module, tmp_path):
    first, second = tmp_path / "first.tw", tmp_path / "second.tw"
    module.save(first)
    loaded = tw.load(first, verify=True)
    loaded.save(second)
    assert first.read_bytes() == second.read_bytes()
    assert loaded.meta == module.meta
    for found, wanted in zip(loaded.run({"x": rows(9)}), module.run({"x": rows(9)}), strict=True):
        assert np.array_equal(found, wanted)


def test_the_author_of_a_model_is_remembered(module):
    assert module.meta.producer_name == "tests"
    assert module.meta.version == 7
    assert module.meta.custom_metadata_map == {"author": "nobody"}


def test_the_cache_gives_a_module_that_can_be_saved(tmp_path):
    model = two_outputs()
    for _ in range(2):
        module = tw.compile(model, threads=1, cache=tmp_path / "cache")
        module.save(tmp_path / "model.tw")
        found = tw.load(tmp_path / "model.tw").run({"x": rows(4)})
        assert_allclose(found[0], expected(rows(4))[0], rtol=1e-5, atol=1e-6)
        assert module.meta.domain == "example.org"


@pytest.mark.parametrize(
    ("feeds", "code"),
    [
        ({}, "C021"),
        ({"X": rows(2)}, "C023"),
        ({"x": rows(2), "y": rows(2)}, "C022"),
        ({"x": rows(2).astype(np.float64)}, "C003"),
        ({"x": rows(2)[0]}, "C004"),
        ({"x": rows(2)[:, :3]}, "C005"),
        ({"x": "text"}, "C002"),
    ],
    ids=["missing", "capital", "more", "double", "flat", "narrow", "text"],
)
def test_wrong_feeds_are_explained(module, feeds, code, golden):
    with raises_code(code) as caught:
        module.run(feeds)
    assert golden == caught.value


def test_errors_of_a_call_show_no_inner_frames(module):
    """The traceback of the user ends at their own call."""
    import traceback

    with raises_code("C021") as caught:
        module.executable.run({})
    files = [frame.filename for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert not any("/runtime/" in file for file in files)


@pytest.mark.parametrize(
    "settings", [{"accuracy": "best"}, {"database": "tuned.json"}], ids=["accuracy", "database"]
)
def test_compile_refuses_settings_that_it_does_not_have(settings):
    with raises_code("K020"):
        tw.compile(two_outputs(), cache=False, **settings)


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_compile_takes_the_bytes_of_a_file(kind, tmp_path):
    content = kind(two_outputs().SerializeToString())
    for cache in (False, tmp_path):
        module = tw.compile(content, threads=1, cache=cache)
        assert [info.name for info in module.outputs] == ["scores", "positive"]
    wait_for_writers()


@pytest.mark.parametrize(
    "value", [io.BytesIO(b""), None, 5, two_outputs().graph], ids=lambda v: type(v).__name__
)
def test_compile_refuses_what_no_model_can_be_read_from(value, tmp_path):
    for cache in (False, tmp_path):
        with raises_code("K020", text=f"a value of type `{type(value).__name__}` as model"):
            tw.compile(value, cache=cache)


def test_progress_is_told(tmp_path):
    told = []
    tw.compile(two_outputs(), threads=1, cache=tmp_path, progress=told.append)
    stages = [step.stage for step in told]
    assert list(dict.fromkeys(stages)) == [
        "look into the cache",
        "read",
        "import",
        "optimise",
        "choose",
        "plan",
        "kernels",
        "link",
    ]
    assert [(step.done, step.total) for step in told if step.total] == [(1, 2), (2, 2)]


def _changed(entry: str, value: object) -> Callable[[dict[str, Any]], object]:
    return lambda extra: extra.update({entry: value})


@pytest.mark.parametrize(
    "change",
    [
        _changed("endings", [1]),
        _changed("endings", {"scores": 7}),
        _changed("endings", {"scores": {"keys": [], "is_map": True}}),
        _changed("endings", {"scores": {"keys": [[1], [2]], "is_map": True}}),
        _changed("endings", {"scores": {"keys": ["a", 1], "is_map": True}}),
        _changed("endings", {"scores": {"keys": [True], "is_map": True}}),
        _changed("endings", {"scores": {"keys": [1, 2], "is_map": False}}),
        _changed("endings", {"scores": {"keys": ["a"], "is_map": 1}}),
        _changed("endings", {"other": {"keys": ["a"], "is_map": True}}),
        _changed("meta", 7),
        _changed("lengths", ["1"]),
        _changed("lengths", 3),
        _changed("by_reference", [7]),
        _changed("functions", {"a": 1}),
    ],
)
def test_what_a_file_says_is_not_believed(module, tmp_path, change):
    """Its checksums fit: somebody wrote it so."""
    path = tmp_path / "changed.tw"
    module.save(path)
    found = open_artefact(path)
    extra = dict(found.metadata["extra"])
    change(extra)
    data = found.metadata
    weights = [np.frombuffer(found.weights, np.uint8)]
    code = bytes(found.image.bytes)
    save(path, Parts(found.program_json, code, weights, data["target"], data["tool"], extra))
    with raises_code("A111", text="the metadata do not say what they should"):
        tw.load(path)


def test_texts_for_fewer_numbers_than_there_are_end_in_an_error():
    ending = Ending(("a", "b"), is_map=False)
    assert ending.apply(np.array([1, 0]), "m", "y").tolist() == ["b", "a"]
    assert ending.apply(np.zeros((0, 2), np.int64), "m", "y").shape == (0, 2)
    for numbers in ([0, 2], [-1]):
        with raises_code("C025", text="`y` has 2 classes"):
            ending.apply(np.array(numbers), "m", "y")


def test_inputs_come_by_name_in_order_or_alone(module):
    expected_ones = module.run({"x": rows(3)})
    forms = [rows(3), [rows(3)], (rows(3),)]
    for given in forms:
        for found, wanted in zip(module.run(given), expected_ones, strict=True):
            assert np.array_equal(found, wanted)
    called = [module(rows(3)), module(x=rows(3)), module({"x": rows(3)}), module([rows(3)])]
    assert all(np.array_equal(found[0], expected_ones[0]) for found in called)
    assert np.array_equal(module.run_async(rows(3)).result()[0], expected_ones[0])
    assert module.profile(rows(3)).events
    scores = np.empty((3, 4), np.float32)
    module.run_into(rows(3), {"scores": scores})
    assert np.array_equal(scores, expected_ones[0])


@pytest.mark.parametrize(
    "call",
    [
        lambda module: module.run([rows(3), rows(3)]),
        lambda module: module.run((rows(3), rows(3))),
        lambda module: module.run([]),
        lambda module: module(),
        lambda module: module(rows(3), rows(3)),
        lambda module: module(rows(3), x=rows(3)),
        lambda module: module.profile([rows(3)] * 2),
        lambda module: module.run_into([rows(3)] * 2, {}),
    ],
)
def test_inputs_in_a_wrong_number_are_refused(module, call):
    with raises_code("C027"):
        call(module)


def test_what_is_no_array_is_refused_as_one(module):
    for value in (None, "text", 3.5):
        with raises_code("C004" if value == 3.5 else "C002"):
            module.run(value)


def test_a_missing_input_is_a_value_error(module):
    with pytest.raises(ValueError, match="C021"):
        module.run({})
    with pytest.raises(ValueError, match="C023"):
        module.run({"X": rows(1)})


@pytest.mark.parametrize("suffix", [".onnx", ".tw"])
def test_a_missing_file_is_one_error_wherever_it_is_opened(tmp_path, suffix):
    path = tmp_path / f"missing{suffix}"
    for opened in (tw.compile, tw.load, tw.InferenceSession):
        with raises_code("K040"):
            opened(path)
        with pytest.raises(FileNotFoundError):
            opened(path)
