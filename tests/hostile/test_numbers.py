"""Numbers that 64 bits do not hold once sizes and strides are multiplied: M005, never a crash."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import helper

from tests.expect import raises_code
from tests.hostile.long_sizes import info, model
from tests.hostile.texts import compiled
from tilewright.errors import ArtefactError, ProgramError
from tilewright.model.exhaustion import told_as_too_large
from tilewright.runtime.verify import A201
from tilewright.tensor.verify_expr import V001, V023

MOST = 2**63 - 1
FAR = {
    "strides": {"strides": [MOST]},
    "pads": {"pads": [MOST, MOST]},
    "negative pads": {"pads": [-MOST, -MOST]},
    "dilations": {"dilations": [MOST]},
    "gaps and pads": {"dilations": [2**61], "pads": [2**61, 2**61]},
}


def chain(op, times, size, weights, **attributes):
    """An operator on its own result, again and again; its other inputs stay the same."""
    names = list(weights)
    nodes = [
        helper.make_node(op, [f"x{k}", *names], [f"x{k + 1}"], **attributes) for k in range(times)
    ]
    outputs = [info(f"x{times}", *(f"q{k}" for k in range(len(size))))]
    given = {name: value for name, value in weights.items() if name}
    return model(nodes, [info("x0", *size)], outputs, **given)


def slices(times, step):
    ends = {"starts": [0], "ends": [MOST], "axes": [0], "steps": [step]}
    return chain("Slice", times, ["n"], ends)


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "wrap"])
@pytest.mark.parametrize("pads", [(-MOST - 1, MOST), (2**62, -(2**62)), (2**62, 2**62)])
def test_borders(mode, pads):
    with raises_code("M005"):
        compiled(chain("Pad", 3, ["n"], {"pads": pads}, mode=mode))


@pytest.mark.parametrize(("times", "step"), [(63, 2), (3, 2**62)])
def test_steps_of_slices(times, step):
    with raises_code("M005"):
        compiled(slices(times, step))


def test_a_step_back_from_the_first_element_takes_none():
    (found,) = compiled(slices(3, -(2**62))).run({"x0": np.arange(5, dtype=np.float32)})
    assert found.shape == (0,)


@pytest.mark.parametrize("step", [MOST, 2**62, 2**56 + 1])
def test_a_step_beyond_every_size_takes_one_element(step):
    x = np.arange(5, dtype=np.float32)
    (found,) = compiled(slices(1, step)).run({"x0": x})
    assert np.array_equal(found, x[:1])
    (found,) = compiled(slices(1, -step)).run(
        {"x0": x}
    )  # from the first element to behind the last
    assert np.array_equal(found, x[0:MOST:-step])


def test_factors_of_resizing():
    scales = {"": None, "scales": np.array([1, 1, 1000, 1000], np.float32)}
    with raises_code("M005"):
        compiled(chain("Resize", 8, [1, 1, "h", "w"], scales, mode="nearest"))


@pytest.mark.parametrize("size", ["n", 5])
@pytest.mark.parametrize("far", FAR)
@pytest.mark.parametrize("op", ["Conv", "MaxPool", "AveragePool"])
def test_windows(op, far, size):
    given = {"w": np.ones((1, 1, 3), np.float32)} if op.startswith("Conv") else {}
    more = {} if given else {"kernel_shape": [3]}
    with raises_code("M005"):
        compiled(chain(op, 3, [1, 1, size], given, **FAR[far], **more))


@pytest.mark.parametrize("size", ["n", 5])
@pytest.mark.parametrize("far", [name for name in FAR if name != "strides"])
def test_windows_that_are_spread(far, size):
    """With long strides they run by reference, which says what is wrong."""
    given = {"w": np.ones((1, 1, 3), np.float32)}
    with raises_code("M005"):
        compiled(chain("ConvTranspose", 3, [1, 1, size], given, **FAR[far]))


@pytest.mark.parametrize("error", [ProgramError(V023), ArtefactError(A201)])
def test_what_is_found_late_is_told_like_that(error):
    with raises_code("M005"), told_as_too_large("model.onnx"):
        raise error


def test_other_errors_stay_what_they_are():
    with pytest.raises(ProgramError), told_as_too_large("model.onnx"):
        raise ProgramError(V001)
