"""Calls that are refused: every error code, with its exact text."""

from __future__ import annotations

import ctypes
import subprocess
import sys
import textwrap
import traceback
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import tilewright
from tests.expect import raises_code
from tilewright.abi import ParamSpec
from tilewright.dtypes import f32
from tilewright.errors import CallError


def floats(*shape: int) -> np.ndarray:
    return np.ones(shape, np.float32)


def read_only(array: np.ndarray) -> np.ndarray:
    array.flags.writeable = False
    return array


def misaligned(count: int) -> np.ndarray:
    return np.zeros(4 * count + 1, np.uint8)[1:].view(np.float32)


SHARED = np.ones(12, np.float32)

REFUSED = {
    "C001-none": ("C001", ()),
    "C001-too-few": ("C001", (floats(3),)),
    "C001-too-many": ("C001", (floats(3),) * 4),
    "C002-list": ("C002", ([1.0, 2.0], floats(2))),
    "C002-number": ("C002", (1.0, floats(2))),
    "C002-none": ("C002", (floats(2), floats(2), None)),
    "C002-class": ("C002", (np.ndarray, floats(2))),
    "C002-text": ("C002", ("ab", floats(2))),
    "C002-tuple": ("C002", ((1.0, 2.0), floats(2))),
    "C002-dict": ("C002", ({"x": floats(2)}, floats(2))),
    "C002-masked": ("C002", (np.ma.masked_array(floats(2), [True, False]), floats(2))),
    "C003-f64": ("C003", (np.ones(3), floats(3))),
    "C003-byte-order": ("C003", (np.ones(3, ">f4"), floats(3))),
    "C003-objects": ("C003", (np.array([None]), floats(1))),
    "C003-complex": ("C003", (np.ones(3, np.complex64), floats(3))),
    "C003-output": ("C003", (floats(3), floats(3), np.ones(3, np.int32))),
    "C003-bytes": ("C003", (b"abcd", floats(3))),
    "C003-bool": ("C003", (np.ones(3, bool), floats(3))),
    "C003-bfloat16": ("C003", (floats(3).astype(ml_dtypes.bfloat16), floats(3))),
    "C003-float8": ("C003", (floats(3).astype(ml_dtypes.float8_e3m4), floats(3))),
    "C003-structured": ("C003", (np.zeros(3, [("re", "f4"), ("im", "f4")]), floats(3))),
    "C003-text": ("C003", (np.array(["a", "b"]), floats(2))),
    "C003-dates": ("C003", (np.zeros(3, "M8[s]"), floats(3))),
    "C004-matrix": ("C004", (floats(3, 1), floats(3))),
    "C004-scalar": ("C004", (floats(3), np.float32(1))),
    "C006-inputs": ("C006", (floats(3), floats(4))),
    "C006-output": ("C006", (floats(3), floats(3), floats(4))),
    "C007-read-only": ("C007", (floats(3), floats(3), read_only(floats(3)))),
    "C003-output-bytes": ("C003", (floats(1), floats(1), b"abcd")),
    "C008-strided": ("C008", (floats(3), floats(3), floats(6)[::2])),
    "C008-reversed": ("C008", (floats(3), floats(3), floats(3)[::-1])),
    "C008-misaligned": ("C008", (floats(3), floats(3), misaligned(3))),
    "C009-same": ("C009", (SHARED, floats(12), SHARED)),
    "C009-part": ("C009", (floats(6), SHARED[:6], SHARED[5:11])),
}


@pytest.mark.parametrize("case", REFUSED)
def test_call_rejects(add, golden, case):
    code, arguments = REFUSED[case]
    with raises_code(code) as caught:
        add(*arguments)
    assert golden == caught.value


@pytest.mark.parametrize("case", ["C002-list", "C006-inputs", "C009-same"])
def test_timing_rejects_the_same(add, case):
    code, arguments = REFUSED[case]
    with raises_code(code):
        add.time(arguments)


@pytest.mark.parametrize("arguments", [(), ([1.0], floats(1)), (floats(3), floats(4))])
def test_traceback_ends_at_the_call(add, arguments):
    with pytest.raises(CallError) as caught:
        add(*arguments)
    frames = traceback.extract_tb(caught.tb)
    assert [frame.filename for frame in frames] == [__file__]
    package = str(Path(tilewright.__file__).parent)
    assert package not in "".join(traceback.format_exception(caught.value))


def test_traceback_of_a_failing_kernel_ends_at_the_call(make_kernel):
    with pytest.raises(CallError) as caught:
        make_kernel("fail", "-> x: f32[1]")(floats(1))
    assert len(traceback.extract_tb(caught.tb)) == 1


def test_refused_call_leaves_the_output_alone(add):
    z = np.full(3, 9, np.float32)
    with raises_code("C006"):
        add(floats(3), floats(4), z)
    np.testing.assert_array_equal(z, [9, 9, 9])


def test_neighbours_do_not_overlap(add):
    shared = np.ones(12, np.float32)
    add(shared[:4], shared[4:8], shared[8:])
    np.testing.assert_array_equal(shared[8:], [2, 2, 2, 2])


def test_input_that_is_copied_cannot_overlap(add):
    shared = np.arange(6, dtype=np.float32)
    add(shared[::-1], shared[::-1], shared)
    np.testing.assert_array_equal(shared, [10, 8, 6, 4, 2, 0])


def test_constant_extent_rejects_another(make_kernel, golden):
    kernel = make_kernel("two_outputs", "-> sum: f64[]; x: f64[2, 3]; -> product: f64[]")
    with raises_code("C005") as caught:
        kernel(np.ones((2, 4)))
    assert golden == caught.value


def test_bf16_rejects_its_bits(make_kernel, golden):
    kernel = make_kernel("copy2", "x: bf16[R, C]; -> y: bf16[R, C]")
    with raises_code("C003") as caught:
        kernel(np.zeros((2, 3), np.uint16))
    assert golden == caught.value
    kernel(np.zeros((2, 3), np.uint16).view(ml_dtypes.bfloat16))


def test_bound_array_rejects_overlap(add):
    z = floats(3)
    with raises_code("C009", facts={"param": "z", "other": "y"}):
        add.bind(y=z)(floats(3), z)


@pytest.mark.parametrize(
    "kwargs",
    [{"w": floats(3)}, {"x": floats(3), "y": floats(3)}, {"y": floats(3), "out": floats(3)}],
    ids=["unknown", "twice", "out"],
)
def test_call_rejects_name(add, golden, kwargs):
    with raises_code("C010") as caught:
        add(floats(3), **kwargs)
    assert golden == caught.value


def test_bind_rejects_name(add, golden):
    with raises_code("C010") as caught:
        add.bind(x=floats(3)).bind(x=floats(3))
    assert golden == caught.value
    with raises_code("C010"):
        add.pack("w", floats(3))


def test_bind_rejects_what_a_call_rejects(add):
    with raises_code("C003"):
        add.bind(x=np.ones(3))
    with raises_code("C006"):
        add.bind(x=floats(3)).bind(y=floats(4))
    with raises_code("C007"):
        add.bind(z=read_only(floats(4)))


def test_call_rejects_outputs_of_unknown_size(make_kernel, golden):
    with raises_code("C011") as caught:
        make_kernel("iota", "-> x: i64[N]")()
    assert golden == caught.value


def test_empty_input_of_a_result_with_elements_is_refused(make_kernel, golden):
    kernel = make_kernel("fail", "x: f32[N, 2]; -> y: f32[2]")
    with raises_code("C020") as caught:
        kernel(floats(0, 2))
    assert golden == caught.value
    for call in (lambda: kernel.time((floats(0, 2),)), kernel.bind(x=floats(0, 2))):
        with raises_code("C020"):
            call()


def test_updated_array_with_elements_is_refused_as_well(make_kernel):
    """Whether it would have to change is not known here."""
    y = ParamSpec("y", f32, (2,), is_output=True, is_updated=True)
    kernel = make_kernel("fail", (ParamSpec("x", f32, ("N",)), y))
    with raises_code("C020", facts={"param": "y", "found": "size `N` is 0"}):
        kernel(floats(0), floats(2))


def test_result_that_no_memory_holds(make_kernel):
    kernel = make_kernel("fail", "x: f32[N]; -> y: f32[N, N, N]")
    with pytest.raises(MemoryError):
        kernel(np.broadcast_to(np.float32(1), 2**22))


def test_failing_kernel_raises(make_kernel, golden):
    with raises_code("C013") as caught:
        make_kernel("fail", "-> x: f32[1]")(floats(1))
    assert golden == caught.value


def test_failing_kernel_raises_from_timing_and_made_outputs(make_kernel):
    kernel = make_kernel("fail", "-> x: f32[1]")
    with raises_code("C013"):
        kernel()
    with raises_code("C013"):
        kernel.time(())


@pytest.mark.parametrize("threads", [2, 3, 4])
def test_failing_thread_hangs_nobody(make_kernel, threads):
    kernel = make_kernel("fail_on_thread_one", "-> x: f32[1]", threads=threads)
    with raises_code("C013", facts={"code": 41}):
        kernel(floats(1))


def test_kernel_inside_a_kernel_is_refused(make_kernel, add, golden):
    caught = []

    @ctypes.CFUNCTYPE(None)
    def call_add() -> None:
        try:
            add(floats(3), floats(3))
        except CallError as error:
            caught.append(error)

    address = np.array([ctypes.cast(call_add, ctypes.c_void_p).value])
    make_kernel("call_back", "address: i64[1]; -> unused: i64[1]")(address)
    assert caught[0].code.id == "C015"
    assert golden == caught[0]


def test_impossible_scratch_is_refused(make_kernel, golden):
    kernel = make_kernel("iota", "-> x: i64[N]", shared_bytes=2**62)
    with raises_code("C016") as caught:
        kernel(np.zeros(3, np.int64))
    assert golden == caught.value


def test_impossible_scratch_of_these_sizes_is_refused(make_kernel, library):
    address = ctypes.cast(library.endless_scratch, ctypes.c_void_p).value
    kernel = make_kernel("iota", "-> x: i64[N]", scratch_address=address)
    with raises_code("C016", facts={"needed": "an amount that depends on the sizes of the arrays"}):
        kernel(np.zeros(3, np.int64))


def test_threads_that_cannot_start_are_an_error(library):
    """In a process whose address space is too small for that many stacks."""
    program = f"""
        import ctypes, resource
        import numpy as np
        from tilewright.dtypes import i64
        from tilewright.errors import CallError
        from tilewright.runtime import Kernel, ParamSpec

        library = ctypes.CDLL({library._name!r})
        address = ctypes.cast(library.iota, ctypes.c_void_p).value
        kernels = [
            Kernel(address, (ParamSpec("x", i64, ("N",), True),), ("N",), threads)
            for threads in (2, 500)
        ]
        with open("/proc/self/statm") as statm:
            used = int(statm.read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + (200 << 20), resource.RLIM_INFINITY))
        x = np.zeros(9, np.int64)
        for _ in range(2):
            kernels[0](x)
            try:
                kernels[1](x)
            except CallError as error:
                assert error.code.id == "C014", error
                print(error)
            else:
                raise SystemExit("500 threads in 200 MiB?")
        assert list(x) == list(range(9))
    """
    result = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert result.returncode == 0, result.stdout + result.stderr
    assert result.stdout.count("C014: `kernel` cannot get its threads from the system") == 2
