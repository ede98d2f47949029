import numpy as np

from tests.lowering import AVX2, applied
from tilewright.lower.context import Context
from tilewright.lower.expand_math import expand_math
from tilewright.tensor import ir as tir
from tilewright.tensor.interpret import interpret
from tilewright.tensor.parser import parse
from tilewright.tensor.visit import walk

NATIVE = {"thread", "threads", "fma", "sqrt", "floor", "ceil", "trunc", "round", "abs", "copysign"}
MARKS = {"contracted"}


def test_calls_become_arithmetic_on_scalars_and_vectors(rng):
    func = parse("""
        def f(A: f32[9], C: f32[9]):
            C[ramp(0, 1, 8)] = gelu(A[ramp(0, 1, 8)]) + tanh(exp(A[ramp(1, 1, 8)]))
            C[8] = gelu(A[8]) + tanh(exp(A[0]))
    """)
    made = expand_math(func, Context(AVX2))
    assert {n.name for n in walk(made.body) if type(n) is tir.Call} <= NATIVE | MARKS
    array = rng.normal(size=9).astype(np.float32)
    found, expected = interpret(made, [array])["C"], interpret(func, [array])["C"]
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_native_functions_stay():
    func = parse("""
        def f(A: f32[8], C: f32[8]):
            for i in range(8):
                C[i] = sqrt(abs(A[i]))
    """)
    assert applied(expand_math, func) is func
