import itertools

import pytest

from tilewright.llvm.linear import linear
from tilewright.llvm.writer import Value
from tilewright.tensor import ir as tir

I, J, N = tir.Var("i"), tir.Var("j"), tir.Var("n")
VALUES = {var: Value(f"%{var.name}", "i64", depth) for depth, var in enumerate((N, I, J))}


def emit(expr):
    return VALUES.setdefault(expr, Value(f"%{len(VALUES)}", "i64"))


@pytest.mark.parametrize(
    "expr",
    [
        I * 4 + J,
        (I * 6 + 3) * N + J,
        (I + 2) * (J + N) - 7,
        I - J - 5,
        I * 0 + 3,
        (I - I) * N,
        (I + J) * (I + N) * 2,
        (I // 4) * 16 + I % 4,
        3 - (I - 1) * 2,
    ],
)
def test_linear_form_has_the_value_of_the_expression(expr):
    form = linear(expr, emit)
    assert all(form.terms.values())
    for i, j, n in itertools.product((0, 1, 5), (0, 2, 7), (1, 3)):
        numbers = {I: i, J: j, N: n}
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
    assert linear(I * 12 + J * 8 + 3, emit).factor() == 4
    assert linear(tir.Const(5), emit).factor() == 0
