"""Attention as one kernel agrees with NumPy: every form, mask, layout and many lengths."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pytest

import tilewright as tw
from tilewright.dtypes import DType, boolean, f32
from tilewright.tensor import ir as tir
from tilewright.tensor import library
from tilewright.tensor.build import func, placeholder, size

PLAIN = ("bhsd", "bhsd", "bhsd", "bhsd")
TOKENS = ("bshd", "bshd", "bshd", "bshd")


@dataclass(frozen=True)
class Case:
    """A kind of attention; masks are given by the dimensions they have, 1 for those they lack."""

    heads: int = 2
    shared: int = 2
    features: int = 16
    values: int = 16
    causal: bool = False
    masks: tuple[str, ...] = ()
    mask_type: DType = f32
    softcap: float | None = None
    layouts: tuple[str, str, str, str] = PLAIN

    def program(self, batch: object, queries: object, keys: object) -> tir.Func:
        """The program for sizes that are numbers or symbolic."""
        q = self._operand("Q", batch, self.heads, queries, self.features, self.layouts[0])
        k = self._operand("K", batch, self.shared, keys, self.features, self.layouts[1])
        v = self._operand("V", batch, self.shared, keys, self.values, self.layouts[2])
        have = {"b": batch, "h": self.heads, "q": queries, "k": keys}
        masks = [
            placeholder(f"A{n}", [have.get(c, 1) for c in mask], self.mask_type)
            for n, mask in enumerate(self.masks)
        ]
        y = library.attend(
            *(q, k, v, masks),
            causal=self.causal,
            offset=keys - queries,
            softcap=self.softcap,
            layouts=self.layouts,
            name="Y",
        )
        return func("attention", [q, k, v, *masks], [y])

    def _operand(self, name, batch, heads, length, features, layout):
        have = {"b": batch, "h": heads, "s": length, "d": features}
        return placeholder(name, [have[c] for c in layout])

    def arrays(self, batch: int, queries: int, keys: int, seed: int = 0) -> list[np.ndarray]:
        rng = np.random.default_rng(seed)
        sizes = {"b": batch, "d": self.features}
        of = [
            sizes | {"h": self.heads, "s": queries},
            sizes | {"h": self.shared, "s": keys},
            sizes | {"h": self.shared, "s": keys, "d": self.values},
        ]
        made = [
            rng.standard_normal([have[c] for c in layout]).astype(np.float32)
            for have, layout in zip(of, self.layouts[:3], strict=True)
        ]
        have = {"b": batch, "h": self.heads, "q": queries, "k": keys}
        for mask in self.masks:
            values = rng.standard_normal([have.get(c, 1) for c in mask]).astype(np.float32)
            if self.mask_type is boolean:
                values = values > 0
                values[..., 0] = True  # every query sees a key
            made.append(values)
        return made

    def expected(self, arrays: Sequence[np.ndarray]) -> np.ndarray:
        """The definition, in double precision, stored as the result is."""
        q, k, v = (
            a.astype(np.float64).transpose([layout.index(c) for c in "bhsd"])
            for a, layout in zip(arrays[:3], self.layouts[:3], strict=True)
        )
        k, v = (np.repeat(a, self.heads // self.shared, axis=1) for a in (k, v))
        scores = q @ k.swapaxes(2, 3) / math.sqrt(self.features)
        if self.softcap is not None:
            scores = np.tanh(scores / self.softcap) * self.softcap
        for mask in arrays[3:]:
            scores = np.where(mask, scores, -np.inf) if mask.dtype == bool else scores + mask
        if self.causal:
            queries, keys = scores.shape[2:]
            seen = np.arange(keys) <= np.arange(queries)[:, None] + keys - queries
            scores = np.where(seen, scores, -np.inf)
        with np.errstate(invalid="ignore"):
            powers = np.exp(scores - scores.max(axis=3, keepdims=True))
        result = powers @ v / powers.sum(axis=3, keepdims=True)
        return result.transpose(["bhsd".index(c) for c in self.layouts[3]])


CASES = {
    "plain": Case(),
    "tokens first": Case(layouts=TOKENS),
    "causal": Case(causal=True),
    "shared heads, causal": Case(heads=6, shared=2, causal=True, layouts=TOKENS),
    "mask for keys": Case(masks=("b11k",)),
    "mask for all": Case(masks=("bhqk",), features=8, values=24),
    "two masks": Case(masks=("1hqk", "b1qk"), features=12, values=5),
    "boolean mask": Case(masks=("b1qk",), mask_type=boolean),
    "capped": Case(softcap=3.0, causal=True),
    "transposed keys": Case(layouts=("bhsd", "bhds", "bhsd", "bshd"), features=20),
}


def check(kernel, case: Case, sizes: tuple[int, int, int]) -> None:
    arrays = case.arrays(*sizes)
    found = kernel(*arrays)
    np.testing.assert_allclose(found, case.expected(arrays), rtol=2e-5, atol=2e-6)
    assert np.array_equal(found, kernel(*arrays))


def is_one_kernel(kernel) -> bool:
    """Was it scheduled as a whole?"""
    steps = [step.primitive for step in kernel.report.trace]
    return "compute_at" in steps and "set_scope" in steps


@pytest.mark.parametrize("name", CASES)
def test_every_length_from_one_compilation(name):
    case = CASES[name]
    kernel = tw.build(case.program(size("b"), size("m"), size("n")), threads=2)
    assert "factor_softmax" in [step.primitive for step in kernel.report.trace]
    for queries, keys in ((1, 1), (1, 40), (3, 3), (16, 17), (33, 70), (20, 261), (5, 600)):
        check(kernel, case, (2 if keys < 50 else 1, queries, keys))


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("sizes", [(2, 1, 37), (1, 13, 13), (1, 40, 130)])
def test_known_lengths(name, sizes):
    case = CASES[name]
    kernel = tw.build(case.program(*sizes), threads=2)
    assert is_one_kernel(kernel)
    check(kernel, case, sizes)


@pytest.mark.parametrize("sizes", [(1, 3, 19), (3, 24, 24), (1, 40, 600)])
def test_one_thread(sizes):
    case = Case(heads=6, shared=2, causal=True)
    check(tw.build(case.program(*sizes), threads=1), case, sizes)


def test_queries_in_front_of_all_keys_see_none():
    """With fewer keys than queries, the first rows of a causal attention are empty."""
    case = Case(causal=True)
    kernel = tw.build(case.program(1, size("m"), size("n")))
    arrays = case.arrays(1, 40, 7)
    found = kernel(*arrays)
    assert np.isnan(found[:, :, :33]).all()
    np.testing.assert_allclose(found, case.expected(arrays), rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("length", [1, 20, size("s")])
def test_queries_keys_and_values_in_one_tensor(length):
    x = placeholder("X", (1, length, 3, 2, 16))
    y = library.attend(x, x, x, layouts=("bs0hd", "bs1hd", "bs2hd", "bshd"), name="Y")
    kernel = tw.build(func("packed", [x], [y]), threads=2)
    assert is_one_kernel(kernel)
    known = length if isinstance(length, int) else 70
    case = Case(layouts=TOKENS)
    arrays = [case.arrays(1, known, known, seed)[0] for seed in range(3)]
    found = kernel(np.stack(arrays, axis=2))
    np.testing.assert_allclose(found, case.expected(arrays), rtol=2e-5, atol=2e-6)


def test_many_keys_of_one_head():
    case = Case(heads=1, shared=1)
    kernel = tw.build(case.program(1, 25, 1500), threads=2)
    assert "factor_softmax" in [step.primitive for step in kernel.report.trace]
    check(kernel, case, (1, 25, 1500))


@pytest.mark.parametrize("queries", [1, 9])
def test_a_query_without_keys_is_not_a_number(queries):
    case = Case(masks=("b11k",))
    kernel = tw.build(case.program(size("b"), queries, size("n")))
    arrays = case.arrays(2, queries, 11)
    arrays[3][1] = -np.inf
    found = kernel(*arrays)
    assert np.isfinite(found[0]).all()
    assert np.isnan(found[1]).all()


def test_the_least_number_as_a_mask_weights_all_keys_alike():
    case = Case(masks=("b11k",))
    kernel = tw.build(case.program(1, size("m"), size("n")))
    arrays = case.arrays(1, 9, 7)
    arrays[3][:] = np.finfo(np.float32).min
    mean = arrays[2].mean(axis=2, keepdims=True)
    np.testing.assert_allclose(kernel(*arrays), np.repeat(mean, 9, axis=2), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("queries", [2, 9])
def test_large_scores_do_not_overflow(queries):
    case = Case()
    kernel = tw.build(case.program(1, queries, size("n")))
    arrays = case.arrays(1, queries, 300)
    arrays[0] *= 1e4
    arrays[1] *= 1e4
    found = kernel(*arrays)
    assert np.isfinite(found).all()
    best = np.einsum("bhqd,bhkd->bhqk", *map(np.float64, arrays[:2])).argmax(axis=3)
    chosen = np.take_along_axis(arrays[2], best[..., None], axis=2)
    np.testing.assert_allclose(found, chosen, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", [tw.f16, tw.bf16, tw.f64])
@pytest.mark.parametrize("queries", [1, 20])
def test_other_element_types(dtype, queries):
    q, k, v = (
        placeholder(n, (1, 2, s, 16), dtype) for n, s in zip("QKV", (queries, 30, 30), strict=True)
    )
    kernel = tw.build(func("narrow", [q, k, v], [library.attend(q, k, v, name="Y")]))
    arrays = [a.astype(dtype.numpy) for a in Case().arrays(1, queries, 30)]
    expected = Case().expected([np.asarray(a, np.float64) for a in arrays])
    tolerance = {16: 1e-2, 64: 1e-9}[dtype.bits]
    found = kernel(*arrays)
    assert found.dtype == dtype.numpy
    np.testing.assert_allclose(np.asarray(found, np.float64), expected, atol=tolerance)
