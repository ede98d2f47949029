"""Packed parameters: packed at each call, packed once, or bound."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from tests.expect import raises_code
from tilewright.abi import ParamSpec
from tilewright.dtypes import f32
from tilewright.runtime import PackedArray


@dataclass(frozen=True)
class Transpose:
    """Stores a matrix by columns."""

    logical_shape: tuple[int | str, ...]
    guests = ()

    def pack(self, array):
        return np.ascontiguousarray(array.T)

    def unpack(self, array):
        return array.T


@dataclass(frozen=True)
class CountingTranspose(Transpose):
    """Remembers how often it was asked."""

    def pack(self, array):
        CountingTranspose.calls += 1
        return super().pack(array)


CountingTranspose.calls = 0


@pytest.fixture
def linear(make_kernel):
    """c = a @ wᵀ, where the caller's `w` is [N, K] and the kernel reads [K, N]."""
    CountingTranspose.calls = 0
    return make_kernel(
        "matmul",
        (
            ParamSpec("a", f32, ("M", "K")),
            ParamSpec("w", f32, ("K", "N"), packing=CountingTranspose(("N", "K"))),
            ParamSpec("c", f32, ("M", "N"), is_output=True),
        ),
    )


@pytest.fixture
def arrays(rng):
    return rng.random((4, 5), dtype=np.float32), rng.random((6, 5), dtype=np.float32)


def test_plain_array_is_packed_at_each_call(linear, arrays):
    a, w = arrays
    for _ in range(2):
        np.testing.assert_allclose(linear(a, w), a @ w.T, rtol=1e-5)
    assert CountingTranspose.calls == 2


def test_packed_array_is_passed_as_it_is(linear, arrays):
    a, w = arrays
    packed = linear.pack("w", w)
    assert isinstance(packed, PackedArray)
    assert packed.array.shape == (5, 6)
    c = np.empty((4, 6), np.float32)
    for _ in range(3):
        linear(a, packed, c)
    np.testing.assert_allclose(c, a @ w.T, rtol=1e-5)
    np.testing.assert_array_equal(linear(a, packed), c)
    assert CountingTranspose.calls == 1


def test_bound_parameter_is_no_longer_passed(linear, arrays):
    a, w = arrays
    bound = linear.bind(w=w)
    assert CountingTranspose.calls == 1
    c = np.empty((4, 6), np.float32)
    assert bound(a, c) is None
    np.testing.assert_allclose(c, a @ w.T, rtol=1e-5)
    np.testing.assert_array_equal(bound(a), c)
    np.testing.assert_array_equal(bound(a=a), c)
    np.testing.assert_array_equal(bound(a[::-1])[::-1], c)
    assert CountingTranspose.calls == 1
    assert repr(bound) == "<kernel matmul(a: f32[M, K]) -> (c: f32[M, N]), 1 thread>"


def test_bound_array_is_shared_not_copied(add):
    y = np.zeros(3, np.float32)
    bound = add.bind(y=y)
    y[:] = 5
    np.testing.assert_array_equal(bound(np.ones(3, np.float32)), [6, 6, 6])


def test_everything_may_be_bound(add):
    x, z = np.ones(3, np.float32), np.zeros(3, np.float32)
    assert add.bind(x=x).bind(y=x, z=z)() is None
    np.testing.assert_array_equal(z, [2, 2, 2])


def test_bound_sizes_hold_for_later_arrays(linear, arrays):
    a, w = arrays
    with raises_code("C006", facts={"told": "5 by `w`, 4 by `a`"}):
        linear.bind(w=w)(a.T[:4].T)


def test_plain_array_must_have_the_logical_shape(linear, arrays):
    a, w = arrays
    with raises_code("C006"):
        linear(a, w.T)


def test_stored_form_without_its_packing_is_not_accepted(make_kernel):
    """A square matrix fits both ways: the shape alone must not decide."""
    spec = ParamSpec("w", f32, ("K", "N"), packing=Transpose(("N", "K")))
    kernel = make_kernel(
        "matmul",
        (ParamSpec("a", f32, ("M", "K")), spec, ParamSpec("c", f32, ("M", "N"), is_output=True)),
    )
    w = np.array([[1, 2], [3, 4]], np.float32)
    np.testing.assert_array_equal(kernel(np.eye(2, dtype=np.float32), w), w.T)


def test_equal_packings_of_two_kernels_are_one(linear, arrays):
    a, w = arrays
    other = PackedArray(np.ascontiguousarray(w.T), CountingTranspose(("N", "K")))
    np.testing.assert_allclose(linear(a, other), a @ w.T, rtol=1e-5)


def test_pack_rejects_other_packing(linear, arrays, golden):
    a, w = arrays
    foreign = PackedArray(np.ascontiguousarray(w.T), Transpose(("N", "K")))
    with raises_code("C012") as caught:
        linear(a, foreign)
    assert golden == caught.value


def test_plain_parameter_rejects_packed_array(linear, arrays):
    with raises_code("C012", facts={"expected": "a plain array"}):
        linear(PackedArray(arrays[0], Transpose(("M", "K"))), arrays[1])


def test_pack_rejects_plain_parameter(add, golden):
    with raises_code("C017") as caught:
        add.pack("x", np.ones(3, np.float32))
    assert golden == caught.value


def test_packing_of_wrong_result_is_refused(make_kernel):
    class Wrong(Transpose):
        def pack(self, array):
            return array.astype(np.float64)

    spec = ParamSpec("x", f32, ("N",), packing=Wrong(("N",)))
    kernel = make_kernel(
        "add", (spec, ParamSpec("y", f32, ("N",)), ParamSpec("z", f32, ("N",), is_output=True))
    )
    with raises_code("C003"):
        kernel(np.ones(3, np.float32), np.ones(3, np.float32))
