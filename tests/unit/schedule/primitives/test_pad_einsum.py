import numpy as np
import pytest

from tests.expect import raises_code
from tests.programs import assert_same_meaning, conv1d, matmul, symbolic_matmul
from tilewright.schedule import Schedule
from tilewright.tensor import ir as tir
from tilewright.tensor.interpret import interpret


def test_pad_einsum_of_a_matmul(golden, rng):
    program = matmul(5, 8, 7)
    schedule = Schedule(program)
    assert schedule.pad_einsum("C", [4, 4, 4]) == ("A_pad", "B_pad", "C_crop")
    assert golden == schedule.func
    assert_same_meaning(schedule, program, rng)


@pytest.mark.parametrize(
    ("padding", "buffers"),
    [
        ([4, 1, 1], {"A_pad", "C_pad"}),
        ([1, 4, 1], {"B_pad", "C_pad"}),
        ([1, 1, 4], {"A_pad", "B_pad"}),
        ([1, 1, 1], set()),
        ([5, 6, 7], set()),
    ],
)
def test_pad_einsum_copies_only_what_is_too_small(rng, padding, buffers):
    program = matmul(5, 6, 7)
    schedule = Schedule(program)
    schedule.pad_einsum("C", padding)
    allocated = {name for name in ("A_pad", "B_pad", "C_pad") if name in _buffers(schedule.func)}
    assert allocated == buffers
    assert_same_meaning(schedule, program, rng)


def _buffers(program: tir.Func) -> set[str]:
    names, body = set(), program.body
    while isinstance(body, tir.Alloc):
        names.add(body.buffer.name)
        body = body.body
    return names


def test_pad_einsum_is_exact_beside_infinities():
    program = matmul(2, 3, 5)
    schedule = Schedule(program)
    schedule.pad_einsum("C", [4, 4, 4])
    a, b = np.ones((2, 5), np.float32), np.ones((5, 3), np.float32)
    a[0, 0], b[4, 1], a[1, 2] = np.inf, np.nan, -0.0
    expected, found = interpret(program, [a, b]), interpret(schedule.func, [a, b])
    np.testing.assert_array_equal(found["C"], expected["C"])


@pytest.mark.parametrize(
    "sizes", [{"rows": 1, "depth": 1}, {"rows": 4, "depth": 8}, {"rows": 5, "depth": 3}]
)
def test_pad_einsum_of_symbolic_sizes(rng, sizes):
    program = symbolic_matmul()
    schedule = Schedule(program)
    schedule.pad_einsum("C", [4, 4, 4])
    assert_same_meaning(schedule, program, rng, sizes)


def test_pad_einsum_pads_a_channel_of_a_convolution(rng):
    program = conv1d(10, 3, 3)
    schedule = Schedule(program)
    schedule.pad_einsum("C", [1, 4, 1])
    assert_same_meaning(schedule, program, rng)


def test_pad_einsum_rejects_sums_of_iterators():
    with raises_code("S412", text="`reindex` first"):
        Schedule(conv1d()).pad_einsum("C", [4, 1, 1])
