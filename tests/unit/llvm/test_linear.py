import itertools

import pytest

from tilewright.llvm.linear import linear
from tilewright.llvm.writer import Value
from tilewright.tensor import ir as tir

ROW, J, N = tir.Var("i"), tir.Var("j"), tir.Var("n")
VALUES = {var: Value(f"%{var.name}", "i64", depth) for depth, var in enumerate((N, ROW, J))}


def emit(expr):
    return VALUES.setdefault(expr, Value(f"%{len(VALUES)}", "i64"))


@pytest.mark.parametrize(
    "expr",
    [
        ROW * 4 + J,
        (ROW * 6 + 3) * N + J,
        (ROW + 2) * (J + N) - 7,
        ROW - J - 5,
        ROW * 0 + 3,
        (ROW - ROW) * N,
        (ROW + J) * (ROW + N) * 2,
        (ROW // 4) * 16 + ROW % 4,
        3 - (ROW - 1) * 2,
    ],
)
def test_linear_form_has_the_value_of_the_expression(expr):
    form = linear(expr, emit)
    assert all(form.terms.values())
    for i, j, n in itertools.product((0, 1, 5), (0, 2, 7), (1, 3)):
        numbers = {ROW: i, J: j, N: n}
        of = {value: evaluate(atom, numbers) for atom, value in VALUES.items()}
        total = form.constant
        for product, coefficient in form.terms.items():
            for value in product:
                coefficient *= of[value]
            total += coefficient
        assert total == evaluate(expr, numbers)


def evaluate(expr, numbers):
    match expr:
        case tir.Const(value=value):
            return value
        case tir.Var():
            return numbers[expr]
        case tir.Add(a=a, b=b):
            return evaluate(a, numbers) + evaluate(b, numbers)
        case tir.Sub(a=a, b=b):
            return evaluate(a, numbers) - evaluate(b, numbers)
        case tir.Mul(a=a, b=b):
            return evaluate(a, numbers) * evaluate(b, numbers)
        case tir.FloorDiv(a=a, b=b):
            return evaluate(a, numbers) // evaluate(b, numbers)
        case tir.FloorMod(a=a, b=b):
            return evaluate(a, numbers) % evaluate(b, numbers)
    raise NotImplementedError(expr)


def test_factor_divides_every_term():
    assert linear(ROW * 12 + J * 8 + 3, emit).factor() == 4
    assert linear(tir.Const(5), emit).factor() == 0
