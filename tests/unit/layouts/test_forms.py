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


def test_forms_of_one_memory_differ_by_name_alone():
    shape, x = as_shape((2, 6, 8, 4)), np.arange(1, 2 * 6 * 8 * 4 + 1).reshape(2, 6, 8, 4)
    tiles = [(), *((h, w) for h in (0, 1, 2, 4, 6) for w in (0, 1, 3, 4))]
    forms = [
        Form(first, block, halo, cut, overlap)
        for first, block in ((False, 0), (True, 0), (True, 2))
        for halo in ((), ((0, 0), (0, 0)), ((1, 1), (0, 2)), ((2, 0), (0, 2)))
        for cut in tiles
        for overlap in ((), (1, 0), (2, 2))
        if Form(first, block, halo, cut, overlap).misfit(shape) is None
    ]
    places: dict[bytes, set[object]] = {}
    memories: dict[object, set[bytes]] = {}
    for form in forms:
        packed = x
        for step in form.steps(shape):
            packed = step.pack(packed)
        lies, memory = np.ascontiguousarray(packed).tobytes(), form.memory(shape)
        places.setdefault(lies, set()).add(memory)
        memories.setdefault(memory, set()).add(lies)
    assert all(len(each) == 1 for each in memories.values())
    names = sum(len(each) > 1 for each in places.values())
    assert names <= 2, "those that only fill up otherwise"
    assert len(memories) < len(forms) - 10
    whole = Form(tiles=(3, 0)), Form(tiles=(1, 1)), Form(True, 2, (), (1, 1))
    assert {form.memory(shape) for form in whole} == {LAST.memory(shape)}


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


def shape(*sizes: int):
    return as_shape(sizes)


def test_tiles_of_blocks_lie_in_one_piece():
    form = Form(first=True, block=8, tiles=(3, 2))
    expected = X.reshape(2, 1, 3, 2, 2, 2, 8).transpose(0, 1, 3, 5, 2, 4, 6)
    np.testing.assert_array_equal(tiled(form), expected)


def tiled(form: Form, x: np.ndarray = X) -> np.ndarray:
    for step in form.steps(shape(*x.shape)):
        x = step.pack(x)
    return x


def test_one_dimension_may_stay_uncut():
    np.testing.assert_array_equal(
        tiled(Form(tiles=(0, 2))), X.reshape(2, 3, 2, 2, 16).transpose(0, 2, 1, 3, 4)
    )
    np.testing.assert_array_equal(
        tiled(Form(first=True, tiles=(0, 2))), X.reshape(2, 3, 2, 2, 16).transpose(0, 2, 4, 1, 3)
    )
    assert Form(tiles=(0, 0)) == LAST
    assert Form(first=True, block=4, overlap=(1, 1)) == blocked(4)


def test_tiles_may_reach_into_the_next_ones():
    stored_tiles = tiled(Form(tiles=(0, 2), overlap=(0, 1)))
    assert stored_tiles.shape == (2, 2, 3, 3, 16)
    np.testing.assert_array_equal(stored_tiles[:, 0], X[:, :, 0:3])
    np.testing.assert_array_equal(stored_tiles[:, 1, :, :2], X[:, :, 2:4])
    assert not stored_tiles[:, 1, :, 2].any()


def test_what_is_left_over_is_filled_up():
    stored_tiles = tiled(Form(tiles=(2, 0)))
    assert stored_tiles.shape == (2, 2, 2, 4, 16)
    np.testing.assert_array_equal(stored_tiles[:, 1, 0], X[:, 2])
    assert not stored_tiles[:, 1, 1].any()


def test_a_halo_is_inside_of_tiles():
    form = Form(first=True, block=4, halo=((1, 2), (0, 0)), tiles=(2, 2))
    wide = np.pad(X, [(0, 0), (1, 2), (0, 0), (0, 0)])
    np.testing.assert_array_equal(tiled(form), tiled(form.plain, wide))


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("nchw16c/8x8", Form(first=True, block=16, tiles=(8, 8))),
        ("nhwc/0x4", Form(tiles=(0, 4))),
        ("nchw/7x7~2x2", Form(first=True, tiles=(7, 7), overlap=(2, 2))),
    ],
)
def test_tiles_have_names(text, form):
    assert str(form) == text
    assert Form.named(text) == form
    assert Form.read(f"{text}+halo", 4) == form


@pytest.mark.parametrize(
    "text", ["nchw/", "nchw/8", "nchw/8x", "nhwc/0x0", "nhwc~1x1", "nhwc/2x2~0x0", "nhwc/02x2"]
)
def test_other_names_of_tiles_are_refused(text):
    assert Form.read(text, 4) is None


def test_names_are_those_of_a_rank():
    assert Form.read("ncw8c/4", 3) == Form(first=True, block=8, tiles=(4,))
    assert Form.read("nchw8c", 3) is None


def test_tiles_that_do_not_fit_say_why():
    form = Form(tiles=(3, 2), overlap=(0, 1))
    assert form.misfit(shape(1, 3, 3, 8)) is None
    assert form.misfit(shape(1, 3, 2, 8)) == "2 places are fewer than a tile of 3"
    assert form.misfit(shape(1, 9, 8)) == "tiles for 2 dimensions of space"
    symbolic = form.misfit(as_shape((1, tir.Var("h"), 4, 8)))
    assert symbolic == "an unknown number of places are fewer than a tile of 3"
