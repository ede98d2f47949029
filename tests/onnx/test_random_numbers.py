"""Random numbers: as a seed says, even in their distribution, and what uses them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import helper

import tilewright
from tests.onnx.native_nodes import check_native, native
from tests.onnx.small_models import BATCH, make_model
from tilewright.frontend.onnx.random_numbers import mixed

LIKE = np.zeros((BATCH, 9, 400), np.float32)
"""A tensor of a size that only a run tells."""


def test_bits_are_those_of_the_published_generator() -> None:
    """The first three numbers of SplitMix64 with the state zero."""
    found = mixed(np.array([1, 2, 3]), 0)
    assert [hex(n) for n in found] == [
        "0xe220a8397b1dcdaf",
        "0x6e789e6aa1b965f4",
        "0x6c45d188009454f",
    ]


@pytest.mark.parametrize("dtype", ["f4", "f8", "f2"])
def test_uniform(dtype: str) -> None:
    attributes = {"low": -1.0, "high": 3.0}
    (found,) = native("RandomUniformLike", [LIKE.astype(dtype)], attributes=attributes)
    assert (found.shape, found.dtype) == (LIKE.shape, np.dtype(dtype))
    wide = found.astype(np.float64)
    assert -1 <= wide.min() < -0.99
    assert 2.99 < wide.max() <= 3
    assert abs(wide.mean() - 1) < 0.03
    assert abs(wide.var() - 16 / 12) < 0.03
    shares, _ = np.histogram(wide, 8, (-1, 3))
    assert np.abs(shares / wide.size - 1 / 8).max() < 0.01
    assert abs(np.corrcoef(wide.reshape(-1)[:-1], wide.reshape(-1)[1:])[0, 1]) < 0.03


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_normal(dtype: str) -> None:
    attributes = {"mean": 2.0, "scale": 0.5}
    (found,) = native("RandomNormalLike", [LIKE.astype(dtype)], attributes=attributes)
    z = (found.astype(np.float64) - 2) / 0.5
    assert np.isfinite(z).all()
    moments = [z.mean(), z.var() - 1, (z**3).mean(), (z**4).mean() - 3]
    assert np.abs(moments).max() < 0.15


def test_numbers_of_a_seed_are_those_of_the_reference() -> None:
    for op in ("RandomUniform", "RandomNormal"):
        attributes = {"shape": [3, 5], "seed": 7.0, "dtype": 11}
        state = np.random.RandomState(7)
        draw = state.random_sample if op == "RandomUniform" else state.standard_normal
        check_native(op, [], [np.asarray(draw((3, 5)))], attributes=attributes)


def test_seeds_and_names_make_streams() -> None:
    """Equal ones are equal in every run and with any number of threads, others differ."""
    nodes = [
        helper.make_node("RandomUniformLike", ["x"], ["a"]),
        helper.make_node("RandomUniformLike", ["x"], ["b"]),
        helper.make_node("RandomUniformLike", ["x"], ["c"], seed=3.0),
        helper.make_node("RandomUniformLike", ["x"], ["d"], seed=3.0),
        helper.make_node("RandomUniformLike", ["x"], ["e"], seed=4.0),
    ]
    model = make_model(nodes, {"x": LIKE})
    one, two = (tilewright.compile(model, cache=False, threads=n) for n in (1, 2))
    a, b, c, d, e = one.run({"x": LIKE})
    for found, again in zip((a, b, c, d, e), two.run({"x": LIKE}), strict=True):
        np.testing.assert_array_equal(found, again)
    np.testing.assert_array_equal(c, d)
    for x, y in ((a, b), (a, c), (c, e)):
        assert (x != y).mean() > 0.99


def test_bernoulli_and_multinomial() -> None:
    shares = np.broadcast_to(np.linspace(0, 1, 9, dtype=np.float32)[:, None], LIKE.shape)
    (found,) = native("Bernoulli", [np.ascontiguousarray(shares)])
    assert set(np.unique(found)) == {0, 1}
    np.testing.assert_allclose(found.mean((0, 2)), np.linspace(0, 1, 9), atol=0.04)
    weights = np.log(np.array([[0.1, 0.2, 0.7]] * BATCH, np.float32)) + 50
    options: dict[str, Any] = {"attributes": {"sample_size": 2000, "dtype": 7}}
    (drawn,) = native("Multinomial", [weights], **options)
    assert (drawn.shape, drawn.dtype) == ((BATCH, 2000), np.dtype(np.int64))
    counts = [np.bincount(row, minlength=3) / 2000 for row in drawn]
    np.testing.assert_allclose(counts, [[0.1, 0.2, 0.7]] * BATCH, atol=0.04)


@pytest.mark.parametrize("known", [True, False])
def test_dropout_in_training(known: bool) -> None:
    """What is dropped is zero, the others are scaled; whether it is training data may tell."""
    x = np.ones((BATCH, 9, 400), np.float32)
    inputs = [x, np.float32(0.25), np.bool_(True)]
    options: dict[str, Any] = {"outputs": 2, "known": [1, 2] if known else []}
    y, mask = native("Dropout", inputs, **options)
    np.testing.assert_allclose(y, np.where(mask, 1 / 0.75, 0), rtol=1e-6)
    assert abs(mask.mean() - 0.75) < 0.02
    y, mask = native("Dropout", [x, np.float32(0.25), np.bool_(False)], **options)
    np.testing.assert_array_equal(y, x)
    assert mask.all()


def test_dropout_with_a_seed_is_that_of_the_reference() -> None:
    x = np.arange(60, dtype=np.float32).reshape(3, 20)
    inputs = [x, np.float32(0.3), np.bool_(True)]
    check_native("Dropout", inputs, outputs=2, attributes={"seed": 5})
