"""Calls that work: all the ways to pass arrays, and what comes back."""

from __future__ import annotations

import ctypes
import gc
import pickle
import signal
import threading
import weakref

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis.extra import numpy as hnp

from tests.expect import raises_code
from tilewright.dtypes import DTYPES
from tilewright.runtime import Kernel, count_workers


def test_call_with_all_arrays_writes_the_output(add, rng):
    x, y = rng.random((2, 100), dtype=np.float32)
    z = np.empty(100, np.float32)
    assert add(x, y, z) is None
    np.testing.assert_array_equal(z, x + y)


def test_call_with_inputs_returns_the_output(matmul, rng):
    a, b = rng.random((3, 5), dtype=np.float32), rng.random((5, 7), dtype=np.float32)
    c = matmul(a, b)
    assert isinstance(c, np.ndarray)
    assert c.shape == (3, 7)
    assert c.ctypes.data % 64 == 0
    assert c.flags.owndata is False
    assert c.flags.writeable
    np.testing.assert_allclose(c, a @ b, rtol=1e-5)


def test_call_by_name(matmul, rng):
    a, b = rng.random((2, 3), dtype=np.float32), rng.random((3, 4), dtype=np.float32)
    c = np.empty((2, 4), np.float32)
    assert matmul(b=b, a=a, c=c) is None
    np.testing.assert_array_equal(c, matmul(a, b=b))


def test_several_outputs_come_as_a_tuple_in_parameter_order(make_kernel):
    kernel = make_kernel("two_outputs", "-> sum: f64[]; x: f64[2, 3]; -> product: f64[]")
    total, product = kernel(np.arange(1.0, 7.0).reshape(2, 3))
    assert (total, product) == (21, 720)
    given = np.zeros(()), np.zeros(())
    assert kernel(given[0], np.arange(1.0, 7.0).reshape(2, 3), given[1]) is None
    assert given == (21, 720)


def test_scalars_are_arrays_of_rank_zero(make_kernel):
    kernel = make_kernel("negate_scalar", "x: f32[]; -> y: f32[]")
    assert kernel(np.float32(3)) == -3
    assert kernel(np.array(4, np.float32)) == -4


@pytest.mark.parametrize("threads", [1, 2, 3, 8])
def test_threads_share_the_work(make_kernel, threads):
    kernel = make_kernel("iota", "-> x: i64[N]", threads=threads)
    x = np.full(1001, -1)
    kernel(x)
    np.testing.assert_array_equal(x, np.arange(1001))
    assert count_workers() >= threads - 1


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_scratch_and_barrier(make_kernel, threads):
    kernel = make_kernel(
        "use_scratch", "-> sum: i64[1]", threads=threads, shared_bytes=8 * threads, local_bytes=8
    )
    assert kernel() == threads


@pytest.mark.parametrize("threads", [1, 3])
def test_scratch_that_depends_on_the_sizes(make_kernel, library, threads):
    address = ctypes.cast(library.reverse_scratch, ctypes.c_void_p).value
    kernel = make_kernel(
        "reverse", "x: i64[N]; -> y: i64[N]", threads=threads, scratch_address=address
    )
    for count in (5, 100_000, 0, 700_000):
        x = np.arange(count)
        np.testing.assert_array_equal(kernel(x), x[::-1])
        np.testing.assert_array_equal(kernel.bind(x=x)(), x[::-1])
    assert len(kernel.time((x,), repeat=2, min_ns=1)) == 2


@pytest.mark.parametrize("dtype", DTYPES.values(), ids=str)
def test_every_element_type_passes(make_kernel, rng, dtype):
    text = f"x: {dtype.name}[R, C]; -> y: {dtype.name}[R, C]"
    kernel = make_kernel(f"copy{dtype.size_bytes}", text)
    x = rng.integers(0, 2, (5, 6)).astype(dtype.numpy)
    y = np.zeros_like(x)
    kernel(x, y)
    assert x.tobytes() == y.tobytes()
    assert kernel(x[:, ::-1]).tobytes() == x[:, ::-1].tobytes()
    assert kernel(x).dtype == dtype.numpy


@pytest.mark.parametrize("shape", [(0, 0), (0, 5), (5, 0)])
def test_arrays_without_elements(make_kernel, shape):
    kernel = make_kernel("copy4", "x: f32[R, C]; -> y: f32[R, C]")
    x, y = np.empty(shape, np.float32), np.empty(shape, np.float32)
    assert kernel(x).shape == shape
    assert kernel(x, y) is None
    assert kernel.bind(x=x)().shape == shape
    assert kernel.time((x,), repeat=3) == [0, 0, 0]


def test_kernel_never_runs_with_an_empty_size(make_kernel):
    """Its code may rely on at least one element: `fail` would raise if it ran."""
    kernel = make_kernel("fail", "x: f32[N]; -> y: f32[N, 3]")
    assert kernel(np.empty(0, np.float32)).shape == (0, 3)
    with raises_code("C013"):
        kernel(np.empty(1, np.float32))


def test_more_than_two_to_the_31_elements(make_kernel):
    """Memory is only reserved: no page but the two looked at is ever touched."""
    kernel = make_kernel("mark_last", "-> x: u8[N]")
    try:
        x = np.zeros(2**32 + 17, np.uint8)
    except MemoryError:
        pytest.skip("the system reserves no 4 GiB of address space")
    kernel(x)
    assert x[-1] == 42
    assert x[16] == 0, "the index was cut to 32 bits"


@hypothesis.given(st.data())
def test_any_view_of_an_input_is_read_in_logical_order(make_kernel, data):
    kernel = make_kernel("copy4", "x: i32[R, C]; -> y: i32[R, C]")
    base = np.arange(6 * 7 * 8, dtype=np.int32).reshape(6, 7, 8)
    index = data.draw(hnp.basic_indices(base.shape, min_dims=2, max_dims=2, allow_newaxis=True))
    view = base[index]
    hypothesis.assume(isinstance(view, np.ndarray) and view.ndim == 2)
    view = view.T if data.draw(st.booleans()) else view
    np.testing.assert_array_equal(kernel(view), view)


@pytest.mark.parametrize(
    "kind",
    [np.matrix, np.recarray, type("Own", (np.ndarray,), {})],
)
@pytest.mark.filterwarnings("ignore:the matrix subclass")
def test_subclasses_of_arrays_are_arrays(make_kernel, kind):
    kernel = make_kernel("copy4", "x: f32[R, C]; -> y: f32[R, C]")
    x, y = np.arange(6, dtype=np.float32).reshape(2, 3), np.zeros((2, 3), np.float32)
    made = kernel(x.view(kind))
    assert type(made) is np.ndarray
    np.testing.assert_array_equal(made, x)
    kernel(x.view(kind), y.view(kind))
    np.testing.assert_array_equal(y, x)


def test_mapped_files_are_arrays(make_kernel, tmp_path):
    kernel = make_kernel("copy4", "x: f32[R, C]; -> y: f32[R, C]")
    x = np.memmap(tmp_path / "x", np.float32, "w+", shape=(2, 3))
    x[:] = 5
    np.testing.assert_array_equal(kernel(x), x)
    np.testing.assert_array_equal(kernel.bind(x=x)(), x)


def test_input_that_is_not_aligned_is_copied(add):
    raw = np.zeros(4 * 5 + 1, np.uint8)
    x = raw[1:].view(np.float32)
    x[:] = range(5)
    np.testing.assert_array_equal(add(x, np.ones(5, np.float32)), np.arange(1, 6))


def test_read_only_inputs_are_fine(add):
    x = np.ones(4, np.float32)
    x.flags.writeable = False
    np.testing.assert_array_equal(add(x, x), [2, 2, 2, 2])


def test_inputs_may_share_memory(add):
    x = np.ones(8, np.float32)
    np.testing.assert_array_equal(add(x[:6], x[2:]), np.full(6, 2))


def test_equal_element_types_may_be_different_objects(make_kernel):
    kernel = make_kernel("copy8", "x: i64[R, C]; -> y: i64[R, C]")
    x = np.arange(6, dtype=np.longlong).reshape(2, 3)
    np.testing.assert_array_equal(kernel(x), x)
    again = pickle.loads(pickle.dumps(x.astype(np.int64)))
    out = np.zeros((2, 3), np.int64)
    kernel(again, out)
    np.testing.assert_array_equal(out, x)


def test_more_parameters_than_fit_inline(make_kernel, rng):
    """The kernel reads three of them; the others are only checked and passed."""
    extra = "; ".join(f"e{i}: f32[N, S{i}]" for i in range(20))
    kernel = make_kernel("add", f"x: f32[N]; y: f32[N]; -> z: f32[N]; {extra}")
    x, y = rng.random((2, 9), dtype=np.float32)
    others = [np.zeros((9, i + 1), np.float32) for i in range(20)]
    np.testing.assert_array_equal(kernel(x, y, *others), x + y)
    with raises_code("C006"):
        kernel(x, y, *others[:-1], np.zeros((8, 1), np.float32))


def test_gil_is_free_while_a_kernel_runs(make_kernel):
    kernel = make_kernel("await_flag", "flag: i64[1]; -> seen: i64[1]")
    flag, seen = np.zeros(1, np.int64), np.zeros(1, np.int64)
    thread = threading.Thread(target=kernel, args=(flag, seen))
    thread.start()
    flag[0] = 5
    thread.join()
    assert seen[0] == 5


def test_python_threads_may_call_at_once(make_kernel, rng):
    kernels = [
        make_kernel("add", "x: f32[N]; y: f32[N]; -> z: f32[N]", threads=threads)
        for threads in (1, 2, 3, 2)
    ]
    x, y = rng.random((2, 1000), dtype=np.float32)
    wrong = []

    def call_often(kernel: Kernel) -> None:
        wrong.extend(kernel for _ in range(100) if not np.array_equal(kernel(x, y), x + y))

    threads = [threading.Thread(target=call_often, args=(kernel,)) for kernel in kernels]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_time_gives_one_number_per_sample(add):
    x = np.ones(1000, np.float32)
    times = add.time((x, x), repeat=4, min_ns=10_000)
    assert len(times) == 4
    assert all(0 < ns < 1e9 for ns in times)
    z = np.zeros(1000, np.float32)
    add.time((x, x, z), repeat=1, min_ns=1)
    assert z[0] == 2


@pytest.mark.parametrize("repeat", [0, -1])
def test_time_rejects_no_samples(add, repeat):
    x = np.ones(3, np.float32)
    with pytest.raises(ValueError, match="at least one sample"):
        add.time((x, x), repeat=repeat)


def test_timing_can_be_interrupted(add):
    class AlarmError(Exception):
        pass

    def ring(*_: object) -> None:
        raise AlarmError

    x = np.ones(1000, np.float32)
    before = signal.signal(signal.SIGALRM, ring)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        with pytest.raises(AlarmError):
            add.time((x, x), repeat=1_000_000, min_ns=1_000_000)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_kernel_keeps_its_code_alive_and_lets_it_go(library):
    class Owner:
        pass

    owner = Owner()
    gone = weakref.ref(owner)
    address = ctypes.cast(library.fail, ctypes.c_void_p).value
    kernel = Kernel(address, (), keep_alive=owner)
    del owner
    assert gone() is not None
    del kernel
    gc.collect()
    assert gone() is None


def test_repr_shows_the_parameters(add):
    assert repr(add) == "<kernel add(x: f32[N], y: f32[N]) -> (z: f32[N]), 1 thread>"


@pytest.mark.parametrize("threads", [0, -1, 1025])
def test_kernel_rejects_thread_count(make_kernel, threads):
    with pytest.raises(ValueError, match="threads must be between 1 and 1024"):
        make_kernel("iota", "-> x: i64[N]", threads=threads)
