"""Loops that measure arithmetic: they are what they claim, on this machine and on others."""

from __future__ import annotations

import re

import numpy as np
import pytest
from llvmlite import binding

from tilewright.intrin import FAMILIES
from tilewright.llvm.assembly import count_spills, innermost_loops
from tilewright.llvm.machine import assembly_of
from tilewright.llvm.vector_loops import CHAIN, SHUFFLES, compile_vector_loops, vector_loops
from tilewright.target import Target
from tilewright.target.machine import nominal
from tilewright.target.rates import INSTRUCTIONS


def test_loops_run_on_every_level(level):
    memory = np.ones(8192, "u1")
    address = memory.ctypes.data + -memory.ctypes.data % 4096
    loops = compile_vector_loops(level)
    assert SHUFFLES in loops
    assert f"f32x{level.lanes(4)}{CHAIN}" in loops
    for loop in loops.values():
        loop.run(2, address)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("x86-64", ["mulps", "mulpd", "unpcklps"]),
        ("x86-64-v3", ["vfmadd", "vpmaddwd", "vphaddd", "vunpcklps"]),
        ("sapphirerapids", ["vfmadd213ph", "vpdpbusd", "vdpbf16ps"]),
        ("znver5", ["{vex}\tvpdpbusd", "vdpbf16ps"]),
        ("riscv64+v", ["vf"]),
        ("riscv64", ["fmadd"]),
    ],
)
def test_loops_have_the_instructions_of_a_target(name, expected):
    binding.initialize_native_asmparser()
    target = Target.named(name)
    text, symbols = vector_loops(target)
    assembly = assembly_of(text, target)
    for pattern in expected:
        assert re.search(pattern, assembly), pattern
    assert not any(count_spills(loop).reloads for loop in innermost_loops(assembly))
    assert all(v.name in symbols for v in nominal(target).vectors)


def test_sequences_that_only_an_arm_machine_can_assemble():
    target = Target.named("neoverse-v2")
    text, symbols = vector_loops(target)
    rates = [rate.name for rate in nominal(target).instructions]
    assert {*rates, SHUFFLES} <= symbols.keys()
    for sequence in ("sdot $0.4s, $1.16b, $1.16b", "smmla $0.4s", "bfdot $0.4s", "zip1 $0.4s"):
        assert sequence in text


def test_every_described_instruction_has_a_price():
    described = {name for name, family in FAMILIES.items() if family.requires}
    assert described <= INSTRUCTIONS.keys(), "give these a row in `target/rates.py`"


def test_shapes_of_described_instructions_are_their_own():
    for name, family in FAMILIES.items():
        if family.requires:
            axes = family.describe().meaning.axes
            products = np.prod([axis.extent for axis in axes])
            assert products == np.prod(INSTRUCTIONS[name].shape), name


@pytest.mark.parametrize("name", ["sapphirerapids", "graniterapids", "znver4", "neoverse-v2"])
def test_instructions_belong_to_targets_with_their_feature(name):
    target = Target.named(name)
    for rate in nominal(target).instructions:
        row = INSTRUCTIONS[rate.name]
        assert row.feature in target.features
        assert row.arch == target.arch
        assert 0 < rate.per_cycle <= target.core.fma_ports
    assert ("x86.amx.i8" in {r.name for r in nominal(target).instructions}) == (
        "amx-int8" in target.features
    )
