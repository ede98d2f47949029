from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tests.expect import raises_code
from tests.unit.tensor.test_contents import one_block
from tests.unit.test_pipeline import matmul
from tilewright.build import build
from tilewright.dtypes import u8
from tilewright.schedule import Schedule
from tilewright.target import Target
from tilewright.tensor import library
from tilewright.tensor.functions import FUNCTIONS, Function


@pytest.mark.parametrize("trace", [None, "draft", "none"])
def test_build_gives_a_callable(trace, rng):
    kernel = build(matmul(17, 33, 20), threads=1, trace=trace)
    a = rng.standard_normal((17, 20), np.float32)
    b = rng.standard_normal((20, 33), np.float32)
    np.testing.assert_allclose(kernel(a, b), a @ b, rtol=1e-4, atol=1e-5)


def test_constants_are_packed_and_no_longer_passed(rng):
    a = rng.standard_normal((17, 20), np.float32)
    b = rng.standard_normal((20, 32), np.float32)
    kernel = build(matmul(17, 32, 20), threads=1, constants={"B": b})
    np.testing.assert_allclose(kernel(a), a @ b, rtol=1e-4, atol=1e-5)
    assert kernel.report.total_seconds > 0


def test_schedule_of_a_person():
    schedule = Schedule(matmul(6, 16, 8))
    schedule.parallel("i")
    kernel = build(matmul(6, 16, 8), threads=2, trace=schedule.trace)
    assert kernel.threads == 2
    ones = np.ones((6, 8), np.float32), np.ones((8, 16), np.float32)
    assert (kernel(*ones) == 8).all()


def test_program_without_parallel_loops_runs_on_one_thread():
    assert build(matmul(), threads=4, trace="none").threads == 1


@pytest.mark.parametrize("target", ["host", "x86-64-v2", Target.host()])
def test_targets_by_name_or_value(target):
    a, b = np.ones((3, 4), np.float32), np.ones((4, 5), np.float32)
    assert (build(matmul(), target=target, threads=1)(a, b) == 4).all()


def test_build_rejects_other_machines():
    with raises_code("T004"):
        build(matmul(), target="aarch64")


def test_function_without_native_code_is_refused_by_name(monkeypatch):
    monkeypatch.setitem(FUNCTIONS, "sinc", Function("sinc", 1, np.sinc))
    with raises_code("T203") as caught:
        build(library.unary("sinc", 2, 8))
    assert "`sinc`" in str(caught.value)
    assert "exp" in str(caught.value)


@pytest.mark.parametrize("threads", [0, -1, 1025, "2", 1.0])
def test_build_rejects_threads(threads):
    with raises_code("K004", text=f"there cannot be {threads!r} threads"):
        build(matmul(), threads=threads)


@pytest.mark.parametrize("trace", ["fast", [], ["split"], 3])
def test_build_rejects_trace(trace):
    with raises_code("K003"):
        build(matmul(), trace=trace)


NO_PROGRAMS = {
    "Tensor": (tw.placeholder("A", (3,)), "tw.func"),
    "Schedule": (Schedule(matmul()), "trace=schedule.trace"),
    "str": ("def f(): pass", "tw.func"),
    "NoneType": (None, "tw.func"),
}


@pytest.mark.parametrize("kind", NO_PROGRAMS)
def test_build_rejects_what_is_no_program(kind):
    value, hint = NO_PROGRAMS[kind]
    with raises_code("K005", text=f"a value of type {kind} as a program") as caught:
        build(value)
    assert hint in caught.value.hint


def test_build_rejects_what_is_no_target():
    with raises_code("K005", text="a value of type NoneType as a target"):
        build(matmul(), target=None)


@pytest.mark.parametrize(
    ("name", "reason"), [("C", "the program writes it"), ("w", "there is no such parameter")]
)
def test_build_rejects_constant(name, reason):
    with raises_code("K006", facts={"reason": reason}, text="inputs are: A, B"):
        build(matmul(), constants={name: np.ones((3, 5), np.float32)})


def test_build_rejects_constant_of_another_shape():
    with raises_code("C005", facts={"param": "B"}):
        build(matmul(), threads=1, constants={"B": np.ones((5, 4), np.float32)})


SIZES = {"m": tw.size("m"), "n": tw.size("n"), "k": tw.size("k")}
SYMBOLIC = {
    "matmul": library.matmul(SIZES["m"], SIZES["n"], SIZES["k"]),
    "softmax": library.softmax(SIZES["m"], SIZES["n"]),
    "total": library.total(SIZES["m"], SIZES["n"]),
    "column_sum": library.column_sum(SIZES["m"], SIZES["n"]),
}


@pytest.mark.parametrize("trace", ["none", "draft"])
@pytest.mark.parametrize("name", SYMBOLIC)
def test_sizes_of_zero(name, trace):
    """Either there is nothing to compute, or the call is refused: nothing is read or guessed."""
    kernel = build(SYMBOLIC[name], threads=2, trace=trace)
    for sizes in ({"m": 0, "n": 3, "k": 2}, {"m": 3, "n": 0, "k": 2}, {"m": 2, "n": 3, "k": 0}):
        shapes = [[sizes.get(d, d) for d in param.shape] for param in kernel.params]
        *inputs, output = [np.full(shape, 7, np.float32) for shape in shapes]
        if not any(0 in shape for shape in shapes):
            kernel(*inputs)
        elif output.size:
            with raises_code("C020"):
                kernel(*inputs, output)
            assert (output == 7).all()
        else:
            assert kernel(*inputs).shape == output.shape


@pytest.mark.parametrize("trace", ["none", "draft"])
def test_known_extents_of_zero(trace):
    empty = np.ones((0, 4), np.float32)
    assert build(library.gelu(0, 4), threads=1, trace=trace)(empty).shape == (0, 4)
    assert build(library.softmax(4, 0), threads=1, trace=trace)(empty.T).shape == (4, 0)
    with raises_code("V302", facts={"iterator": "vk"}):
        build(library.row_sum(4, 0), threads=1, trace=trace)


def test_special_values_pass_through(rng):
    a = rng.standard_normal((9, 6), np.float32)
    b = rng.standard_normal((6, 16), np.float32)
    a[1, 2], a[3, 4], a[5, 0], b[2, 3] = np.nan, np.inf, -np.inf, np.inf
    with np.errstate(invalid="ignore"):
        expected = a @ b
    for kernel, args in (
        (build(matmul(9, 16, 6), threads=1), (a, b)),
        (build(matmul(9, 16, 6), threads=1, constants={"B": b}), (a,)),
    ):
        np.testing.assert_allclose(kernel(*args), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("trace", ["none", "draft"])
def test_truth_is_any_byte_but_zero(trace):
    X = tw.placeholder("X", (40,), tw.boolean)
    Y = tw.compute("Y", (40,), lambda i: tw.select(X[i], 1.0, 0.0))
    kernel = build(tw.func("f", [X], [Y]), threads=1, trace=trace)
    bytes_ = np.arange(40, dtype=np.uint8)
    np.testing.assert_array_equal(kernel(bytes_.view(bool)), bytes_ != 0)


HUGE = 2**31 + 64


@pytest.fixture
def huge():
    """Memory is only reserved: no page but those looked at is ever touched."""
    try:
        return np.zeros(HUGE, np.uint8)
    except MemoryError:
        pytest.skip("the system reserves no 2 GiB of address space")


@pytest.mark.parametrize("extent", [HUGE, tw.size("n")], ids=["known", "symbolic"])
@pytest.mark.parametrize("trace", ["none", "draft"])
def test_elements_beyond_two_to_the_31_are_read(huge, extent, trace):
    """The last 32 elements; indices cut to 32 bits would be negative, or those of the first."""
    X = tw.placeholder("X", (extent,), u8)
    Y = tw.compute("Y", (32,), lambda i: X[(i // 16) * (HUGE - 32) + i + 16 * (1 - i // 16)])
    kernel = build(tw.func("ends", [X], [Y]), threads=1, trace=trace)
    huge[16:32], huge[-16:] = np.arange(16), np.arange(100, 116)
    found = kernel(huge)
    np.testing.assert_array_equal(found[:16], huge[16:32])
    np.testing.assert_array_equal(found[16:], huge[-16:])


@pytest.mark.parametrize("trace", ["none", "draft"])
def test_elements_beyond_two_to_the_31_are_written(huge, trace):
    text = one_block(16, f"vi + {HUGE - 16}", of=HUGE).replace("f32", "u8")
    kernel = build(tw.parse(text), threads=2, trace=trace)
    x = np.arange(1, 17, dtype=np.uint8)
    kernel(x, huge)
    np.testing.assert_array_equal(huge[-16:], x)
    assert not huge[: 2**12].any()
