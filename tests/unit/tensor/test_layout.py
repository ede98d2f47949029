"""Layout steps as values: shapes, indices, packing, text."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.dtypes import f32
from tilewright.tensor import ir as tir
from tilewright.tensor.build import size
from tilewright.tensor.layout import (
    STEPS,
    Fuse,
    Pad,
    Reorder,
    Split,
    StoreAt,
    Unfold,
    appended,
    parse_step,
)
from tilewright.tensor.packing import packing_of

CASES = {
    Split(1, 3): ((4, 6), (4, 2, 3)),
    Reorder((2, 0, 1)): ((4, 5, 6), (6, 4, 5)),
    Fuse(0, (4, 6)): ((4, 6), (24,)),
    Fuse(1, (2, 3, 4)): ((5, 2, 3, 4), (5, 24)),
    Unfold(0, 6, 4, 10): ((10, 2), (2, 6, 2)),
    Unfold(1, 3, 2, 6): ((2, 6), (2, 3, 3)),
    Unfold(0, 4, 4, 8): ((8,), (2, 4)),
    Pad(0, 1, 2): ((4, 6), (7, 6)),
}


@pytest.mark.parametrize("step", CASES, ids=str)
def test_step_maps_shapes_indices_and_arrays(step):
    before, after = CASES[step]
    array = np.arange(1, 1 + int(np.prod(before))).reshape(before)
    packed = step.pack(array)
    assert step.shape(before) == packed.shape == after
    assert step.before(after) == before
    np.testing.assert_array_equal(step.unpack(packed), array)
    for where in np.ndindex(before):
        assert packed[step.index(where)] == array[where]


@pytest.mark.parametrize("step", CASES, ids=str)
def test_index_of_expressions_agrees_with_numbers(step):
    before, _ = CASES[step]
    at = tuple(map(tir.Const, (n - 1 for n in before)))
    found = [tir.int_value(tir.as_index(i)) for i in step.index(at)]
    assert found == list(step.index(tuple(n - 1 for n in before)))


def test_unfold_stores_overlaps_twice_and_zeros_beyond_the_end():
    packed = Unfold(0, 3, 2, 6).pack(np.arange(1, 7))
    np.testing.assert_array_equal(packed, [[1, 2, 3], [3, 4, 5], [5, 6, 0]])


def test_store_at_holds_two_arrays():
    step = StoreAt(0, "bias", (3,))
    buffer = tir.Buffer("W", (tir.Const(3), tir.Const(3)), f32, layout=(step, Reorder((1, 0))))
    weights, bias = np.arange(6.0).reshape(2, 3), np.array([7.0, 8.0, 9.0])
    packing = packing_of(buffer)
    assert packing.logical_shape == (2, 3)
    packed = packing.pack(weights, bias)
    np.testing.assert_array_equal(packed, np.vstack([weights, bias]).T)
    np.testing.assert_array_equal(packing.unpack(packed), weights)
    (found,) = packing.unpack_guests(packed)
    np.testing.assert_array_equal(found, bias)
    with pytest.raises(ValueError, match="`bias` is stored along: give 2 arrays"):
        packing.pack(weights)


def test_guest_of_the_same_rank():
    step = StoreAt(1, "U", (2, 1), (), 3)
    host, guest = np.ones((2, 3)), np.zeros((2, 1))
    packed = step.pack_with(host, guest)
    assert packed.shape == step.shape((2, 3)) == (2, 4)
    assert step.guest_index((1, 0), (2, 3)) == (1, 3)
    np.testing.assert_array_equal(step.unpack_guest(packed), guest)


@pytest.mark.parametrize("step", [*CASES, StoreAt(1, "b", (4,), (Split(0, 2), Pad(1, 0, 1)), 2)])
def test_text_parses_back(step):
    assert parse_step(str(step)) == step


def test_text_with_a_symbolic_size():
    n = size("n")
    step = Fuse(0, (n, 4))
    assert str(step) == "fuse(0, [n, 4])"
    assert parse_step("fuse(0, [n, 4])", {"n": n}.__getitem__) == step


@pytest.mark.parametrize("text", ["split", "twist(1)", "fuse(0, [n, 4])", "4"])
def test_other_text_is_refused(text):
    with pytest.raises(ValueError, match="is not"):
        parse_step(text)


def test_inverse_steps_vanish():
    layout = (Pad(0, 1, 1),)
    assert appended((*layout, Split(1, 4)), Fuse(1, (2, 4))) == layout
    assert appended((*layout, Fuse(1, (2, 4))), Split(1, 4)) == layout
    assert appended((*layout, Fuse(1, (3, 2, 4))), Split(1, 4)) == (*layout, Fuse(1, (3, 2)))
    assert appended((*layout, Reorder((1, 2, 0))), Reorder((2, 0, 1))) == layout
    assert appended((Reorder((1, 0)),), Reorder((1, 0))) == ()
    assert appended((), Reorder((0, 1))) == ()
    assert appended((*layout, Split(1, 4)), Fuse(0, (2, 2))) == (
        *layout,
        Split(1, 4),
        Fuse(0, (2, 2)),
    )


def test_packed_arrays_are_contiguous():
    buffer = tir.Buffer("B", (tir.Const(4), tir.Const(2)), f32, layout=(Reorder((1, 0)),))
    assert packing_of(buffer).pack(np.ones((2, 4), np.float32)).flags.c_contiguous
    assert packing_of(tir.Buffer("A", (tir.Const(4),), f32)) is None


def test_every_kind_of_step_is_known_by_name():
    assert set(STEPS) == {"Split", "Reorder", "Fuse", "Unfold", "Pad", "StoreAt"}
