"""Sizes that make no sense in a branch matter only if the branch is taken."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tests.expect import raises_code
from tests.unit.model.test_control_flow import BOOL, FLOAT, INT64, body, graph, info, model, node
from tilewright.model.sizing import is_plain
from tilewright.tensor import ir as tir

N, M = tir.Var("n"), tir.Var("m")
X = info("x", FLOAT, [1, 1, "h", "w"])
FLAG = info("flag", BOOL)
WINDOW = np.ones((1, 1, 5, 5), np.float32)


@pytest.mark.parametrize("dim", [tir.Const(0), N, N * M + 3, N // 2, (N - 3) % 4])
def test_sizes_that_all_runs_have(dim):
    assert is_plain(dim)
    assert is_plain(tir.maximum(N - M, dim))


@pytest.mark.parametrize("dim", [N - 3, N * M - N, (N - 5) // 2 + 1, N // M, N % M, -N])
def test_sizes_that_some_runs_do_not_have(dim):
    assert not is_plain(dim)
    assert not is_plain(dim * 2)
    assert not is_plain(tir.minimum(N, dim))


def test_a_greatest_value_that_cannot_be_computed():
    assert not is_plain(tir.maximum(N, N // M))


def summed(*nodes, result="t"):
    return graph(
        [*nodes, node("ReduceSum", result, f"{result}_sum", keepdims=0)], [], f"{result}_sum"
    )


def chosen(then, otherwise, inputs=(X, FLAG), weights=None):
    nodes = [node("If", "flag", "y", then_branch=then, else_branch=otherwise)]
    return model(nodes, inputs, "y", {"W": WINDOW} if weights is None else weights)


def compiled(made, threads=1):
    return tw.compile(made, threads=threads, cache=False)


def ones(*shape):
    return np.ones(shape, np.float32)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("shape", [(9, 9), (2, 9), (2, 2)])
def test_a_window_that_is_larger_than_the_picture(shape, threads):
    """Two negative sizes have a product that is none."""
    h, w = shape
    module = compiled(chosen(summed(node("Conv", "x W", "t")), summed(result="x")), threads)
    feeds = {"x": ones(1, 1, h, w)}
    assert module.run({**feeds, "flag": np.array(False)})[0] == h * w
    if h < 5:
        with raises_code("C025", text="`h - 4` must not be negative"):
            module.run({**feeds, "flag": np.array(True)})
    else:
        assert module.run({**feeds, "flag": np.array(True)})[0] == (h - 4) * (w - 4) * 25
    assert module.run({**feeds, "flag": np.array(False)})[0] == h * w, "also after a failure"


def test_without_a_branch_it_fails_at_once():
    whole = model(
        [node("Conv", "x W", "t"), node("ReduceSum", "t", "y", keepdims=0)], [X], "y", {"W": WINDOW}
    )
    module = compiled(whole)
    assert module.run({"x": ones(1, 1, 5, 6)})[0] == 50
    with raises_code("C025", text="`h - 4` must not be negative"):
        module.run({"x": ones(1, 1, 2, 2)})


def test_a_line_that_is_too_short_says_how_many_bytes_it_would_have():
    line, kernel = info("x", FLOAT, [1, 1, "w"]), {"W": ones(1, 1, 5)}
    then = summed(node("Conv", "x W", "t"))
    module = compiled(chosen(then, summed(result="x"), (line, FLAG), kernel))
    feeds = {"x": ones(1, 1, 2)}
    assert module.run({**feeds, "flag": np.array(False)})[0] == 2
    with raises_code("C025", text="would have -8 bytes"):
        module.run({**feeds, "flag": np.array(True)})


def test_branches_inside_of_branches():
    inner = summed(node("Conv", "x W", "t"))
    other = summed(node("Neg", "x", "u"), result="u")
    middle = graph([node("If", "inner", "z", then_branch=inner, else_branch=other)], [], "z")
    made = chosen(middle, summed(result="x"), (X, FLAG, info("inner", BOOL)))
    module = compiled(made)
    feeds = {"x": ones(1, 1, 3, 3)}
    for flag, within, wanted in ((False, True, 9), (False, False, 9), (True, False, -9)):
        found = module.run({**feeds, "flag": np.array(flag), "inner": np.array(within)})
        assert found[0] == wanted
    with raises_code("C025"):
        module.run({**feeds, "flag": np.array(True), "inner": np.array(True)})
    feeds = {"x": ones(1, 1, 5, 5)}
    assert module.run({**feeds, "flag": np.array(True), "inner": np.array(True)})[0] == 25


def test_a_loop_that_does_not_run():
    inside = [
        node("Conv", "x W", "t"),
        node("ReduceSum", "t", "u", keepdims=0),
        node("Add", "v u", "next"),
        node("Identity", "cond", "on"),
    ]
    loop = body(inside, [info("v")], "on next")
    made = model(
        [node("Loop", "trips  start", "y", body=loop)],
        [X, info("trips", INT64), info("start")],
        "y",
        {"W": WINDOW},
    )
    module = compiled(made)
    feeds = {"start": np.float32(4), "x": ones(1, 1, 2, 2)}
    assert module.run({**feeds, "trips": np.array(0)})[0] == 4
    with raises_code("C025"):
        module.run({**feeds, "trips": np.array(1)})
    feeds["x"] = ones(1, 1, 6, 5)
    assert module.run({**feeds, "trips": np.array(3)})[0] == 4 + 3 * 50


def test_results_whose_size_the_branch_tells():
    then = graph([node("Conv", "x W", "t"), node("Relu", "t", "r")], [], "r")
    other = graph([node("Neg", "x", "s")], [], "s")
    module = compiled(chosen(then, other))
    for h, w in ((7, 6), (2, 2), (5, 5), (2, 9)):
        x = np.random.default_rng(h).standard_normal((1, 1, h, w)).astype(np.float32)
        np.testing.assert_array_equal(module.run({"x": x, "flag": np.array(False)})[0], -x)
        if h > 4:
            (found,) = module.run({"x": x, "flag": np.array(True)})
            assert found.shape == (1, 1, h - 4, w - 4)
        else:
            with raises_code("C025"):
                module.run({"x": x, "flag": np.array(True)})
