"""Kernels whose schedule stores parameters in another way: callers still see plain arrays."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tests.expect import raises_code
from tests.unit.test_pipeline import matmul
from tilewright.build import build
from tilewright.llvm.interface import Interface
from tilewright.pipeline import Pipeline
from tilewright.runtime import PackedArray
from tilewright.schedule import Schedule
from tilewright.target import Target


def dense(m: int = 5, n: int = 8, k: int = 6) -> tw.Func:
    """D = A·W + b, with the bias between the two matrices among the parameters."""
    A, b, W = tw.placeholder("A", (m, k)), tw.placeholder("b", (n,)), tw.placeholder("W", (k, n))
    r = tw.reduce_axis(k, "k")
    C = tw.compute("C", (m, n), lambda i, j: tw.sum_over(A[i, r] * W[r, j], r))
    D = tw.compute("D", (m, n), lambda i, j: C[i, j] + b[j])
    return tw.func("dense", [A, b, W], [D])


def scaled(*shape: int) -> tw.Func:
    X = tw.placeholder("X", shape)
    return tw.func("scaled", [X], [tw.compute("Y", shape, lambda *at: X[at] * 2.0)])


@pytest.fixture
def arrays(rng):
    """a, b, w for `dense`, and the result."""
    a, w = rng.standard_normal((5, 6), np.float32), rng.standard_normal((6, 8), np.float32)
    b = rng.standard_normal(8, np.float32)
    return a, b, w, a @ w + b


@pytest.fixture(params=["alone", "split and reordered", "guest split, too"])
def together(request):
    """`dense` with the bias stored as the last row of the weights."""
    s = Schedule(dense())
    if request.param == "guest split, too":
        s.layout_split("b", 0, 4)
        s.layout_split("W", 1, 4)
    s.layout_store_at("W", "b", 0)
    if request.param == "split and reordered":
        s.layout_split("W", 1, 4)
        s.layout_reorder("W", [1, 0, 2])
    assert [param.name for param in s.func.params] == ["A", "W", "D"]
    return build(dense(), threads=1, trace=s.trace)


def close(found, expected):
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_arrays_stored_in_one_are_passed_at_their_old_places(together, arrays):
    a, b, w, expected = arrays
    close(together(a, b, w), expected)
    close(together(W=w, A=a, b=b), expected)
    close(together(a, b[::-1].copy()[::-1], np.asfortranarray(w)), expected)
    out = np.empty((5, 8), np.float32)
    assert together(a, b, w, out) is None
    close(out, expected)
    assert together.conversions == ("pack W and b",)
    assert repr(together).startswith("<kernel dense(A: f32[5, 6], b: f32[8], W: f32[6, 8]) -> (D:")


def test_arrays_stored_in_one_are_packed_ahead(together, arrays):
    a, b, w, expected = arrays
    packed = together.pack("W", w, b=b)
    assert packed.array.size == 7 * 8
    close(packed.unpack(), w)
    close(together(a, packed), expected)
    close(together(W=packed, A=a), expected)
    out = np.empty((5, 8), np.float32)
    together(a, packed, out)
    close(out, expected)
    assert len(together.time((a, packed), repeat=2, min_ns=1)) == 2
    assert len(together.time((a, b, w), repeat=2, min_ns=1)) == 2


def test_arrays_stored_in_one_are_bound_together(together, arrays):
    a, b, w, expected = arrays
    bound = together.bind(b=b, W=w)
    close(bound(a), expected)
    assert bound.conversions == ()
    close(together.bind(W=together.pack("W", w, b=b))(a), expected)
    close(together.bind(A=a)(b, w), expected)
    with raises_code("C010", facts={"reason": "it is bound already"}):
        bound(a, b=b)


def test_arrays_stored_in_one_as_constants(arrays):
    a, b, w, expected = arrays
    s = Schedule(dense())
    s.layout_store_at("W", "b", 0)
    close(build(dense(), threads=1, trace=s.trace, constants={"W": w, "b": b})(a), expected)
    with raises_code("C018", text="give `b` at the same time"):
        build(dense(), threads=1, trace=s.trace, constants={"W": w})


def test_arrays_stored_in_one_are_given_together(together, arrays):
    a, b, w, _ = arrays
    with raises_code("C018", text="`W` of `dense` is stored in one piece with `b`"):
        together.pack("W", w)
    with raises_code("C018", text="give `W` at the same time"):
        together.bind(b=b)
    with raises_code("C001", text="`A`, `b`, `W`"):
        together(a, w)
    packed = together.pack("W", w, b=b)
    with raises_code("C010", facts={"reason": "it is part of the packed array for `W`"}):
        together(a, packed, b=b)
    with raises_code("C010", facts={"reason": "it is part of the packed array for `W`"}):
        together.bind(W=packed, b=b)
    with raises_code("C005", facts={"param": "b"}):
        together(a, b[:4], w)


def test_several_pairs_keep_the_order_of_the_caller(rng):
    """Guests of two hosts, stored away in an order that is not the one of the parameters."""
    names = ["p", "A", "q", "B", "r"]
    sizes = {"A": (3, 4), "B": (3, 4), "p": (4,), "q": (4,), "r": (2, 4)}
    tensors = {name: tw.placeholder(name, sizes[name]) for name in names}

    def element(i, j):
        t = tensors
        return t["A"][i, j] * t["p"][j] + t["B"][i, j] * t["q"][j] + t["r"][1, j]

    program = tw.func("pairs", list(tensors.values()), [tw.compute("Y", (3, 4), element)])
    s = Schedule(program)
    for host, guest in (("A", "q"), ("B", "p"), ("A", "r")):
        s.layout_store_at(host, guest, 0)
    assert [param.name for param in s.func.params] == ["A", "B", "Y"]
    kernel = build(program, threads=1, trace=s.trace)
    values = [rng.standard_normal(sizes[name], np.float32) for name in names]
    p, a, q, b, r = values
    close(kernel(*values), a * p + b * q + r[1])
    assert kernel.conversions == ("pack A and q and r", "pack B and p")
    s.layout_decouple("B")
    s.layout_decouple("A")
    assert [param.name for param in s.func.params] == ["p", "A", "B", "r", "Y"]


def test_scalar_stored_at_a_vector(rng):
    V, c = tw.placeholder("V", (9,)), tw.placeholder("c", ())
    program = tw.func("scale", [V, c], [tw.compute("Y", (9,), lambda i: V[i] * c[()])])
    s = Schedule(program)
    s.layout_store_at("V", "c", 0)
    v = rng.standard_normal(9, np.float32)
    kernel = build(program, threads=1, trace=s.trace)
    np.testing.assert_array_equal(kernel(v, np.float32(3)), v * 3)


def test_symbolic_sizes_with_guests(rng):
    n = tw.size("n")
    W, b = tw.placeholder("W", (4, n)), tw.placeholder("b", (n,))
    program = tw.func("add", [W, b], [tw.compute("Y", (4, n), lambda i, j: W[i, j] + b[j])])
    s = Schedule(program)
    s.layout_store_at("W", "b", 0)
    kernel = build(program, threads=1, trace=s.trace)
    for count in (1, 7, 0):
        w, bias = rng.standard_normal((4, count), np.float32), np.ones(count, np.float32)
        np.testing.assert_array_equal(kernel(w, bias), w + 1)
    with raises_code("C006", facts={"param": "b"}):
        kernel(np.ones((4, 3), np.float32), np.ones(2, np.float32))


LAYOUTS = {
    "split": lambda s, y: s.layout_split(y, 1, 4),
    "reorder": lambda s, y: s.layout_reorder(y, [2, 0, 1]),
    "pad": lambda s, y: s.layout_pad(y, 1, 2, 3),
    "fuse": lambda s, y: s.layout_fuse(y, 0),
    "unfold": lambda s, y: s.layout_unfold(y, 1, 6, 4),
    "blocked": lambda s, y: (s.layout_split(y, 1, 4), s.layout_reorder(y, [1, 0, 3, 2])),
    "padded blocks": lambda s, y: (s.layout_pad(y, 2, 0, 1), s.layout_split(y, 2, 2)),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_outputs_come_back_plain(layout, rng):
    shape = (3, 8, 5)
    s = Schedule(scaled(*shape))
    LAYOUTS[layout](s, "Y")
    assert s.buffer("Y").layout
    kernel = build(scaled(*shape), threads=1, trace=s.trace)
    x = rng.standard_normal(shape, np.float32)
    y = kernel(x)
    assert y.flags.c_contiguous
    assert y.ctypes.data % 64 == 0
    np.testing.assert_array_equal(y, x * 2)
    out = np.full(shape, np.nan, np.float32)
    assert kernel(x, out) is None
    np.testing.assert_array_equal(out, x * 2)
    out[:] = 0
    kernel(X=x[::-1], Y=out)
    np.testing.assert_array_equal(out, x[::-1] * 2)
    assert kernel.conversions == ("unpack Y",)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_packed_outputs_are_packed_inputs_of_the_next_kernel(layout, rng):
    """Nothing is unpacked or packed between two kernels that agree on a layout."""
    shape = (3, 8, 5)
    first, second = Schedule(scaled(*shape)), Schedule(scaled(*shape))
    LAYOUTS[layout](first, "Y")
    LAYOUTS[layout](second, "X")
    one = build(scaled(*shape), threads=1, trace=first.trace)
    two = build(scaled(*shape), threads=1, trace=second.trace)
    x = rng.standard_normal(shape, np.float32)
    stored = one.pack("Y", np.zeros(shape, np.float32))
    one(x, stored)
    np.testing.assert_array_equal(stored.unpack(), x * 2)
    np.testing.assert_array_equal(stored.packing.pack(x * 2), stored.array)
    np.testing.assert_array_equal(two(stored), x * 4)


def test_packed_outputs_of_symbolic_size(rng):
    n = tw.size("n")
    X = tw.placeholder("X", (n, 8))
    program = tw.func("scaled", [X], [tw.compute("Y", (n, 8), lambda i, j: X[i, j] * 2.0)])
    s = Schedule(program)
    s.layout_split("Y", 1, 4)
    s.layout_reorder("Y", [1, 2, 0])
    kernel = build(program, threads=1, trace=s.trace)
    for count in (1, 5, 0):
        x = rng.standard_normal((count, 8), np.float32)
        np.testing.assert_array_equal(kernel(x), x * 2)


def test_dimension_that_callers_cannot_know_is_refused():
    n = tw.size("n")
    X = tw.placeholder("X", (n, 8))
    program = tw.func("scaled", [X], [tw.compute("Y", (n, 8), lambda i, j: X[i, j] * 2.0)])
    s = Schedule(program)
    s.layout_pad("Y", 0, 1, 1)
    with raises_code("V301", text="`n + 2`"):
        build(program, threads=1, trace=s.trace)


def test_reduction_into_a_packed_output(rng):
    s = Schedule(matmul(4, 6, 8))
    s.layout_pad("C", 1, 0, 2)
    s.layout_split("C", 1, 4)
    s.layout_reorder("C", [1, 0, 2])
    kernel = build(matmul(4, 6, 8), threads=1, trace=s.trace)
    a, b = rng.standard_normal((4, 8), np.float32), rng.standard_normal((8, 6), np.float32)
    close(kernel(a, b), a @ b)


def test_unfolded_reduction_is_refused():
    s = Schedule(matmul(4, 6, 8))
    with raises_code("S309", text="cache_read"):
        s.layout_unfold("C", 1, 4, 2)


@pytest.fixture
def flipped():
    s = Schedule(scaled(4, 4))
    s.layout_reorder("Y", [1, 0])
    return build(scaled(4, 4), threads=1, trace=s.trace)


def test_packed_output_is_checked_like_a_plain_one(flipped):
    x, y = np.ones((4, 4), np.float32), np.zeros((4, 4), np.float32)
    for code, out in (
        ("C003", np.zeros((4, 4))),
        ("C004", np.zeros(16, np.float32)),
        ("C005", np.zeros((4, 5), np.float32)),
        ("C008", np.zeros((4, 8), np.float32)[:, ::2]),
        ("C009", x),
        ("C002", [1.0]),
        ("C012", PackedArray(y, None)),
    ):
        with raises_code(code, facts={"param": "Y"}):
            flipped(x, out)
    y.flags.writeable = False
    with raises_code("C007"):
        flipped(x, y)
    stored = flipped.pack("Y", np.zeros((4, 4), np.float32))
    stored.array.flags.writeable = False
    with raises_code("C007"):
        flipped(x, stored)


def test_packed_output_is_bound_packed_only(flipped, golden):
    x = np.arange(16, dtype=np.float32).reshape(4, 4)
    with raises_code("C019") as caught:
        flipped.bind(Y=np.zeros((4, 4), np.float32))
    assert golden == caught.value
    stored = flipped.pack("Y", np.zeros((4, 4), np.float32))
    flipped.bind(Y=stored)(x)
    np.testing.assert_array_equal(stored.unpack(), x * 2)


def test_two_packed_outputs_must_not_overlap(rng):
    X = tw.placeholder("X", (4, 4))
    outs = [tw.compute(f"Y{n}", (4, 4), lambda i, j, n=n: X[i, j] + float(n)) for n in (1, 2)]
    program = tw.func("two", [X], outs)
    s = Schedule(program)
    s.layout_reorder("Y1", [1, 0])
    s.layout_reorder("Y2", [1, 0])
    kernel = build(program, threads=1, trace=s.trace)
    x = rng.standard_normal((4, 4), np.float32)
    np.testing.assert_array_equal(kernel(x), (x + 1, x + 2))
    same = np.zeros((4, 4), np.float32)
    with raises_code("C009", facts={"param": "Y1", "other": "Y2"}):
        kernel(x, same, same)


def test_layouts_survive_in_the_text_of_a_stage(arrays):
    a, b, w, expected = arrays
    s = Schedule(dense())
    s.layout_store_at("W", "b", 0)
    s.layout_reorder("D", [1, 0])
    pipeline = Pipeline(Target.host(), trace=s.trace)
    text = pipeline.run(dense(), until="llvm").text
    interface = Interface.of_text(text)
    assert interface.params[1].packing.guests[0].place == 1
    assert interface.as_comment() == text.partition("\n")[0] + "\n"
    kernel = Pipeline(Target.host()).resume("llvm", text).value
    close(kernel(a, b, w), expected)
    scheduled = pipeline.run(dense(), until="scheduled").text
    close(Pipeline(Target.host()).resume("scheduled", scheduled).value(a, b, w), expected)
