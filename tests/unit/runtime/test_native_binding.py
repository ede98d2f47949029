"""What the C side refuses by itself, when it is used without the Python class above it."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.runtime import _native

F32 = np.dtype(np.float32)


def native(**changes: object) -> _native.Kernel:
    facts = {
        "entry": 4096, "params": (), "size_count": 0, "threads": 1, "shared_bytes": 0,
        "local_bytes": 0,
    }  # fmt: skip
    return _native.Kernel(**{**facts, **changes})


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"entry": 0}, ValueError),
        ({"size_count": -1}, ValueError),
        ({"shared_bytes": -1}, ValueError),
        ({"local_bytes": -1}, ValueError),
        ({"threads": 0}, ValueError),
        ({"params": [1]}, TypeError),
        ({"params": (1,)}, TypeError),
        ({"params": ((F32, 4, [], False, None, None),)}, TypeError),
        ({"params": ((F32, 0, (), False, None, None),)}, ValueError),
        ({"params": ((F32, 4, (-1,), False, None, None),)}, ValueError),
        ({"params": ((F32, 4, ("N",), False, None, None),)}, TypeError),
        ({"params": ((F32, 4, (1,) * 65, False, None, None),)}, ValueError),
        ({"params": ((F32, 4, (2**63,), False, None, None),)}, OverflowError),
        ({"params": ((F32, 4, (3,), False, None, np.ones(4, F32)),)}, ValueError),
        ({"params": ((F32, 4, (3,), False, None, [1.0]),)}, ValueError),
    ],
)
def test_kernel_rejects(changes, error):
    with pytest.raises(error):
        native(**changes)


def test_kernel_is_initialised_once():
    kernel = native()
    with pytest.raises(TypeError, match="initialised once"):
        kernel.__init__(4096, (), 0, 1, 0, 0)


def test_kernel_without_initialisation_cannot_be_called():
    kernel = _native.Kernel.__new__(_native.Kernel)
    for use in (kernel, lambda: kernel._try_run(()), lambda: kernel._time((), 1, 1)):
        with pytest.raises(TypeError, match="not been initialised"):
            use()


def test_arguments_must_be_a_tuple():
    with pytest.raises(SystemError):
        native()._try_run([])
    with pytest.raises(TypeError):
        native()._time([], 1, 1)


def test_arguments_that_do_not_fit_are_declined():
    kernel = native(params=((F32, 4, (3,), False, None, None),))
    for wrong in ((), ([1.0],), (np.ones(3),), (np.ones(4, F32),), (np.ones((1, 3), F32),)):
        assert kernel._try_run(wrong) is False
        with pytest.raises(ValueError, match="do not fit"):
            kernel._time(wrong, 1, 1)


def test_interrupt_while_arguments_are_taken_is_not_swallowed():
    class Interrupting:
        @property
        def packing(self):
            raise KeyboardInterrupt

    kernel = native(params=((F32, 4, (3,), False, "packing", None),))
    with pytest.raises(KeyboardInterrupt):
        kernel._try_run((Interrupting(),))


def test_memory_is_a_writable_buffer():
    memory = _native.Memory(100)
    view = memoryview(memory)
    assert view.nbytes == 100
    assert not view.readonly
    view[99] = 7
    with pytest.raises(ValueError, match="not negative"):
        _native.Memory(-1)


def test_read_dlpack_rejects_other_capsules():
    with pytest.raises(ValueError, match="PyCapsule"):
        _native.read_dlpack(1)


def test_clock_overhead_is_small():
    assert 0 < _native.clock_overhead_ns() < 100_000
