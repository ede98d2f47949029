"""Targets by name and their switches."""

from __future__ import annotations

import pytest

from tests.expect import raises_code
from tilewright.target import Target, names
from tilewright.target.isa import ARCHES


@pytest.mark.parametrize("name", names())
def test_every_name_gives_a_consistent_target(name):
    target = Target.named(name)
    arch = ARCHES[target.arch]
    assert (target.vector_bytes, target.vector_registers) == arch.vector_shape(target.features)
    assert arch.closure(target.code_features) <= target.features
    assert [cache.level for cache in target.caches] == sorted(c.level for c in target.caches)
    sizes = [cache.size_bytes for cache in target.caches]
    assert sizes == sorted(sizes)
    assert target.accumulators <= target.vector_registers
    assert target.peak_gflops() > 1


@pytest.mark.parametrize(
    ("name", "vector_bytes", "registers", "fma"),
    [
        ("x86-64-v2", 16, 16, False),
        ("x86-64-v3", 32, 16, True),
        ("x86-64-v4", 64, 32, True),
        ("x86-64-v3,-avx", 16, 16, False),
        ("x86-64-v3,-fma", 32, 16, False),
        ("aarch64", 16, 32, True),
        ("aarch64+dotprod", 16, 32, True),
        ("riscv64", 8, 32, True),
        ("riscv64+v", 16, 32, True),
        ("riscv64+v+zvl256b", 32, 32, True),
    ],
)
def test_vectors_follow_from_features(name, vector_bytes, registers, fma):
    target = Target.named(name)
    assert (target.vector_bytes, target.vector_registers, target.fma) == (
        vector_bytes,
        registers,
        fma,
    )


def test_a_feature_brings_what_it_stands_on():
    target = Target.named("x86-64-v2+avx512vnni")
    assert {"avx", "avx2", "fma", "f16c", "avx512f", "avx512vnni"} <= target.features
    assert "+avx512f" in target.llvm_features.split(",")


def test_removing_a_feature_removes_what_stands_on_it():
    target = Target.named("x86-64-v4,-avx2")
    assert not any(feature.startswith("avx512") for feature in target.features)
    assert "avx" in target.features
    assert {"-avx2", "-avx512f"} <= set(target.llvm_features.split(","))


def test_switches_may_be_written_in_either_form():
    plus, comma = Target.named("aarch64+dotprod+bf16"), Target.named("aarch64,dotprod,+bf16")
    assert plus.features == comma.features
    assert plus.fingerprint == comma.fingerprint


def test_named_rejects_unknown_name_with_close_matches():
    with raises_code("T001", text="did you mean `x86-64-v3`"):
        Target.named("x86_64_v3")


def test_named_rejects_name_that_resembles_nothing():
    with raises_code("T001", text="known: host, x86-64"):
        Target.named("qqq")


def test_named_rejects_unknown_feature():
    with raises_code("T002", text="`dotprod`", facts={"arch": "aarch64"}):
        Target.named("aarch64+dotprd")


@pytest.mark.parametrize("text", ["", "+avx", "x86-64-v3 avx2", "x86-64-v3,,", "a;b"])
def test_named_rejects_malformed_text(text):
    with raises_code("T003"):
        Target.named(text)


def test_code_for_more_features_does_not_run_here():
    with raises_code("T004", text="avx512f"):
        Target.named("x86-64-v4").require_runs_on(Target.named("x86-64-v3"))
    with raises_code("T004", text="the architecture aarch64"):
        Target.named("aarch64").require_runs_on(Target.named("x86-64-v3"))
    Target.named("x86-64-v2").require_runs_on(Target.named("x86-64-v3"))


def complaints_of_llvm(capfd, triple, cpu, features):
    """LLVM only warns about words that it does not know, on standard error."""
    from llvmlite import binding

    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    target = binding.Target.from_triple(triple)
    machine = target.create_target_machine(cpu=cpu, features=features)
    machine.emit_assembly(binding.parse_assembly("define void @f() { ret void }"))
    return capfd.readouterr().err


@pytest.mark.parametrize("name", names())
def test_llvm_knows_every_named_target(capfd, name):
    target = Target.named(name)
    assert complaints_of_llvm(capfd, target.triple, target.cpu, target.llvm_features) == ""


@pytest.mark.parametrize("arch", ARCHES.values(), ids=ARCHES)
def test_llvm_knows_every_feature_of_the_tables(capfd, arch):
    features = ",".join(f"+{feature}" for feature in arch.needs)
    assert complaints_of_llvm(capfd, arch.triple, "", features) == ""
    assert "not a recognized" in complaints_of_llvm(capfd, arch.triple, "", "+flying")
