"""Products of dequantised operands become exact products of small integers."""

from __future__ import annotations

import numpy as np
import pytest

from tests.rewriting import keeps, operators, picture
from tilewright.dtypes import f32, i8, i16, i32, u8
from tilewright.graph import Builder, Graph, Value, interpret, verify_graph
from tilewright.graph.ops import Contract
from tilewright.graph.ops.window import Conv
from tilewright.graph.passes.integer_products import MOST_TERMS, integer_products
from tilewright.graph.passes.pipeline import SmallIntegers, optimise
from tilewright.graph.passes.rewrite import Rule, rewrite_graph
from tilewright.tensor import ir as tir

N = tir.Var("n")
RULE = integer_products()


def integers(b: Builder, *shape: int, dtype=i8, name: str = "w") -> Value:
    rng = np.random.default_rng(shape)
    low, high = dtype.min_value, dtype.max_value
    return b.constant(rng.integers(low, high + 1, shape).astype(dtype.numpy), name)


def dequantised(b: Builder, q: Value, zero: object = None, scale: object = None) -> Value:
    """`(q - zero) · scale`; without a scale it stays an integer."""
    parts = [q]
    if zero is not None:
        parts.append(zero if isinstance(zero, Value) else b.constant(zero, dtype=q.dtype))
    if scale is not None:
        parts.append(scale if isinstance(scale, Value) else b.constant(scale, dtype=f32))

    def body(v: tir.Expr, *rest: tir.Expr) -> tir.Expr:
        value = v.to(i32)
        if zero is not None:
            value = value - rest[0].to(i32)
        return value if scale is None else value.to(f32) * rest[-1]

    return b.map(body, *parts, fold=False)


def product(zeros=(7, 0), scales=(0.5, 0.25), depth: int = 12) -> Graph:
    """Rows with one zero point and scale, columns with their own scales."""
    b = Builder("product")
    x, w = b.input("x", u8, (N, depth)), integers(b, depth, 6)
    factors = [None, None]
    if scales:
        own = np.linspace(scales[1], 1, 6, dtype=np.float32).reshape(1, 6)
        factors = [scales[0], b.constant(own)]
    sides = [
        dequantised(b, q, z or None, s) for q, z, s in zip((x, w), zeros, factors, strict=True)
    ]
    return b.graph([b.matmul(*sides)], ["y"])


def convolution(zero: int = 9, channels: int = 8, groups: int = 1, pad: int = 1) -> Graph:
    b = Builder("convolution")
    x, w = b.input("x", u8, (N, 5, 6, channels)), integers(b, 6, channels // groups, 3, 3)
    scale = b.constant(np.linspace(0.1, 1, 6, dtype=np.float32).reshape(6, 1, 1, 1))
    op = Conv((1, 1), (1, 1), (pad,) * 4, groups, f32)
    return b.graph([b.add(op, dequantised(b, x, zero, 0.5), dequantised(b, w, None, scale))], ["y"])


def rewritten(graph: Graph) -> Graph:
    """The graph after one walk of the rule."""
    return rewritten_by(graph, RULE)


def rewritten_by(graph: Graph, rule: Rule) -> Graph:
    """The graph after one walk; equal sums, up to the rounding of floats that are no more."""
    after = verify_graph(rewrite_graph(verify_graph(graph), rule))
    rng = np.random.default_rng(3)
    feeds = {}
    for value in graph.inputs:
        shape = [tir.int_value(d) or 3 for d in value.shape]
        low, high = value.dtype.min_value, value.dtype.max_value
        feeds[value.name] = rng.integers(low, high + 1, shape).astype(value.dtype.numpy)
    for found, wanted in zip(interpret(after, feeds), interpret(graph, feeds), strict=True):
        assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
        if found.dtype.kind == "i":
            np.testing.assert_array_equal(found, wanted)
        else:
            np.testing.assert_allclose(found, wanted, atol=1e-6 * np.abs(wanted).max())
    return after


def large(graph: Graph) -> list[str]:
    """Types of the operands of products and convolutions."""
    nodes = [n for n in graph.nodes if isinstance(n.op, Contract | Conv)]
    return [str(v.dtype) for n in nodes for v in n.inputs]


def test_a_product_with_a_zero_point(golden):
    graph = product()
    assert golden == picture(graph, RULE)
    assert large(rewritten(graph)) == ["u8", "i8"]


def test_a_convolution_has_a_border_of_zero_points(golden):
    graph = convolution()
    assert golden == picture(graph, RULE)
    assert large(rewritten(graph)) == ["u8", "i8"]


@pytest.mark.parametrize(
    "graph",
    [
        product(zeros=(0, 0)),
        product(zeros=(3, 5)),
        product(zeros=(0, 5)),
        product(scales=()),
        product(zeros=(200, -100), scales=()),
        convolution(0),
        convolution(5, pad=0),
        convolution(5, channels=6, groups=2),
        convolution(5, channels=3),
        convolution(0, channels=5),
    ],
)
def test_sums_are_those_of_small_integers(graph):
    assert large(rewritten(graph)) == ["u8", "i8"]


def test_channels_come_in_groups_of_four():
    (conv,) = [n for n in rewritten(convolution(5, channels=3)).nodes if isinstance(n.op, Conv)]
    assert [tir.int_value(v.shape[k]) for v, k in zip(conv.inputs, (-1, 1), strict=True)] == [4, 4]


def test_zero_points_and_scales_of_rows():
    """As QLinearMatMul has them: they come out of the sum with their row."""
    b = Builder("rows")
    x, w = b.input("x", u8, (4, 12)), integers(b, 12, 6)
    zero = b.constant(np.array([[3], [0], [255], [128]], np.uint8))
    scale = b.constant(np.array([[0.5], [1], [2], [0.25]], np.float32))
    y = b.matmul(dequantised(b, x, zero, scale), dequantised(b, w, None, 0.5))
    assert large(rewritten(b.graph([y], ["y"]))) == ["u8", "i8"]


def test_weights_may_be_on_the_left_and_turned():
    b = Builder("left")
    x, w = b.input("x", u8, (12, N)), integers(b, 12, 6)
    w = dequantised(b, w, 4, b.constant(np.linspace(0.1, 1, 6, dtype=np.float32).reshape(1, 6)))
    y = b.contract("mk", "kn", "mn", b.transpose(w, (1, 0)), dequantised(b, x, 9, 0.5))
    assert large(rewritten(b.graph([y], ["y"]))) == ["i8", "u8"]


def _moving_along_the_sum() -> Graph:
    b = Builder("along")
    x, w = b.input("x", u8, (N, 12)), integers(b, 12, 6)
    scale = b.constant(np.linspace(0.1, 1, 12, dtype=np.float32).reshape(12, 1))
    return b.graph([b.matmul(dequantised(b, x, 3, 0.5), dequantised(b, w, None, scale))], ["y"])


def _of_the_call() -> Graph:
    b = Builder("call")
    x, w = b.input("x", u8, (N, 12)), b.input("w", i8, (12, 6))
    return b.graph([b.matmul(dequantised(b, x, 3, 0.5), dequantised(b, w, None, 0.5))], ["y"])


def _wide() -> Graph:
    b = Builder("wide")
    x, w = b.input("x", i16, (N, 12)), integers(b, 12, 6)
    return b.graph([b.matmul(dequantised(b, x, 3, 0.5), dequantised(b, w, None, 0.5))], ["y"])


def _border_of_a_zero_point_of_the_call() -> Graph:
    b = Builder("border")
    x, w = b.input("x", u8, (N, 5, 6, 4)), integers(b, 6, 4, 3, 3)
    zero = b.input("zero", u8, ())
    op = Conv((1, 1), (1, 1), (1,) * 4, 1, i32)
    return b.graph([b.add(op, dequantised(b, x, zero), dequantised(b, w, 1))], ["y"])


@pytest.mark.parametrize(
    "graph",
    [
        _moving_along_the_sum(),
        _of_the_call(),
        _wide(),
        _border_of_a_zero_point_of_the_call(),
        product(depth=MOST_TERMS + 1),
    ],
    ids=["along the sum", "of the call", "16 bits", "unknown border", "overflow"],
)
def test_what_stays_as_it_is(graph):
    assert large(rewritten(graph)) == large(graph)


FAST = SmallIntegers(frozenset({(u8, i8)}), gain=4.0)
"""Of a machine with VNNI."""


def test_floats_stay_where_integers_are_no_faster():
    for graph, least in ((product(), 1.0), (convolution(), 2.0)):
        for gain in (0.0, least, least + 0.1):
            found = large(rewrite_graph(graph, integer_products(gain)))
            assert found == (["u8", "i8"] if gain > least else ["f32", "f32"])
    slow = SmallIntegers(FAST.pairs, gain=1.5)
    assert large(optimise(product(), small=slow)) == ["u8", "i8"]
    assert large(optimise(convolution(), small=slow)) == ["f32", "f32"]
    assert large(optimise(convolution(), small=FAST)) == ["u8", "i8"]
    assert large(optimise(product())) == ["f32", "f32"]


def test_strict_graphs_round_floats_as_they_are_written():
    assert large(optimise(product(), strict=True, small=FAST)) == ["f32", "f32"]
    exact = product(zeros=(7, 3), scales=())
    assert large(optimise(exact, strict=True, small=FAST)) == ["u8", "i8"]
    assert large(optimise(exact)) == ["u8", "i8"]


def _of(body, dtype) -> Graph:
    """A product whose data are some function of small integers."""
    b = Builder("of")
    x, w = b.map(body, b.input("x", u8, (4, 12))), dequantised(b, integers(b, 12, 6), 5)
    if dtype == f32:
        w = dequantised(b, integers(b, 12, 6), None, 0.5)
    return b.graph([b.matmul(x, w, dtype)], ["y"])


@pytest.mark.parametrize(
    "graph",
    [
        _of(lambda v: (v.to(f32) - 127.5) * 0.5, f32),
        _of(lambda v: v.to(i32) * 3, i32),
        _of(lambda v: (v - tir.const(9, u8)).to(i32), i32),
    ],
    ids=["a fraction", "a factor of integers", "wrapping"],
)
def test_other_functions_of_small_integers_stay(graph):
    assert large(rewritten(graph)) == large(graph)


def test_sums_over_a_dimension_of_one_operand_stay():
    b = Builder("alone")
    x, w = b.input("x", u8, (4, 12)), integers(b, 12, 6, 5)
    made = b.contract("mk", "knj", "mn", dequantised(b, x, 3), dequantised(b, w, 7), i32)
    graph = b.graph([made], ["y"])
    assert large(rewritten(graph)) == large(graph)


def test_it_changes_nothing_twice():
    once = rewritten(convolution())
    assert operators(rewrite_graph(once, RULE)) == operators(once)


def test_products_of_floats_stay():
    b = Builder("floats")
    y = b.matmul(b.input("x", f32, (N, 4)), b.constant(np.ones((4, 2), np.float32)))
    assert keeps(b.graph([y], ["y"]), RULE)
