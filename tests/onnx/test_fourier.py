"""Fourier transforms against NumPy: lengths with all kinds of factors, halves, inverses, frames."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import pytest

from tests.onnx.native_nodes import check_native
from tests.onnx.small_models import BATCH
from tilewright.frontend.onnx.fourier import SHORT, factors
from tilewright.graph.ir import Array

RNG = np.random.default_rng(13)


def parts(z: Array, dtype: str) -> Array:
    return np.stack([z.real, z.imag], -1).astype(dtype)


def transform(x: Array, n: int, axis: int, *, inverse: bool, half: bool) -> Array:
    """What ONNX defines, in double precision."""
    wide, axis = x.astype(np.float64), axis % x.ndim
    z = wide[..., 0] + (1j * wide[..., 1] if x.shape[-1] == 2 else 0)
    if inverse and half:
        return np.fft.irfft(z, n, axis)[..., None].astype(x.dtype)
    found = (np.fft.ifft if inverse else np.fft.fft)(z, n, axis)
    if half:
        found = np.take(found, range(n // 2 + 1), axis)
    return parts(found, x.dtype.str)


def check(shape: tuple[int, ...], axis: int, n: int | None = None, **how: Any) -> None:
    dtype, opset = how.pop("dtype", "f4"), how.pop("opset", 20)
    x = RNG.normal(size=shape).astype(dtype)
    inverse, half = how.get("inverse", False), how.get("half", False)
    size = shape[axis] if not (inverse and half) else 2 * (shape[axis] - 1)
    expected = [transform(x, n or size, axis, inverse=inverse, half=half)]
    attributes = {"inverse": int(inverse), "onesided": int(half)}
    inputs: list[Any] = [x, None if n is None else np.int64(n)]
    if opset < 20:
        attributes["axis"] = axis
    else:
        inputs.append(np.int64(axis))
    known = [k for k in range(1, len(inputs)) if inputs[k] is not None]
    scale = (n or size) ** 0.5
    options: dict[str, Any] = {"known": known, "opset": opset, "attributes": attributes}
    check_native("DFT", inputs, expected, scale=scale, **options)


@pytest.mark.parametrize("n", [1, 2, 9, SHORT + 1, 53, 64, 100, 210, 331, 1024, 1031])
@pytest.mark.parametrize("part", [1, 2])
def test_lengths(n: int, part: int) -> None:
    """Powers of two, other composites, small and large primes."""
    check((BATCH, n, part), 1, inverse=part == 2)


@pytest.mark.parametrize("n", [1, 6, 7, 60, 96, 542])
def test_halves(n: int) -> None:
    check((2, n, 1), 1, half=True)
    check((2, n // 2 + 1, 2), 1, n, half=True, inverse=True)


@pytest.mark.parametrize(("n", "how"), [(30, {}), (90, {"half": True}), (20, {"inverse": True})])
def test_longer_and_shorter_than_the_signal(n: int, how: dict[str, Any]) -> None:
    """Zeros are added, or elements left out."""
    check((3, 64, 1), 1, n, **how)


@pytest.mark.parametrize("axis", [0, 1, 2, -2])
@pytest.mark.parametrize("opset", [17, 20])
def test_axes(axis: int, opset: int) -> None:
    check((6, BATCH if axis != 1 else 5, 50, 2), axis, opset=opset)


@pytest.mark.parametrize("dtype", ["f8", "f2"])
def test_types(dtype: str) -> None:
    check((2, 60, 2), 1, dtype=dtype)
    check((2, 60, 1), 1, dtype=dtype, half=True)


@pytest.mark.parametrize("half", [False, True])
@pytest.mark.parametrize("inverse", [False, True])
def test_lengths_that_only_a_run_tells(half: bool, inverse: bool) -> None:
    check((3, BATCH, 1 + inverse), 1, half=half, inverse=inverse)


def test_the_default_axis_is_the_last_of_the_signal() -> None:
    x = RNG.normal(size=(2, 3, 12, 1)).astype(np.float32)
    expected = [transform(x, 12, 2, inverse=False, half=False)]
    check_native("DFT", [x], expected, opset=20, scale=4)


def test_factors() -> None:
    """Their product is the length; a power of two has small ones only."""
    for n in range(2, 400):
        assert prod(factors(n)) == n
    assert max(factors(1 << 14)) <= 16
    assert factors(331) == (331,)


@pytest.mark.parametrize(
    ("part", "window", "length", "half"),
    [(1, True, True, 1), (1, False, True, 0), (2, True, False, 0), (1, True, False, 1)],
)
def test_frames(part: int, window: bool, length: bool, half: int) -> None:
    """Frames of 16 elements, every five, of signals of which the length is a symbol or not."""
    for count in (BATCH * 10, 40):
        x = RNG.normal(size=(2, count, part)).astype(np.float32)
        weights = np.hanning(16).astype(np.float32) if window else None
        inputs = [x, np.int64(5), weights, np.int64(16) if length else None]
        known = [1, 3] if length else [1]
        frames = [x[:, k : k + 16] for k in range(0, count - 15, 5)]
        stacked = np.stack(frames, 1) * (1 if weights is None else weights[:, None])
        expected = [transform(stacked, 16, 2, inverse=False, half=bool(half))]
        attributes = {"onesided": half}
        check_native("STFT", inputs, expected, known=known, attributes=attributes, scale=4)


def test_frames_of_real_numbers_without_a_dimension_of_their_own() -> None:
    """As exporters of PyTorch write them."""
    x = RNG.normal(size=(2, BATCH * 10)).astype(np.float32)
    weights = np.hanning(16).astype(np.float32)
    frames = [x[:, k : k + 16] for k in range(0, x.shape[1] - 15, 5)]
    expected = [
        transform((np.stack(frames, 1) * weights)[..., None], 16, 2, inverse=False, half=True)
    ]
    inputs = [x, np.int64(5), weights, np.int64(16)]
    check_native("STFT", inputs, expected, known=[1, 3], scale=4)
