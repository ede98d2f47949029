"""Every tensor instruction, compiled, against its meaning; and whole programs that use them."""

import numpy as np
import pytest

from tests.expect import raises_code
from tests.programs import integers_for, matmul, quantised_matmul
from tests.unit.intrin.test_intrinsics import EXAMPLES, arrays_for
from tilewright.build import build
from tilewright.intrin import lookup
from tilewright.intrin.intrinsic import TensorIntrinsic
from tilewright.schedule import Schedule
from tilewright.target import Target
from tilewright.tensor.interpret import interpret


def usable(name: str) -> TensorIntrinsic:
    chosen = lookup(name)
    assert chosen is not None
    missing = chosen.requires - Target.host().features
    if missing:
        pytest.skip(f"host lacks {', '.join(sorted(missing))}")
    return chosen


@pytest.mark.parametrize("name", EXAMPLES)
def test_compiled_implementation_does_what_it_means(name, rng):
    chosen = usable(name)
    kernel = build(chosen.implementation_func(), threads=1, trace="none")
    for _ in range(8):
        arrays = arrays_for(chosen, rng)
        expected = interpret(chosen.meaning_func(), arrays)
        found = {key: value.copy() for key, value in arrays.items()}
        kernel(*found.values())
        for buffer, value in expected.items():
            np.testing.assert_array_equal(found[buffer], value)


def compiled(schedule: Schedule, inputs: dict[str, np.ndarray]) -> np.ndarray:
    return build(schedule.func, threads=1, trace="none")(*inputs.values())


def test_tensorised_matmul(rng):
    program = matmul(12, 32, 16)
    schedule = Schedule(program)
    for loop, tile in (("i", 6), ("j", 16), ("k", 8)):
        schedule.split(loop, tile)
    schedule.reorder("i_0", "j_0", "k_0", "i_1", "j_1", "k_1")
    schedule.decompose_reduction("C", "k_0")
    schedule.tensorize("i_1", "f32.gemm(6,16,8)")
    inputs = integers_for(program, rng)
    np.testing.assert_array_equal(compiled(schedule, inputs), inputs["A"] @ inputs["B"])


@pytest.mark.parametrize("name", ["x86.avx2.dot4", "i32.dot4(8)"])
def test_tensorised_quantised_matmul(name, rng):
    usable(name)
    program = quantised_matmul(3, 16, 8, packed=name.startswith("x86"))
    schedule = Schedule(program)
    schedule.split("j", 8)
    schedule.reorder("i", "j_0", "k", "j_1", "r")
    schedule.decompose_reduction("C", "k")
    schedule.tensorize("j_1", name)
    inputs = integers_for(program, rng)
    inputs["A"][:] = rng.integers(0, 256, inputs["A"].shape)
    inputs["B"][:] = rng.integers(-128, 128, inputs["B"].shape)
    expected = interpret(program, inputs)["C"]
    np.testing.assert_array_equal(compiled(schedule, inputs), expected)


def test_a_target_without_the_instruction_is_refused():
    schedule = Schedule(quantised_matmul(2, 8, 8, packed=True))
    schedule.reorder("i", "k", "j", "r")
    schedule.decompose_reduction("C", "k")
    schedule.tensorize("j", "x86.avx2.dot4")
    with raises_code("T202", text="avx2"):
        build(schedule.func, target="x86-64-v2", trace="none")
