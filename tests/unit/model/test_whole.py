"""Models that have no graph run by reference as a whole."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tests.expect import raises_code
from tests.small import sequence_model, text_inside

WARNED = "the model: runs as a whole, because"
INSIDE = "2 nodes run on the ONNX reference implementation"


@pytest.fixture
def joined() -> tw.Module:
    with pytest.warns(tw.TilewrightWarning, match=WARNED) as caught:
        module = tw.compile(sequence_model(), cache=False)
    assert len(caught) == 1
    return module


def parts() -> list[np.ndarray]:
    return [np.array(["a", "b"], object), np.array(["c"], object)]


def test_a_sequence_can_be_an_input(joined):
    (whole,) = joined.run({"parts": parts()})
    assert whole.tolist() == ["a", "b", "c"]


def test_types_of_sequences_are_described(joined):
    assert joined.inputs[0].type == "seq(tensor(string))"
    assert joined.inputs[0].dtype is None
    assert str(joined.outputs[0]) == "whole: tensor(string)"
    assert repr(joined).startswith("<module joined(parts: seq(tensor(string)))")


def test_it_has_the_face_of_a_module(joined):
    outputs, profile = joined.run_profiled({"parts": parts()})
    assert outputs[0].shape == (3,)
    assert [event.label for event in profile.events] == ["joined"]
    assert joined.memory().weights_bytes > 0
    assert (joined.kernels, joined.settled) == (0, ())
    assert joined.run_async({"parts": parts()}).result(timeout=60)[0].shape == (3,)
    into = np.zeros(3, object)
    joined.run_into({"parts": parts()}, {"whole": into})
    assert into.tolist() == ["a", "b", "c"]


def test_it_cannot_be_saved(joined, tmp_path):
    with raises_code("A121"):
        joined.save(tmp_path / "joined.tw")
    assert not list(tmp_path.iterdir())


def test_missing_inputs_are_named(joined):
    with raises_code("C301", facts={"input": "parts", "model": "joined"}):
        joined.run({})


def test_texts_inside_are_a_step_of_a_program(tmp_path):
    with pytest.warns(tw.TilewrightWarning, match=INSIDE):
        module = tw.compile(text_inside(), cache=False)
    assert [str(info) for info in module.inputs] == ["x: f32[n]"]
    x = np.array([4, 5.5, -1], np.float32)
    assert np.array_equal(module.run({"x": x})[0], x)
    module.save(tmp_path / "text.tw")
    assert np.array_equal(tw.load(tmp_path / "text.tw").run({"x": x[:2]})[0], x[:2])


def test_a_cached_model_warns_again(tmp_path):
    for _ in range(2):
        with pytest.warns(tw.TilewrightWarning, match=INSIDE):
            tw.compile(text_inside(), cache=tmp_path)
