"""Factors of channels become part of the weights, where these are constants and read once."""

from __future__ import annotations

import numpy as np
import pytest

from tests.rewriting import keeps, picture, rewritten
from tilewright.dtypes import f32, i64
from tilewright.graph import Builder, Value
from tilewright.graph.ops.window import Conv, ConvTranspose
from tilewright.graph.passes.pipeline import optimise
from tilewright.graph.passes.scales import fold_scales
from tilewright.tensor import ir as tir

N = tir.Var("n")


def numbers(b: Builder, *shape: int) -> Value:
    rng = np.random.default_rng(shape)
    return b.constant(rng.uniform(0.5, 2, shape).astype(np.float32), "k")


def conv(b: Builder, groups: int = 1) -> Value:
    x = b.input("x", f32, (N, 4, 4, 2))
    return b.add(Conv((1, 1), (1, 1), (0,) * 4, groups, f32), x, numbers(b, 6, 2 // groups, 3, 3))


def conv_transpose(b: Builder, groups: int = 1) -> Value:
    x = b.input("x", f32, (N, 4, 4, 2))
    op = ConvTranspose((2, 2), (1, 1), (0,) * 4, (0, 0), groups, f32)
    return b.add(op, x, numbers(b, 2, 6 // groups, 2, 2))


def product(b: Builder) -> Value:
    return b.matmul(b.input("x", f32, (N, 4)), numbers(b, 4, 6))


def turned_product(b: Builder) -> Value:
    return b.contract("mk", "nk", "mn", b.input("x", f32, (N, 4)), numbers(b, 6, 4))


HEAVY = {
    "conv": conv,
    "groups": lambda b: conv(b, 2),
    "transposed": conv_transpose,
    "product": product,
    "turned": turned_product,
}


def test_a_batch_normalisation_leaves_an_addition(golden):
    b = Builder("norm")
    y = b.map(lambda v, s, c: v * s + c, conv(b), numbers(b, 6), numbers(b, 6))
    assert golden == picture(b.graph([y], ["y"]), fold_scales)


@pytest.mark.parametrize("heavy", HEAVY.values(), ids=HEAVY)
def test_strict_graphs_keep_their_weights(heavy):
    b = Builder("strict")
    graph = b.graph([b.map(lambda v: v * 0.1, heavy(b))], ["y"])
    given = {array.tobytes() for array in graph.constants.values()}
    for strict in (False, True):
        kept = {array.tobytes() for array in optimise(graph, strict=strict).constants.values()}
        assert (kept == given) == strict


@pytest.mark.parametrize("heavy", HEAVY.values(), ids=HEAVY)
@pytest.mark.parametrize("literal", [False, True], ids=["vector", "literal"])
def test_factors_go_into_weights_of_every_kind(heavy, literal):
    b = Builder("scaled")
    y = heavy(b)
    scaled = b.map(lambda v: 3.0 * v, y) if literal else b.map(lambda s, v: s * v, numbers(b, 6), y)
    (node,) = rewritten(b.graph([scaled]), fold_scales).nodes
    assert node.op.name in {"conv", "convtranspose", "contract"}


def test_a_difference_keeps_its_order():
    b = Builder("difference")
    y = b.map(lambda v, s, c: v * s - c, product(b), numbers(b, 6), numbers(b, 1, 6))
    after = rewritten(b.graph([y]), fold_scales)
    assert str(after.nodes[-1].op) == "map(body=arg0 - arg1, dtype=f32)"


BODIES = {
    "the value is added too": lambda v, s: v * s + v,
    "a function of it is added": lambda v, s: v * s - tir.maximum(v, 0.0),
    "a square": lambda v, s: v * v + s,
    "a quotient": lambda v, s: s / v,
    "a product is added": lambda v, s: v * s + v * 2.0,
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_what_is_more_than_a_factor_stays(body):
    b = Builder("body")
    assert keeps(b.graph([b.map(body, product(b), numbers(b, 6))]), fold_scales)


def test_what_is_added_may_be_the_factor():
    b = Builder("shared")
    y = b.map(lambda v, s: v * s + s, product(b), numbers(b, 6))
    after = rewritten(b.graph([y]), fold_scales)
    assert str(after.nodes[-1].op) == "map(body=arg0 + arg1, dtype=f32)"


def test_factors_that_are_data_stay():
    b = Builder("data")
    y = b.map(lambda v, s: v * s, product(b), b.input("s", f32, (6,)))
    assert keeps(b.graph([y]), fold_scales)


def test_weights_that_are_data_stay():
    b = Builder("weights")
    y = b.matmul(b.input("x", f32, (N, 4)), b.input("w", f32, (4, 6)))
    assert keeps(b.graph([b.map(lambda v, s: v * s, y, numbers(b, 6))]), fold_scales)


def test_a_value_that_others_read_is_not_scaled():
    b = Builder("twice")
    y = product(b)
    scaled = b.map(lambda v, s: v * s, y, numbers(b, 6))
    assert keeps(b.graph([scaled, b.map(lambda v: v + 1.0, y)]), fold_scales)
    assert keeps(b.graph([scaled, y]), fold_scales)


def test_factors_of_other_dimensions_stay():
    b = Builder("rows")
    y = b.matmul(b.input("x", f32, (6, 4)), numbers(b, 4, 6))
    assert keeps(b.graph([b.map(lambda v, s: v * s, y, numbers(b, 6, 1))]), fold_scales)


def test_transposed_convolutions_in_groups_stay():
    b = Builder("groups")
    y = b.map(lambda v, s: v * s, conv_transpose(b, 2), numbers(b, 6))
    assert keeps(b.graph([y]), fold_scales)


def test_integers_stay():
    b = Builder("integers")
    y = b.matmul(b.input("x", i64, (N, 4)), b.constant(np.arange(24).reshape(4, 6)))
    assert keeps(b.graph([b.map(lambda v: v * 2, y)]), fold_scales)
