import pickle

import pytest

from tilewright.dtypes import f32, f64, index
from tilewright.tensor import ir as tir
from tilewright.tensor.node import Node, node


@node
class Pair(Node):
    left: int
    right: int = 7


@node
class Triple(Pair):
    third: str = "x"

    def finish(self) -> None:
        if self.left < 0:
            raise ValueError("left is negative")


def test_nodes_take_arguments_in_order_with_defaults():
    assert (Pair(1).left, Pair(1).right) == (1, 7)
    assert Triple(1, third="y").fields == ("left", "right", "third")
    assert repr(Pair(1, 2)) == "Pair(1, 2)"


def test_nodes_run_finish():
    with pytest.raises(ValueError, match="negative"):
        Triple(-1)


def test_nodes_compare_by_value_and_type():
    assert Pair(1, 2) == Pair(1, 2)
    assert hash(Pair(1, 2)) == hash(Pair(1, 2))
    assert Pair(1, 2) != Pair(1, 3)
    assert Pair(1, 7) != Triple(1, 7)


def test_nodes_are_immutable():
    pair = Pair(1)
    with pytest.raises(AttributeError, match="immutable"):
        pair.left = 2
    with pytest.raises(AttributeError, match="immutable"):
        del pair.left


def test_with_fields_keeps_the_node_when_nothing_changes():
    pair = Pair(1)
    assert pair.with_fields(left=pair.left) is pair
    assert pair.with_fields(right=9) == Pair(1, 9)


def test_nodes_without_identity_can_be_pickled():
    expr = tir.Const(1.5, f32) + 2.0
    assert pickle.loads(pickle.dumps(expr)) == expr


def test_variables_and_buffers_have_identity():
    assert tir.Var("i") != tir.Var("i")
    assert tir.Buffer("A", (), f32) != tir.Buffer("A", (), f32)
    with pytest.raises(TypeError, match="identity"):
        pickle.dumps(tir.Var("i"))


def test_literals_compare_by_bits():
    assert tir.Const(0.0, f32) != tir.Const(-0.0, f32)
    assert tir.Const(float("nan"), f32) == tir.Const(float("nan"), f32)
    assert tir.Const(1.0, f32) != tir.Const(1.0, f64)
    assert tir.Const(1, index) != tir.Const(1.0, f32)


def test_operators_fold_trivial_index_arithmetic_only():
    i, x = tir.Var("i"), tir.Var("x", f32)
    assert i + 0 is i
    assert i * 1 is i
    assert i // 1 is i
    assert i % 1 == tir.Const(0)
    assert tir.Const(7) // 2 == tir.Const(3)
    assert tir.Const(7) // 0 == tir.Const(0)
    assert type(x + 0.0) is tir.Add  # -0.0 + 0.0 is 0.0
    assert type(x * 1.0) is tir.Mul


def test_operators_lift_numbers_to_the_type_of_their_partner():
    x = tir.Var("x", f64)
    assert (1 + x).a == tir.Const(1.0, f64)
    assert (x < 2).dtype.is_bool
    assert (x > 2) == tir.Lt(tir.Const(2.0, f64), x)


def test_expressions_have_no_truth_value():
    with pytest.raises(TypeError, match="select"):
        bool(tir.Var("i") < 3)
