"""Arrays of other libraries, by every protocol; torch itself where it is installed."""

from __future__ import annotations

import array
import ctypes

import ml_dtypes
import numpy as np
import pytest

from tests.expect import raises_code
from tilewright.dtypes import DTYPES, f32
from tilewright.runtime import empty


class ByDlpack:
    """What a tensor of another library shows of itself."""

    def __init__(self, source, device=1):
        self.source, self.device = source, device

    def __dlpack__(self, **options):
        return self.source.__dlpack__(**options)

    def __dlpack_device__(self):
        return (self.device, 0)


class ByOldDlpack(ByDlpack):
    def __dlpack__(self):
        return self.source.__dlpack__()


class ByInterface:
    def __init__(self, source):
        self.source = source
        self.__array_interface__ = source.__array_interface__


class ByArray:
    def __init__(self, source):
        self.source = source

    def __array__(self, dtype=None, copy=None):
        return self.source


class CopyOnly(ByArray):
    def __array__(self, dtype=None, copy=None):
        if copy is False:
            raise ValueError("only copies")
        return self.source.copy()


SHARING = [ByDlpack, ByOldDlpack, ByInterface, ByArray, memoryview, lambda x: array.array("f", x)]


@pytest.mark.parametrize("wrap", SHARING)
def test_inputs_by_every_protocol(add, wrap):
    x, y = np.arange(4, dtype=np.float32), np.ones(4, np.float32)
    np.testing.assert_array_equal(add(wrap(x), wrap(y)), x + y)


@pytest.mark.parametrize("wrap", SHARING[:-1])
def test_outputs_by_every_protocol_share_memory(add, wrap):
    x, z = np.arange(4, dtype=np.float32), np.zeros(4, np.float32)
    add(x, x, wrap(z))
    np.testing.assert_array_equal(z, x + x)


def test_outputs_by_buffer(add):
    z = array.array("f", [0, 0, 0])
    x = np.arange(3, dtype=np.float32)
    add(x, x, z)
    assert list(z) == [0, 2, 4]


def test_array_that_gives_only_copies_is_an_input_but_no_output(add):
    x = np.arange(3, dtype=np.float32)
    np.testing.assert_array_equal(add(CopyOnly(x), x), x + x)
    with raises_code("C002", text="that only gives copies"):
        add(x, x, CopyOnly(x))


def test_number_of_numpy_is_no_output(make_kernel):
    kernel = make_kernel("negate_scalar", "x: f32[]; -> y: f32[]")
    with raises_code("C002", text="numpy.float32"):
        kernel(np.float32(1), np.float32(1))


def test_array_on_a_device_is_refused(add, golden):
    x = np.ones(3, np.float32)
    with raises_code("C002") as caught:
        add(x, ByDlpack(x, device=2))
    assert golden == caught.value


def test_strided_dlpack(add):
    x = np.arange(8, dtype=np.float32)
    np.testing.assert_array_equal(add(ByDlpack(x[::2]), ByDlpack(x[::-2])), [7, 7, 7, 7])


def test_read_only_dlpack(add):
    x = np.arange(3, dtype=np.float32)
    x.flags.writeable = False
    np.testing.assert_array_equal(add(ByDlpack(x), x), x + x)
    with raises_code("C007"):
        add(x, x, ByDlpack(x))
    with raises_code("C002", text="cannot be exported"):
        add(x, ByOldDlpackOfReadOnly(x))


class ByOldDlpackOfReadOnly(ByDlpack):
    def __dlpack__(self, **_):
        raise BufferError("is read-only")


@pytest.mark.parametrize("method", ["__dlpack__", "__array__"])
def test_exports_of_nothing(add, method):
    class Empty:
        """What it exports is neither a capsule nor an array."""

    setattr(Empty, method, lambda *_, **__: [1])
    x = np.arange(3, dtype=np.float32)
    with raises_code("C002"):
        add(Empty(), x)


class Unwilling(ByDlpack):
    """A tensor that its library does not export, or not in this state."""

    def __init__(self, error, *, on_device=False):
        super().__init__(None)
        self.error, self.on_device = error, on_device

    def __dlpack__(self, **_):
        raise self.error

    def __dlpack_device__(self):
        if self.on_device:
            raise self.error
        return (1, 0)


@pytest.mark.parametrize("kind", [BufferError, RuntimeError, ValueError, TypeError])
@pytest.mark.parametrize("on_device", [False, True])
def test_tensor_that_is_not_exported_is_refused(add, kind, on_device):
    x = np.ones(3, np.float32)
    with raises_code("C002", text="that cannot be exported: it has gradients"):
        add(Unwilling(kind("it has gradients"), on_device=on_device), x)


def test_bf16_by_interface_and_array(make_kernel):
    kernel = make_kernel("copy2", "x: bf16[R, C]; -> y: bf16[R, C]")
    x = np.arange(6).astype(ml_dtypes.bfloat16).reshape(2, 3)
    for wrap in (ByInterface, ByArray):
        y = np.zeros_like(x)
        kernel(wrap(x), wrap(y))
        np.testing.assert_array_equal(x, y)


class DlTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device", ctypes.c_int32 * 2),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
    ]


class HandMade:
    """A DLPack producer whose element type can be anything; it owns what the capsule points to."""

    def __init__(self, source, code, bits, lanes=1):
        self.source = source
        shape = (ctypes.c_int64 * source.ndim)(*source.shape)
        self.tensor = DlTensor(
            source.ctypes.data - 4, (1, 0), source.ndim, code, bits, lanes, shape, None, 4
        )

    def __dlpack__(self):
        new = ctypes.pythonapi.PyCapsule_New
        new.restype = ctypes.py_object
        new.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        return new(ctypes.addressof(self.tensor), b"dltensor", None)


def test_bf16_by_dlpack(make_kernel):
    kernel = make_kernel("copy2", "x: bf16[R, C]; -> y: bf16[R, C]")
    x = np.arange(6).astype(ml_dtypes.bfloat16).reshape(2, 3)
    y = np.zeros_like(x)
    kernel(HandMade(x, 4, 16), HandMade(y, 4, 16))
    np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("code", range(10, 15))
def test_small_floats_by_dlpack(make_kernel, code):
    names = ["f8e4m3fn", "f8e4m3fnuz", "f8e5m2", "f8e5m2fnuz", "f8e8m0"]
    dtype = DTYPES[names[code - 10]]
    kernel = make_kernel("copy1", f"x: {dtype.name}[R, C]; -> y: {dtype.name}[R, C]")
    x = np.arange(256, dtype=np.uint8).reshape(2, 128)
    y = np.zeros_like(x)
    kernel(HandMade(x, code, 8), HandMade(y, code, 8))
    np.testing.assert_array_equal(x, y)
    assert kernel(HandMade(x, code, 8)).dtype == dtype.numpy


WHOLE_BYTES = [t for t in DTYPES.values() if t.is_bool or t.bits % 8 == 0]
OTHERS = [(5, 64, 1), (2, 32, 4), (3, 64, 1), (0, 4, 1), (2, 8, 1), (10, 16, 1), (17, 4, 2)]


@pytest.mark.parametrize(("code", "bits", "lanes"), OTHERS)
def test_dlpack_rejects_other_elements(add, code, bits, lanes):
    x = np.ones(3, np.float32)
    with raises_code("C002", text=f"DLPack type ({code}, {bits}, {lanes})"):
        add(HandMade(x, code, bits, lanes), x)


@pytest.mark.parametrize("dtype", WHOLE_BYTES, ids=str)
def test_torch_tensors(make_kernel, dtype):
    torch = pytest.importorskip("torch")
    kernel = make_kernel(
        f"copy{dtype.size_bytes}", f"x: {dtype.name}[R, C]; -> y: {dtype.name}[R, C]"
    )
    torch_dtype = getattr(torch, dtype.numpy.name)
    x = torch.arange(6).reshape(2, 3).to(torch_dtype)
    y = torch.zeros(2, 3, dtype=torch_dtype)
    kernel(x, y)
    assert torch.equal(x, y)
    kernel(x.T.contiguous().T, y)
    assert torch.equal(x, y)


@pytest.mark.parametrize(
    "make",
    [
        lambda torch: torch.ones(3, requires_grad=True),
        lambda torch: torch.ones(3, device="meta"),
        lambda torch: torch.ones(3).to_sparse(),
        lambda torch: torch.ones(3, dtype=torch.complex64).conj(),
    ],
    ids=["gradients", "meta", "sparse", "conjugate"],
)
def test_torch_tensors_without_plain_memory_are_refused(add, make):
    torch = pytest.importorskip("torch")
    with raises_code("C002", text="torch.Tensor"):
        add(make(torch), np.ones(3, np.float32))


def test_torch_views(add):
    torch = pytest.importorskip("torch")
    x = torch.arange(6, dtype=torch.float32)
    np.testing.assert_array_equal(add(x[::2], x[1::2]), [1, 5, 9])
    np.testing.assert_array_equal(add(x.detach(), x.requires_grad_().detach()), 2 * np.arange(6))
    with raises_code("C008"):
        add(x.detach()[::2], x.detach()[1::2], torch.zeros(6)[::2])
    shared = torch.zeros(6)
    with raises_code("C009"):
        add(shared, torch.ones(6), shared)


@pytest.mark.parametrize("shape", [(), (0,), (7,), (3, 0, 2), (1000, 1300)])
def test_empty_arrays_are_aligned(shape):
    made = empty(shape, f32)
    assert made.shape == shape
    assert made.dtype == np.float32
    assert made.ctypes.data % 64 == 0
    made[...] = 1
    assert made.sum() == made.size


@pytest.mark.parametrize("shape", [(2**60,), (2**61,), (2**61, 0), (0, 2**40, 2**40)])
def test_impossible_arrays_raise_memory_error(shape):
    with pytest.raises(MemoryError):
        empty(shape, f32)
