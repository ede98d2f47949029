"""Bound inputs and outputs, and the values that stand for arrays."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import tilewright as tw
from tests.expect import raises_code
from tests.small import expected, rows, two_outputs


@pytest.fixture(scope="module")
def session() -> tw.InferenceSession:
    options = tw.SessionOptions()
    options.add_session_config_entry("tilewright.cache", "off")
    return tw.InferenceSession(two_outputs().SerializeToString(), options)


def test_bound_inputs_are_read_when_the_session_runs(session):
    x, binding = rows(3), session.io_binding()
    binding.bind_cpu_input("x", x)
    binding.bind_output("positive")
    binding.bind_output("scores")
    for value in (1.0, 2.0):
        x[:] = value
        session.run_with_iobinding(binding)
        positive, scores = binding.copy_outputs_to_cpu()
        assert_allclose(positive, x)
        assert_allclose(scores, expected(x)[0], rtol=1e-5, atol=1e-6)


def test_outputs_with_memory_are_written_in_place(session):
    x, scores, binding = rows(3), np.zeros((3, 4), np.float32), session.io_binding()
    binding.bind_input("x", "cpu", 0, np.float32, x.shape, x.ctypes.data)
    binding.bind_output("scores", "cpu", 0, np.float32, scores.shape, scores.ctypes.data)
    session.run_with_iobinding(binding)
    assert_allclose(scores, expected(x)[0], rtol=1e-5, atol=1e-6)
    (value,) = binding.get_outputs()
    assert value.data_ptr() == scores.ctypes.data


def test_some_outputs_may_have_memory_and_others_not(session):
    x, binding = rows(3), session.io_binding()
    kept = tw.OrtValue.ortvalue_from_shape_and_type([3, 8], np.float32)
    binding.bind_ortvalue_input("x", tw.OrtValue.ortvalue_from_numpy(x))
    binding.bind_output("scores")
    binding.bind_ortvalue_output("positive", kept)
    session.run_with_iobinding(binding)
    scores, positive = binding.get_outputs()
    assert positive.data_ptr() == kept.data_ptr()
    assert_allclose(scores, expected(x)[0], rtol=1e-5, atol=1e-6)
    assert_allclose(kept, expected(x)[1])


def test_without_bound_outputs_all_are_kept(session):
    binding = session.io_binding()
    binding.bind_cpu_input("x", rows(2))
    session.run_with_iobinding(binding)
    assert [value.shape() for value in binding.get_outputs()] == [[2, 4], [2, 8]]


def test_bindings_can_be_cleared(session):
    binding = session.io_binding()
    binding.bind_cpu_input("x", rows(2))
    binding.bind_output("scores")
    binding.synchronize_inputs()
    session.run_with_iobinding(binding)
    binding.synchronize_outputs()
    binding.clear_binding_outputs()
    assert binding.get_outputs() == []
    binding.clear_binding_inputs()
    with raises_code("C021"):
        session.run_with_iobinding(binding)


def test_names_that_do_not_exist_are_refused_when_bound(session):
    binding = session.io_binding()
    with raises_code("C022", text="`x`"):
        binding.bind_cpu_input("X", rows(2))
    with raises_code("C022", text="`scores`"):
        binding.bind_output("score")


def test_memory_of_other_devices_is_refused(session):
    with raises_code("C030"):
        session.io_binding().bind_output("scores", "cuda")
    with raises_code("C030"):
        tw.OrtValue.ortvalue_from_numpy(rows(1), "cuda", 0)


def test_a_target_of_another_shape_is_refused(session):
    binding = session.io_binding()
    binding.bind_cpu_input("x", rows(2))
    binding.bind_ortvalue_output(
        "scores", tw.OrtValue.ortvalue_from_shape_and_type([3, 4], np.float32)
    )
    with raises_code("C006"):
        session.run_with_iobinding(binding)


@pytest.mark.parametrize("kind", [np.float32, 1, "float32"])
def test_element_types_have_several_names(kind):
    value = tw.OrtValue.ortvalue_from_shape_and_type([2, 3], kind)
    assert (value.data_type(), value.element_type()) == ("tensor(float)", 1)
    assert value.tensor_size_in_bytes() == 24


@pytest.mark.parametrize("kind", [object, 8, "words"])
def test_other_element_types_are_refused(kind):
    with raises_code("C031"):
        tw.OrtValue.ortvalue_from_shape_and_type([2], kind)


def test_values_describe_themselves():
    value = tw.OrtValue.ortvalue_from_numpy(np.arange(6).reshape(2, 3))
    assert repr(value) == "<OrtValue tensor(int64) [2, 3]>"
    assert (value.is_tensor(), value.is_tensor_sequence(), value.is_sparse_tensor()) == (
        True,
        False,
        False,
    )
    assert value.has_value()
    assert value.device_name() == "cpu"
    sequence = tw.OrtValue([rows(1), rows(2)])
    assert (sequence.data_type(), sequence.is_tensor_sequence()) == ("seq(tensor(float))", True)


def test_values_are_changed_in_place():
    array = np.zeros((2, 2), np.float32)
    value = tw.OrtValue.ortvalue_from_numpy(array)
    value.update_inplace(np.ones((2, 2), np.float32))
    assert array.sum() == 4
    with pytest.raises(TypeError):
        value.update_inplace(np.ones((2, 2)))


def test_values_share_memory_by_dlpack():
    value = tw.OrtValue.ortvalue_from_numpy(np.arange(4.0))
    again = tw.OrtValue.from_dlpack(value)
    assert again.data_ptr() == value.data_ptr()
    assert np.from_dlpack(value).tolist() == [0, 1, 2, 3]
