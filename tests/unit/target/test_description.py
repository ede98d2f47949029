"""Targets as values: JSON, fingerprints, derived figures."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace

import pytest

from tests.expect import raises_code
from tilewright.target import Bandwidth, Measured, Rate, Target, names
from tilewright.target.known import LLVM_CPU, SAME_CORE

MEASURED = Measured(
    fma_gflops=Rate(90.0, 170.0),
    bandwidth=(
        Bandwidth("L1", Rate(200.0, 400.0), Rate(150.0, 300.0), Rate(160.0, 320.0)),
        Bandwidth("DRAM", Rate(20.0, 30.0), Rate(15.0, 25.0), Rate(16.0, 26.0)),
    ),
)


@pytest.mark.parametrize("name", names())
def test_json_roundtrip(name):
    target = Target.named(name).with_measured(MEASURED)
    again = Target.from_dict(json.loads(json.dumps(target.to_dict())))
    assert again == target
    assert again.measured == MEASURED
    assert again.fingerprint == target.fingerprint


@pytest.mark.parametrize(
    ("name", "small", "large", "is_free"),
    [
        ("x86-64-v2", False, False, False),
        ("x86-64-v3", False, True, False),
        ("x86-64-v4", True, True, True),
        ("aarch64", False, False, False),
    ],
)
def test_vectors_that_are_accessed_in_part(name, small, large, is_free):
    bytes_, floats = (Target.named(name).masks(size) for size in (1, 4))
    assert (bytes_ is not None, floats is not None) == (small, large)
    assert floats is None or floats.is_free == is_free


def test_fingerprints_differ_between_targets():
    products = [name for name in LLVM_CPU if name in SAME_CORE]
    targets = [Target.named(name) for name in names() if name not in {"host", *products}]
    targets += [Target.named("aarch64+dotprod"), Target.named("x86-64-v3,-fma")]
    assert len({target.fingerprint for target in targets}) == len(targets)


def test_a_product_is_the_same_target_as_its_processor():
    assert Target.named("graviton3").fingerprint == Target.named("neoverse-v1").fingerprint
    assert Target.named("graviton3").cpu == "neoverse-v1"


def test_fingerprint_ignores_what_varies_between_runs():
    target = Target.named("x86-64-v3")
    other = replace(target, name="mine", frequency_ghz=1.0, measured=MEASURED)
    assert other.fingerprint == target.fingerprint
    assert replace(target, cores=64).fingerprint != target.fingerprint


def test_fingerprint_is_the_same_in_every_process():
    code = "from tilewright.target import Target; print(Target.named('x86-64-v4').fingerprint)"
    runs = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for seed in ("1", "2")
    }
    assert runs == {Target.named("x86-64-v4").fingerprint}


def test_peak_is_computed_until_it_is_measured():
    target = replace(Target.named("x86-64-v3"), frequency_ghz=3.0, cores=2)
    assert target.peak_gflops() == 2 * 8 * 2 * 3.0
    assert target.peak_gflops(element_bytes=8, cores=2) == 2 * 4 * 2 * 3.0 * 2
    model = replace(target.machine, ghz=4.0, fma_per_cycle=1.5)
    assert replace(target, model=model).peak_gflops(cores=2) == 2 * 8 * 1.5 * 4.0 * 2
    assert target.with_measured(MEASURED).peak_gflops() == 90.0
    assert target.with_measured(MEASURED).peak_gflops(cores=2) == 170.0
    assert target.with_measured(MEASURED).peak_gflops(element_bytes=8) == 45.0


def test_wide_vectors_on_narrow_ports_issue_less_often():
    assert Target.named("znver4").fma_per_cycle == 1.0
    assert Target.named("znver5").fma_per_cycle == 2.0
    assert Target.named("znver1").fma_per_cycle == 1.0


def test_missing_levels_are_stood_in_for():
    target = Target.named("aarch64")
    assert target.cache(3) == target.cache(2)
    assert MEASURED.level("L2").level == "DRAM"


@pytest.mark.parametrize(
    "damage",
    [
        {"caches": None},
        {"caches": []},
        {"core": {"fma_ports": 2, "wings": 2}},
        {"vector_bytes": "32"},
        {"cores": 0},
        {"arch": "vax"},
        {"measured": {"fma_gflops": 3}},
        {"measured": {"fma_gflops": {"one": 1, "all": 1}, "bandwidth": []}},
    ],
)
def test_from_dict_rejects_damaged_descriptions(damage):
    data = {**Target.named("x86-64-v3").to_dict(), **damage}
    with raises_code("T005"):
        Target.from_dict(data)


def test_from_dict_rejects_missing_fields():
    with raises_code("T005", text="triple"):
        Target.from_dict({"name": "x"})
