"""`factor_softmax` and `skip_masked`: blocks of keys, and tiles that nobody looks at."""

from __future__ import annotations

import numpy as np
import pytest

from tests.expect import raises_code
from tilewright.schedule import Schedule
from tilewright.tensor import library
from tilewright.tensor.build import (
    call,
    compute,
    func,
    max_over,
    placeholder,
    reduce_axis,
    size,
    sum_over,
)
from tilewright.tensor.interpret import interpret
from tilewright.testing import random_inputs


def close(found: np.ndarray, expected: np.ndarray) -> bool:
    return bool(np.allclose(found, expected, rtol=1e-5, atol=1e-6, equal_nan=True))


def test_factored_program(golden):
    s = Schedule(library.attention(1, 1, 2, 6, 2))
    assert s.factor_softmax("Y_powers", 3) == (
        "Y_max_part",
        "Y_total_part",
        "Y_sums_part",
        "Y_max_weight",
    )
    assert golden == s.func


def test_skipping_program(golden):
    s = Schedule(library.attention(1, 1, size("m"), size("n"), 2, causal=True))
    s.factor_softmax("Y_powers", 4)
    s.skip_masked("Y_powers", 2, 2)
    assert golden == s.func


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("keys", [1, 3, 4, 9])
def test_meaning(keys, causal):
    program = library.attention(1, 2, 3, size("n"), 2, causal=causal)
    s = Schedule(program)
    s.factor_softmax("Y_powers", 4)
    n = next(d for d in program.params[1].shape if d not in program.params[0].shape)
    inputs = random_inputs(program, np.random.default_rng(keys), {n: keys})
    expected = interpret(program, inputs)["Y"]
    assert close(interpret(s.func, inputs)["Y"], expected)
    s.skip_masked("Y_powers", 2, 3)
    assert close(interpret(s.func, inputs)["Y"], expected)


def test_large_values_do_not_overflow():
    program = library.attention(1, 1, 2, 7, 2)
    s = Schedule(program)
    s.factor_softmax("Y_powers", 3)
    q = np.full((1, 1, 2, 2), 3e4, np.float32)
    k = np.linspace(-1e4, 1e4, 14, dtype=np.float32).reshape(1, 1, 7, 2)
    v = np.ones((1, 1, 7, 2), np.float32)
    assert np.array_equal(interpret(s.func, [q, k, v])["Y"], np.ones((1, 1, 2, 2), np.float32))


def test_a_masked_block_has_no_weight_and_a_masked_row_no_value():
    """Rows see no key, keys of the first block only, or all."""
    b, q, k = 1, 3, 4
    operands = [placeholder(name, (b, 1, n, 2)) for name, n in zip("QKV", (q, k, k), strict=True)]
    mask = placeholder("A", (q, k))
    program = func("masked", [*operands, mask], [library.attend(*operands, mask, name="Y")])
    s = Schedule(program)
    s.factor_softmax("Y_powers", 2)
    inputs = random_inputs(program, np.random.default_rng(0))
    inputs["A"] = np.array([[-np.inf] * 4, [0, 1, -np.inf, -np.inf], [1, 2, 3, 4]], np.float32)
    found, expected = interpret(s.func, inputs)["Y"], interpret(program, inputs)["Y"]
    assert np.isnan(expected[0, 0, 0]).all()
    assert not np.isnan(expected[0, 0, 1:]).any()
    assert close(found, expected)


@pytest.mark.parametrize("value", [-np.inf, np.inf, np.nan])
def test_totals_that_are_no_number_stay_so(value):
    """Whoever looks at the total of a row finds the same, not only who looks at the result."""
    logits, values = placeholder("X", (2, 5)), placeholder("V", (5,))
    k, r, t = (reduce_axis(5, "k") for _ in range(3))
    masked = compute("L", (2, 5), lambda i, j: logits[i, j] * 1.0)
    peak = compute("M", (2,), lambda i: max_over(masked[i, k], k))
    powers = compute("E", (2, 5), lambda i, j: call("exp", masked[i, j] - peak[i]))
    total = compute("T", (2,), lambda i: sum_over(powers[i, t], t))
    sums = compute("S", (2,), lambda i: sum_over(powers[i, r] * values[r], r))
    program = func("totals", [logits, values], [total, sums])
    s = Schedule(program)
    s.factor_softmax("E", 2)
    inputs = random_inputs(program, np.random.default_rng(1))
    inputs["X"][0] = value
    found, expected = interpret(s.func, inputs), interpret(program, inputs)
    assert np.isnan(expected["T"][0])
    assert close(found["T"], expected["T"])
    assert close(found["S"], expected["S"])


def test_powers_that_are_results_themselves_are_refused():
    with raises_code("S280"):
        Schedule(library.softmax(4, 12)).factor_softmax("E", 4)


def test_a_mask_from_memory_is_no_reason_to_skip():
    s = Schedule(library.attention(1, 2, 4, 12, 3))
    s.factor_softmax("Y_powers", 4)
    with raises_code("S283"):
        s.skip_masked("Y_powers", 2, 2)


def test_an_unbounded_peak_is_no_reason_to_skip():
    """Without a lower bound, minus infinity less itself is no power of zero."""
    s = Schedule(library.attention(1, 2, 4, 12, 3, causal=True))
    with raises_code("S283"):
        s.skip_masked("Y_powers", 2, 2)
