"""Graphs fold what is known while they are built: constants, and integers made of sizes."""

from __future__ import annotations

import numpy as np
import pytest

from tests.expect import raises_code
from tilewright.dtypes import f16, f32, f64, i32, i64
from tilewright.graph import Builder, Value, interpret
from tilewright.graph.builder import MAX_SYMBOLIC
from tilewright.graph.ops import Gather, Reshape, axis, picked
from tilewright.graph.sizes import as_shape
from tilewright.tensor import ir as tir
from tilewright.tensor.build import call
from tilewright.tensor.printer import print_node

N, S = tir.Var("n"), tir.Var("s")


@pytest.fixture
def b() -> Builder:
    return Builder("built")


def known(b: Builder, value: Value) -> list[str]:
    return [print_node(e) for e in b.integers(value) or []]


def element(b: Builder, x: Value, index: int) -> Value:
    """`x[index:index+1]` by lookup, as models take a dimension out of a shape."""
    place = b.constant(np.array([index]))
    return b.add(Gather(as_shape((1,)), ((1, (axis(0),)),), (picked(0),)), x, place)


# ---- nothing


def test_what_has_no_elements_is_known_and_needs_no_node(b):
    x = b.input("x", f32, (3, 0, 5))
    product = b.contract("abc", "cd", "abd", x, b.input("w", f32, (5, 4)))
    powers = b.map(lambda v: call("exp", v), product)
    assert not b.nodes
    assert b.constants[powers].shape == (3, 0, 4)
    b.map(lambda v: call("exp", v), b.input("y", f32, (N, 0)))
    assert len(b.nodes) == 1  # how many rows of nothing there are, only a run tells


# ---- contents


def test_shapes_are_followed_through_lookups_and_joins(b):
    """Shape → Gather → Concat → Reshape is one reshape with symbolic dimensions."""
    x = b.input("x", f32, (N, S, 8))
    shape = b.sizes(x.shape)
    batch, seq = (element(b, shape, k) for k in (0, 1))
    wanted = b.concat([batch, seq, b.constant(np.array([2, 4]))], 0)
    assert known(b, wanted) == ["n", "s", "2", "4"]
    y = b.reshape(x, b.integers(wanted) or ())
    graph = b.graph([y])
    assert [str(node.op) for node in graph.nodes] == ["reshape(shape=[n, s, 2, 4])"]


def test_arithmetic_on_sizes_is_tidied(b):
    shape = b.sizes((N, S))
    doubled = b.map(lambda v: v * 2 - v, shape)
    assert known(b, doubled) == ["n", "s"]
    total = b.reduce(tir.Fold.MUL, shape, (0,))
    assert known(b, total) == ["n * s"]


def test_conditions_on_sizes_are_known_if_they_are_certain(b):
    shape = b.sizes((N, S + 1))
    assert b.numbers(b.map(lambda v: v.eq(v), shape)) == [1, 1]
    positive = b.map(lambda v: v > 0, shape)
    assert b.numbers(positive) is None
    assert known(b, element(b, positive, 0)) == ["0 < n"], "a size may be zero"
    assert known(b, element(b, positive, 1)) == ["1"]
    assert b.numbers(
        b.map(lambda p: tir.Select(p, tir.Const(2), tir.Const(3)), element(b, positive, 1))
    ) == [2]


def test_sizes_in_other_types(b):
    narrow = b.map(lambda v: v.to(i32), b.sizes((N, 3)))
    assert narrow.dtype == i32
    assert known(b, narrow) == ["n", "3"]
    assert b.integers(b.map(lambda v: v.to(f32), b.sizes((N,)))) is None, "floats are data"


def test_sizes_that_are_numbers_are_a_constant(b):
    value = b.sizes((2, tir.Const(3) * 4))
    assert b.numbers(value) == [2, 12]
    assert value in b.constants


def test_contents_of_large_tensors_are_not_followed(b):
    shape = b.sizes((N,))
    wide = b.expand(shape, (MAX_SYMBOLIC + 1,))
    assert b.contents(wide) is not None
    assert b.contents(b.map(lambda v: v + 1, wide)) is None


def test_what_is_known_of_tensors(b):
    data, floats = b.input("x", i64, (2,)), b.constant(np.ones(2, np.float32))
    flags = b.constant(np.array([True, False]))
    mixed = b.sizes((N, 2))
    assert b.contents(data) is None
    assert (b.integers(data), b.numbers(data)) == (None, None)
    assert (b.integers(floats), b.numbers(floats)) == (None, None)
    assert b.contents(floats) is b.constants[floats]
    assert b.numbers(flags) == [1, 0]
    assert (known(b, mixed), b.numbers(mixed)) == (["n", "2"], None)


# ---- constants and sharing


def test_nodes_over_constants_fold(b):
    two, three = b.constant(np.float32(2)), b.constant(np.arange(3, dtype=np.float32))
    y = b.matmul(b.reshape(b.map(lambda p, q: p * q, two, three), (1, 3)), b.reshape(three, (3, 1)))
    assert b.nodes == []
    assert b.constants[y].tolist() == [[10]]


def test_equal_nodes_are_shared(b):
    x = b.input("x", f32, (N, 4))
    assert b.map(lambda v: v + 1.0, x) is b.map(lambda v: v + 1.0, x)
    assert b.map(lambda v: v + 1.0, x) is not b.map(lambda v: v + 2.0, x)
    assert b.transpose(x, (1, 0)) is b.transpose(x, (1, 0))
    assert len(b.nodes) == 3


def test_a_node_may_ask_not_to_be_folded_or_shared(b):
    c = b.constant(np.zeros(4, np.float32))
    op = Reshape(as_shape((2, 2)))
    (first,), (second,) = b.add_all(op, c, fold=False), b.add_all(op, c, fold=False)
    assert first is not second
    assert first not in b.constants


def test_names_are_fresh(b):
    names = [b.input("x", f32, ()).name for _ in range(3)]
    names += [b.input("x_1", f32, ()).name]
    assert len(set(names)) == 4
    assert names[:2] == ["x", "x_1"]


def test_movements_of_nothing_are_no_nodes(b):
    x = b.input("x", f32, (N, 4))
    assert b.reshape(x, (N * 2 // 2, 4)) is x
    assert b.transpose(x, (0, 1)) is x
    assert b.expand(x, (N, 4)) is x
    assert b.concat([x], 0) is x
    assert b.reduce(tir.Fold.ADD, x, ()) is x


# ---- operators by name


def test_narrow_floats_are_computed_wide_and_stored_as_they_came(b):
    x = b.input("x", f16, (2,))
    y = b.map(lambda v: call("exp", v), x)
    assert y.dtype == f16
    assert b.nodes[-1].op.body.dtype == f32
    assert b.map(lambda v: v.to(f64), x).dtype == f64
    assert b.map(lambda v: v > 0, x).dtype.is_bool


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ((4,), (4,)), ((4,), (4, 3)), ((2, 4), (4,)), ((2, 4), (4, 3)), ((5, 2, 4), (4, 3)),
        ((5, 2, 4), (5, 4, 3)), ((5, 1, 2, 4), (6, 4, 3)), ((2, 4), (5, 4, 3)), ((4,), (5, 4, 3)),
        ((0, 4), (4, 3)), ((2, 0), (0, 3)),
    ],
)  # fmt: skip
def test_matmul_is_that_of_numpy(b, rng, left, right):
    arrays = [rng.standard_normal(shape).astype(np.float32) for shape in (left, right)]
    x, y = (b.input(name, f32, shape) for name, shape in (("x", left), ("y", right)))
    graph = b.graph([b.matmul(x, y)])
    (found,) = interpret(graph, dict(zip("xy", arrays, strict=True)))
    np.testing.assert_allclose(found, np.matmul(*arrays), rtol=1e-5, atol=1e-6)
    assert tuple(tir.int_value(d) for d in graph.outputs[0].shape) == found.shape


def test_folds_over_nothing_are_neutral(b):
    x = b.input("x", f32, (3, 0))
    graph = b.graph([b.reduce(fold, x, (1,)) for fold in (tir.Fold.ADD, tir.Fold.MUL)])
    total, product = interpret(graph, {"x": np.zeros((3, 0), np.float32)})
    assert total.tolist() == [[0]] * 3
    assert product.tolist() == [[1]] * 3


def test_tables_of_places(b):
    assert b.constants[b.tabulate((2, 2), lambda i, j: i * 2 + j)].tolist() == [[0, 1], [2, 3]]
    by_size = b.tabulate((N,), lambda i: N - i)
    assert by_size not in b.constants
    x = b.input("x", f32, (N,))
    found = interpret(b.graph([by_size, x]), {"x": np.zeros(3, np.float32)})
    assert found[0].tolist() == [3, 2, 1]


def test_labels_say_what_nodes_stand_for(b):
    x = b.input("x", f32, (2,))
    b.label = "first"
    y = b.map(lambda v: v + 1.0, x)
    b.label = "second"
    z = b.map(lambda v: v * 2.0, y)
    assert [node.label for node in b.graph([z]).nodes] == ["first", "second"]


def test_outputs_have_the_names_that_callers_know(b):
    x = b.input("x", f32, (2,))
    assert b.graph([x, x], ["a", "b"]).output_names == ("a", "b")
    assert b.graph([x]).output_names == ("x",)


# ---- refusals


def test_operators_refuse_what_does_not_fit(b):
    x, y = b.input("x", f32, (2, 3)), b.input("y", f32, (4, 5))
    with raises_code("G001"):
        b.map(lambda p, q: p + q, x, y)
    with raises_code("G010"):
        b.reshape(x, (7,))
    with raises_code("G011"):
        b.concat([x, y], 0)
    with raises_code("G020"):
        b.contract("mk", "kn", "mn", x, y)
