"""Forms are short names for layouts."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.errors import UserError
from tilewright.graph.sizes import as_shape
from tilewright.layouts.forms import FIRST, LAST, Form, blocked
from tilewright.tensor import ir as tir
from tilewright.tensor.layout import logical_shape

X = np.arange(2 * 3 * 4 * 16, dtype=np.float32).reshape(2, 3, 4, 16)


def stored(form: Form, x: np.ndarray = X) -> np.ndarray:
    for step in form.steps(x.ndim):
        x = step.pack(x)
    return x


def test_channels_last_is_as_it_is():
    assert LAST.steps(4) == ()


def test_channels_first():
    np.testing.assert_array_equal(stored(FIRST), X.transpose(0, 3, 1, 2))


def test_blocks_of_channels():
    expected = X.reshape(2, 3, 4, 2, 8).transpose(0, 3, 1, 2, 4)
    np.testing.assert_array_equal(stored(blocked(8)), expected)


@pytest.mark.parametrize("form", [Form(), Form(first=True), Form(first=True, block=4)])
def test_a_halo_is_zeros_around_space(form):
    with_halo = Form(form.first, form.block, ((1, 2), (0, 1)))
    expected = stored(form, np.pad(X, [(0, 0), (1, 2), (0, 1), (0, 0)]))
    np.testing.assert_array_equal(stored(with_halo), expected)


@pytest.mark.parametrize("rank", [3, 4, 5])
@pytest.mark.parametrize("form", [LAST, FIRST, blocked(2)])
def test_steps_lead_back(form, rank):
    shape = (*range(2, rank + 1), 8)
    x = np.random.default_rng(rank).uniform(size=shape)
    assert logical_shape(stored(form, x).shape, form.steps(rank)) == shape


@pytest.mark.parametrize("text", ["nhwc", "nchw", "nchw8c", "nchw16c", "nchw3c"])
def test_names_are_read_back(text):
    assert str(Form.named(text)) == text


@pytest.mark.parametrize("text", ["", "nhwc8c", "nchw1c", "hwcn", "NCHW"])
def test_other_names_are_refused(text):
    with pytest.raises(UserError) as error:
        Form.named(text)
    assert error.value.code.id == "K060"


def test_names_of_other_ranks():
    assert [f.name(3) for f in (LAST, FIRST, blocked(8))] == ["nwc", "ncw", "ncw8c"]
    assert Form(halo=((1, 1),) * 3).name(5) == "ndhwc+halo"


def test_misfits_say_why():
    assert blocked(8).misfit(as_shape((1, 4, 4, 17))) == "17 channels are not whole blocks of 8"
    symbolic = blocked(8).misfit(as_shape((1, 4, 4, tir.Var("c"))))
    assert symbolic == "an unknown number of channels are not whole blocks of 8"
    assert Form(halo=((1, 1),)).misfit(as_shape((1, 4, 4, 8))) == "a halo for 1 dimensions of space"
    assert blocked(8).misfit(as_shape((1, 4, 4, 24))) is None


@pytest.mark.parametrize(
    ("own", "wanted", "covers"),
    [
        ((), ((1, 1), (1, 1)), False),
        ((), ((0, 0), (0, 0)), True),
        (((1, 1), (1, 1)), (), True),
        (((1, 3), (1, 1)), ((1, 2), (1, 1)), True),
        (((1, 1), (1, 1)), ((1, 2), (1, 1)), False),
    ],
)
def test_a_wider_halo_serves_as_well(own, wanted, covers):
    assert Form(halo=own).covers(Form(halo=wanted)) is covers
