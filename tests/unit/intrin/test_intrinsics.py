"""Every instruction does what it means, and names that mean nothing are not found."""

import numpy as np
import pytest

from tests.expect import raises_code
from tilewright.dtypes import f32, i16, i32
from tilewright.intrin import FAMILIES, lookup
from tilewright.intrin.intrinsic import TensorIntrinsic
from tilewright.intrin.llvm_calls import LLVM_CALLS, call_llvm
from tilewright.tensor import ir as tir
from tilewright.tensor.interpret import interpret
from tilewright.tensor.verify import verify
from tilewright.tensor.visit import walk

EXAMPLES = [
    "f32.gemm(1,1,1)",
    "f32.gemm(6,16,4)",
    "f32.gemm(3,5,7)",
    "f32.dot(1)",
    "f32.dot(8)",
    "i32.dot4(8)",
    "i32.dot4(3)",
    "x86.avx2.dot2",
    "x86.avx2.dot4",
]


def arrays_for(chosen: TensorIntrinsic, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Values over the whole range of the small integer types: nothing may saturate."""
    arrays = {}
    for operand in chosen.operands:
        buffer = operand.buffer
        shape = [tir.int_value(d) for d in buffer.shape]
        low, high = (-9, 10) if buffer.dtype in (f32, i32) else _range(buffer)
        arrays[buffer.name] = rng.integers(low, high, shape).astype(buffer.dtype.numpy)
    return arrays


def _range(buffer: tir.Buffer) -> tuple[int, int]:
    return int(buffer.dtype.min_value), int(buffer.dtype.max_value) + 1


def test_every_family_has_an_example():
    assert {name.partition("(")[0] for name in EXAMPLES} == set(FAMILIES)


@pytest.mark.parametrize("name", EXAMPLES)
def test_both_halves_are_well_formed(name):
    chosen = lookup(name)
    assert chosen is not None
    verify(chosen.meaning_func())
    verify(chosen.implementation_func())


@pytest.mark.parametrize("name", [n for n in EXAMPLES if not n.startswith("x86")])
def test_implementation_does_what_it_means(name, rng):
    chosen = lookup(name)
    assert chosen is not None
    arrays = arrays_for(chosen, rng)
    expected = interpret(chosen.meaning_func(), arrays)
    found = interpret(chosen.implementation_func(), arrays)
    for buffer, value in expected.items():
        np.testing.assert_array_equal(found[buffer], value)


@pytest.mark.parametrize("name", EXAMPLES)
def test_requirements_are_those_of_the_llvm_calls(name):
    chosen = lookup(name)
    assert chosen is not None
    calls = [n.name for n in walk(chosen.implementation) if type(n) is tir.Call]
    needed = {f for call in calls for f in LLVM_CALLS[call].requires}
    assert needed <= chosen.requires


@pytest.mark.parametrize(
    "name", ["f32.gemm", "f32.gemm(1,2)", "f32.gemm(0,1,2)", "f32.gem(1,2,3)", "", "f32.dot(8", "("]
)
def test_lookup_finds_nothing(name):
    assert lookup(name) is None


def test_lookup_gives_the_same_instruction_again():
    assert lookup("f32.dot(8)") is lookup("f32.dot(8)")


def test_call_llvm_rejects_operands_of_another_type():
    wrong = tir.Broadcast(tir.const(1, i16), 8)
    with raises_code("T201", text="i16x16"):
        call_llvm("llvm.x86.avx2.pmadd.wd", wrong, wrong)


def test_call_llvm_rejects_an_unknown_name():
    with raises_code("T201", text="llvm.x86.avx2.permd"):
        call_llvm("llvm.x86.avx2.pmadd")
