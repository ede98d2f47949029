import ml_dtypes
import numpy as np
import pytest

from tests.expect import raises_code
from tests.unit.tensor import samples
from tilewright.dtypes import bf16, f16, f32, f64, i8, i16, i32, u8, u64
from tilewright.tensor import ir as tir
from tilewright.tensor import library
from tilewright.tensor.build import compute, func, placeholder, size
from tilewright.tensor.interpret import interpret
from tilewright.tensor.parser import parse


def run(text, **arrays):
    return interpret(parse(text), arrays)


def value_of(expr, dtype=None):
    """The value of an expression without variables."""
    out = tir.Buffer("out", (), dtype or expr.dtype)
    return interpret(tir.Func("f", (out,), tir.Store(out, (), expr)), [])["out"][()]


def c(value, dtype):
    return tir.Const(value, dtype)


def test_integers_wrap():
    assert value_of(c(100, i8) + c(100, i8)) == -56
    assert value_of(c(-128, i8) - c(1, i8)) == 127
    assert value_of(c(1 << 30, i32) * c(4, i32)) == 0
    assert value_of(c(3, u64) - c(5, u64)) == 2**64 - 2
    assert value_of(tir.Neg(c(-128, i8))) == -128
    assert value_of(c(1, i8) << c(7, i8)) == -128


@pytest.mark.parametrize("dtype", [i8, i16, i32, u8, u64])
def test_division_by_zero_gives_zero(dtype):
    assert value_of(tir.FloorDiv(c(5, dtype), c(0, dtype))) == 0
    assert value_of(tir.FloorMod(c(5, dtype), c(0, dtype))) == 0


def test_division_rounds_down():
    assert value_of(tir.FloorDiv(c(-7, i32), c(2, i32))) == -4
    assert value_of(tir.FloorMod(c(-7, i32), c(2, i32))) == 1
    assert value_of(tir.FloorMod(c(7, i32), c(-2, i32))) == -1
    assert value_of(tir.FloorDiv(c(-128, i8), c(-1, i8))) == -128


def test_not_a_number_wins():
    nan = c(float("nan"), f32)
    for kind in (tir.Min, tir.Max):
        assert np.isnan(value_of(kind(nan, c(1.0, f32))))
        assert np.isnan(value_of(kind(c(1.0, f32), nan)))
    assert not value_of(tir.Lt(nan, nan))
    assert value_of(tir.Ne(nan, nan))


def test_arithmetic_is_in_the_type():
    third = value_of(c(1.0, f32) / c(3.0, f32))
    assert third.dtype == np.float32
    assert third == np.float32(1) / np.float32(3)
    assert np.isinf(value_of(c(1.0, f32) / c(0.0, f32)))
    assert value_of(c(0.1, f64) + c(0.2, f64)) == 0.1 + 0.2


def test_conversions():
    assert value_of(tir.Cast(i32, c(-2.7, f32))) == -2
    assert value_of(tir.Cast(u8, c(-1, i32))) == 255
    assert value_of(tir.Cast(f16, c(2049.0, f32))) == 2048  # to nearest even
    assert value_of(tir.Cast(bf16, c(1.00390625, f32))) == 1.0
    assert value_of(tir.Cast(i32, tir.TRUE)) == 1
    assert value_of(tir.Reinterpret(i32, c(1.0, f32))) == 0x3F800000
    assert value_of(tir.Not(c(5, i8))) == -6
    assert not value_of(tir.Not(tir.TRUE))


def test_storage_types_round_when_stored():
    a = placeholder("A", (3,), bf16)
    program = func("f", [a], [compute("B", (3,), lambda i: a[i] * 3.0 + 0.001, bf16)])
    given = np.array([0.1, 1.0, 100.0], ml_dtypes.bfloat16)
    found = interpret(program, [given])["B"]
    wide = given.astype(np.float32) * np.float32(3) + np.float32(0.001)
    np.testing.assert_array_equal(found, wide.astype(ml_dtypes.bfloat16))


def test_inputs_stay_as_they_are():
    array = np.ones(4, np.float32)
    text = "def f(A: f32[4]):\n    for i in range(4):\n        A[i] = A[i] + 1.0"
    found = run(text, A=array)
    assert array.tolist() == [1] * 4
    assert found["A"].tolist() == [2] * 4


def test_given_outputs_keep_what_is_not_written():
    text = "def f(A: f32[4]):\n    A[1] = 5.0"
    assert run(text, A=np.zeros(4, np.float32))["A"].tolist() == [0, 5, 0, 0]


def test_sizes_come_from_arrays_or_by_hand():
    n = size("n")
    program = library.add(n, 2)
    two = np.ones((3, 2), np.float32)
    assert interpret(program, [two, two])["C"].shape == (3, 2)
    fill = func("fill", [], [compute("F", (n,), lambda i: i.to(f32))])
    assert interpret(fill, [], {n: 3})["F"].tolist() == [0, 1, 2]


def test_zero_sizes():
    n = size("n")
    program = library.matmul(n, 3, n)
    empty = np.ones((0, 0), np.float32)
    assert interpret(program, [empty, np.ones((0, 3), np.float32)])["C"].shape == (0, 3)


def test_init_runs_where_the_reduction_starts():
    text = """
    def f(A: f32[4, 6], B: f32[4]):
        for k0 in range(2):
            for i in range(4):
                for k1 in range(3):
                    with block("B", vi=S(4, i), vk=R(6, k0 * 3 + k1)):
                        with init():
                            B[vi] = 0.0
                        B[vi] = B[vi] + A[vi, vk]
    """
    a = np.arange(24, dtype=np.float32).reshape(4, 6)
    np.testing.assert_array_equal(run(text, A=a)["B"], a.sum(axis=1))


def test_predicate_skips_instances():
    text = """
    def f(A: f32[5], B: f32[5]):
        for i in range(2):
            for j in range(3):
                with block("B", vi=S(5, i * 3 + j)), where(i * 3 + j < 5):
                    B[vi] = A[vi]
    """
    a = np.arange(5, dtype=np.float32)
    np.testing.assert_array_equal(run(text, A=a)["B"], a)


def test_covers_of_several_sizes():
    text = """
    def f(A: f32[16], B: f32[16]):
        for t in range(4):
            for i in range(tile_size(cover((6, 2), (2, 2)), t)):
                with block("B", vi=S(16, tile_start(cover((6, 2), (2, 2)), t) + i)):
                    B[vi] = A[vi]
    """
    a = np.arange(16, dtype=np.float32)
    np.testing.assert_array_equal(run(text, A=a)["B"], a)


def test_nested_blocks():
    text = """
    def f(A: f32[8], B: f32[8]):
        for t in range(2):
            with block("outer", vt=S(2, t)):
                for i in range(4):
                    with block("inner", vi=S(8, vt * 4 + i)):
                        B[vi] = A[vi] * 2.0
    """
    a = np.arange(8, dtype=np.float32)
    np.testing.assert_array_equal(run(text, A=a)["B"], a * 2)


def test_lowered_program_with_vectors():
    program = samples.lowered_func()
    x = np.arange(48, dtype=np.float32)
    found = interpret(program, {"X": x, "n_source": np.zeros(6, np.float32)})["Y"]
    expected = x * 2
    expected[32:40] = expected[32:40].sum()
    expected[40:] **= 2
    np.testing.assert_array_equal(found, expected)


def test_gather_scatter_and_masks():
    text = """
    def f(A: f32[16], B: f32[16]):
        for i in range(2):
            B[ramp(i * 8, 1, 8)] = broadcast(0.0, 8)
            B[ramp(i, 2, 8)] = let(
                v := A[ramp(i, 2, 8)], select(v < broadcast(4.0, 8), v, broadcast(9.0, 8))
            )
        B[0] = reduce_min(A[ramp(2, 3, 4)]) + reduce_mul(A[ramp(1, 1, 3)])
    """
    a = np.arange(16, dtype=np.float32)
    found = run(text, A=a)["B"]
    assert found[0] == 2 + 6
    assert found[3] == 3
    assert found[9] == 9


@pytest.mark.parametrize("n", [-2, 0, 3, 8, 11])
def test_lanes_that_are_off_give_zero_and_store_nothing(n):
    text = """
    def f(A: f32[8], n: i64[1], B: f32[8], C: f32[8]):
        B[ramp(0, 1, 8)] = A[prefix(0, n[0], 8)]
        C[ramp(0, 1, 8)] = broadcast(-1.0, 8)
        C[prefix(0, n[0], 8)] = A[ramp(0, 1, 8)]
    """
    a, on = np.arange(1, 9, dtype=np.float32), np.arange(8) < n
    found = run(text, A=a, n=np.array([n]))
    np.testing.assert_array_equal(found["B"], np.where(on, a, 0))
    np.testing.assert_array_equal(found["C"], np.where(on, a, -1))


def test_parallel_loops_may_run_in_any_order():
    racing = """
    def f(A: f32[64], B: f32[1]):
        for i in parallel(64):
            with block("B", vi=S(64, i)):
                writes(B[0])
                reads(A[vi])
                B[0] = A[vi]
    """
    a = np.arange(64, dtype=np.float32)
    program = parse(racing)
    results = {float(interpret(program, [a], seed=s)["B"][0]) for s in range(8)}
    assert len(results) > 1
    assert interpret(program, [a])["B"][0] == 63


def test_flat_parameters_take_arrays_of_any_shape():
    text = "def f(A: f32[6], B: f32[6]):\n    for i in range(6):\n        B[i] = A[i] + 1.0"
    a = np.arange(6, dtype=np.float32).reshape(2, 3)
    found = run(text, A=a, B=np.zeros((3, 2), np.float32))["B"]
    np.testing.assert_array_equal(found, (a + 1).reshape(3, 2))


X4 = np.ones(4, np.float32)

MISUSE = {
    "wrong shape": ("V200", library.row_sum(2, 2), {"X": X4}),
    "wrong dtype": ("V200", library.row_sum(2, 2), {"X": np.ones((2, 2))}),
    "missing input": ("V200", library.row_sum(2, 2), {}),
    "unknown name": ("V200", library.row_sum(2, 2), {"Z": X4}),
    "too many": ("V200", library.row_sum(2, 2), [X4, X4, X4]),
    "unknown size": ("V205", library.row_sum(size("n"), 2), {}),
    "beyond the end": ("V201", "def f(A: f32[4], B: f32[1]):\n    B[0] = A[4]", {"A": X4}),
    "before the start": ("V201", "def f(A: f32[4], B: f32[1]):\n    B[0] = A[-1]", {"A": X4}),
    "store beyond": ("V201", "def f(B: f32[1]):\n    B[1] = 0.0", {}),
    "vector beyond": (
        "V201",
        "def f(A: f32[4], B: f32[1]):\n    B[0] = reduce_add(A[ramp(1, 1, 4)])",
        {"A": X4},
    ),
    "both sides of a select": (
        "V201",
        "def f(A: f32[4], B: f32[1]):\n    B[0] = select(False, A[9], 0.0)",
        {"A": X4},
    ),
    "undefined intermediate": (
        "V202",
        "def f(B: f32[1]):\n    T = alloc(f32[2])\n    T[0] = 1.0\n    B[0] = T[1]",
        {},
    ),
    "undefined output": ("V202", "def f(B: f32[1]):\n    B[0] = B[0] + 1.0", {}),
    "undefined lane": (
        "V202",
        (
            "def f(B: f32[1]):\n    T = alloc(f32[2])\n    T[0] = 1.0\n"
            "    B[0] = reduce_add(T[ramp(0, 1, 2)])"
        ),
        {},
    ),
    "memory of an earlier iteration": (
        "V202",
        (
            "def f(B: f32[2]):\n    for i in range(2):\n        T = alloc(f32[2])\n"
            "        T[i] = 1.0\n        B[i] = T[0]"
        ),
        {},
    ),
    "iterator outside of its domain": (
        "V203",
        (
            "def f(B: f32[4]):\n    for i in range(5):\n"
            "        with block('B', vi=S(4, i)):\n            B[vi] = 0.0"
        ),
        {},
    ),
    "output not written": ("V204", "def f(B: f32[4]):\n    B[0] = 0.0", {}),
    "unbound variable": (
        "V206",
        tir.Func("f", (samples.A,), tir.Store(samples.A, (tir.Var("i"),), tir.Const(0.0, f32))),
        {},
    ),
    "unknown function": ("V207", "def f(B: f32[1]):\n    B[0] = wobble(1.0)", {}),
}


@pytest.mark.parametrize("what", MISUSE)
def test_interpret_rejects(what):
    code, program, arrays = MISUSE[what]
    with raises_code(code):
        interpret(parse(program) if isinstance(program, str) else program, arrays)


def test_error_shows_where(golden):
    text = """
    def f(A: f32[8], B: f32[8]):
        for i in range(8):
            with block("B", vi=S(8, i)):
                B[vi] = A[vi] + A[vi + 1]
    """
    with raises_code("V201", facts={"buffer": "A", "index": "8"}) as caught:
        run(text, A=np.ones(8, np.float32))
    assert golden == caught.value
