"""Every instruction does what it means, and names that mean nothing are not found."""

import numpy as np
import pytest

from tests.expect import raises_code
from tests.qemu import missing, run_foreign
from tilewright.build import build
from tilewright.dtypes import f32, i16, i32
from tilewright.intrin import FAMILIES, lookup
from tilewright.intrin.intrinsic import TensorIntrinsic
from tilewright.intrin.llvm_calls import LLVM_CALLS, call_llvm
from tilewright.pipeline import Pipeline
from tilewright.target import Target
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
    "x86.avx512bw.dot2",
    "x86.avx512vnni.dot4",
    "arm.dotprod.sdot",
    "arm.dotprod.udot",
    "arm.i8mm.usdot",
]
OF_MACHINES = [name for name in EXAMPLES if lookup(name).requires]
HOST = Target.host()


def arrays_for(chosen: TensorIntrinsic, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Values over the whole range of the small integer types, extreme ones often: nothing may
    saturate."""
    arrays = {}
    for operand in chosen.operands:
        buffer = operand.buffer
        shape = [tir.int_value(d) for d in buffer.shape]
        low, high = (-9, 10) if buffer.dtype in (f32, i32) else _range(buffer)
        ends = rng.choice([low, high - 1], shape)
        drawn = np.where(rng.random(shape) < 0.3, ends, rng.integers(low, high, shape))
        arrays[buffer.name] = drawn.astype(buffer.dtype.numpy)
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


@pytest.mark.parametrize("name", [n for n in EXAMPLES if n not in OF_MACHINES])
def test_implementation_does_what_it_means(name, rng):
    chosen = lookup(name)
    assert chosen is not None
    arrays = arrays_for(chosen, rng)
    expected = interpret(chosen.meaning_func(), arrays)
    found = interpret(chosen.implementation_func(), arrays)
    for buffer, value in expected.items():
        np.testing.assert_array_equal(found[buffer], value)


@pytest.mark.parametrize("name", OF_MACHINES)
def test_an_instruction_does_what_it_means(name, rng):
    """On this machine, or on one that qemu plays; without either it is assembled."""
    chosen = lookup(name)
    assert chosen is not None
    program = chosen.implementation_func()
    wanted = ",".join(f"+{feature}" for feature in sorted(chosen.requires))
    arch = "aarch64" if name.startswith("arm.") else "x86-64"
    target = HOST if chosen.requires <= HOST.features else Target.named(f"{arch}{wanted}")
    absent = missing(target.arch) if target.arch != HOST.arch else "such a processor"
    if target is not HOST and absent:
        code = Pipeline(target, trace="none").compiled(program).code
        assert code.startswith(b"\x7fELF")
        pytest.skip(f"{name} was assembled, not run: without {absent}")
    for _ in range(3):
        arrays = arrays_for(chosen, rng)
        expected = interpret(chosen.meaning_func(), arrays)
        for name_of_sums, value in expected.items():
            found = _run(program, target, arrays, name_of_sums)
            np.testing.assert_array_equal(found, value)


def _run(program: tir.Func, target: Target, arrays: dict[str, np.ndarray], name: str):
    """The content of one parameter after a run."""
    if target is not HOST:
        return run_foreign(program, target, arrays, trace="none").results[name]
    given = {key: array.copy() for key, array in arrays.items()}
    build(program, trace="none")(*given.values())
    return given[name]


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
