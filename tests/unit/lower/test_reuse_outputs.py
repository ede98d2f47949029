import pytest

from tests.lowering import applied
from tilewright.lower.reuse_outputs import reuse_outputs
from tilewright.tensor.parser import parse

SOFTMAX_TAIL = """
    def f(X: f32[4, 8], Y: f32[4, 8]):
        for i in parallel(4):
            E = alloc(f32[4, 8])
            S = alloc(f32[4])
            for j in range(8):
                E[i, j] = X[i, j] * 2.0
            S[i] = 0.0
            for j in range(8):
                S[i] = S[i] + E[i, j]
            for j in range(8):
                Y[i, j] = E[i, j] * S[i]
"""


def test_an_intermediate_lives_in_the_output_it_becomes(golden):
    assert golden == applied(reuse_outputs, SOFTMAX_TAIL, remarks=[])


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Y[i, j] = E[i, j] * S[i]", "Y[i, j] = E[i, 7 - j] * S[i]"),  # another element
        ("E[i, j] = X[i, j] * 2.0", "E[3 - i, j] = X[i, j] * 2.0"),  # another part of it
        ("Y: f32[4, 8]", "Y: f64[4, 8]"),
        ("f32[4, 8])\n            S", "f32[4, 9])\n            S"),
        ("Y[i, j] = E[i, j] * S[i]", "Y[i, j] = S[i] + 1.0"),  # not made from it
    ],
)
def test_an_intermediate_stays_where_it_is(old, new):
    text = SOFTMAX_TAIL.replace(old, new)
    if "f64" in new:
        text = text.replace("E[i, j] * S[i]", "f64(E[i, j] * S[i])")
    assert text != SOFTMAX_TAIL
    func = parse(text)
    assert reuse_outputs(func, None) == func


@pytest.mark.parametrize("n", [1, 8])
def test_an_intermediate_that_is_used_again_in_the_same_loop_stays(n):
    text = f"""
    def f(X: f32[{n}], Y: f32[{n}], Z: f32[{n}]):
        E = alloc(f32[{n}])
        for j in range({n}):
            E[j] = X[j] * 2.0
        for j in range({n}):
            Y[j] = E[j] + 1.0
            Z[j] = E[j] * 3.0
    """
    func = parse(text)
    assert reuse_outputs(func, None) == func


def test_an_intermediate_that_is_used_again_stays():
    text = """
    def f(X: f32[8], Y: f32[8], Z: f32[8]):
        E = alloc(f32[8])
        for j in range(8):
            E[j] = X[j] * 2.0
        for j in range(8):
            Y[j] = E[j] + 1.0
        for j in range(8):
            Z[j] = E[j] * E[7 - j]
    """
    func = parse(text)
    assert reuse_outputs(func, None) == func


def test_statements_without_loops_are_told_apart():
    text = """
    def f(X: f32[1], Y: f32[1], Z: f64[1]):
        E = alloc(f32[1])
        E[0] = X[0] * 2.0
        Y[0] = E[0] + 1.0
        Z[0] = f64(E[0] * 3.0)
    """
    func = parse(text)
    assert reuse_outputs(func, None) == func
