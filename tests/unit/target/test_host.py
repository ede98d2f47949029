"""Host detection from made-up machines: a file tree, LLVM's view, and the allowed CPUs."""

from __future__ import annotations

import os

import pytest

from tilewright.target import Cache, Target
from tilewright.target.host import LlvmView, detect
from tilewright.target.isa import X86
from tilewright.target.known import KNOWN

V3_FLAGS = "fpu sse sse2 pni ssse3 sse4_1 sse4_2 popcnt avx avx2 fma f16c bmi1 bmi2 abm movbe"


def llvm_view(cpu="znver3", **changes):
    on = {*KNOWN["x86-64-v3"].features, "64bit"}
    features = dict.fromkeys(on, True) | {"avx512f": False} | changes
    return LlvmView(cpu, "x86_64-unknown-linux-gnu", features)


@pytest.fixture
def machine(tmp_path):
    """Writes files of a machine: `machine({"proc/cpuinfo": "..."})` returns its root."""

    def write(files):
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text + "\n")
        return tmp_path

    return write


def cache_files(cpu, index, kind, level, size, shared, ways="8"):
    folder = f"sys/devices/system/cpu/cpu{cpu}/cache/index{index}"
    return {
        f"{folder}/type": kind,
        f"{folder}/level": level,
        f"{folder}/size": size,
        f"{folder}/shared_cpu_list": shared,
        f"{folder}/coherency_line_size": "64",
        f"{folder}/ways_of_associativity": ways,
    }


def test_the_real_host_is_described():
    host = Target.host()
    assert host is Target.host()
    assert host.cores * host.threads_per_core <= len(os.sched_getaffinity(0))
    host.require_runs_on(host)


def test_features_hidden_by_the_hypervisor_are_not_believed(machine):
    root = machine({"proc/cpuinfo": f"flags : {V3_FLAGS.replace('avx2 ', '')}"})
    target = detect(root, "x86_64", llvm_view(), (0,))
    assert "avx2" not in target.features
    assert "-avx2" in target.llvm_features.split(",")
    assert "fma" in target.features
    assert target.cpu == "znver3"


def test_features_the_kernel_does_not_name_are_kept(machine):
    root = machine({"proc/cpuinfo": f"flags : {V3_FLAGS}"})
    target = detect(root, "x86_64", llvm_view(), (0,))
    assert {"64bit", "avx2"} <= target.features
    assert "-avx512f" in target.llvm_features.split(",")


def test_without_llvm_the_kernel_decides(machine):
    root = machine({"proc/cpuinfo": f"model name : some CPU\nflags : {V3_FLAGS}\n\nflags : none"})
    target = detect(root, "x86_64", None, (0, 1))
    assert target.cpu == "x86-64-v3"
    assert target.features == KNOWN["x86-64-v3"].features
    assert target.vector_bytes == 32


def test_an_empty_machine_gets_modest_numbers(machine):
    target = detect(machine({}), "x86_64", None, (0,))
    assert target.cpu == "x86-64"
    assert target.vector_bytes == 16
    assert [cache.level for cache in target.caches] == [1, 2, 3]
    assert target.frequency_ghz == 2.5


def test_caches_come_from_sysfs(machine):
    files = {
        **cache_files(2, 0, "Data", "1", "48K", "2,6", ways="12"),
        **cache_files(2, 1, "Instruction", "1", "32K", "2,6"),
        **cache_files(2, 2, "Unified", "2", "2048K", "2,6"),
        **cache_files(2, 3, "Unified", "3", "30M", "0-7", ways="15"),
        "sys/devices/system/cpu/cpu2/topology/thread_siblings_list": "2,6",
        "sys/devices/system/cpu/cpu6/topology/thread_siblings_list": "2,6",
    }
    target = detect(machine(files), "x86_64", llvm_view(), (2, 6))
    assert (target.cores, target.threads_per_core) == (1, 2)
    assert target.caches == (
        Cache(1, 48 << 10, 64, 12, 1),
        Cache(2, 2 << 20, 64, 8, 1),
        Cache(3, 30 << 20, 64, 15, 4),
    )


@pytest.mark.parametrize("size", ["", "0K", "many", "-1K"])
def test_a_cache_that_sysfs_garbles_comes_from_the_table(machine, size):
    files = cache_files(0, 0, "Data", "1", size, "0")
    target = detect(machine(files), "x86_64", llvm_view(), (0,))
    assert target.cache(1) == KNOWN["znver3"].caches(1)[0]


def test_an_arm_machine_is_understood_without_llvm(machine):
    root = machine({"proc/cpuinfo": "Features : fp asimd asimddp asimdhp atomics"})
    target = detect(root, "aarch64", None, (0,))
    assert target.arch == "aarch64"
    assert {"neon", "dotprod", "fullfp16", "lse"} <= target.features
    assert "sve" not in target.features
    assert target.vector_bytes == 16


def test_a_riscv_machine_is_understood_without_llvm(machine):
    root = machine({"proc/cpuinfo": "isa : rv64imafdcv_zba_zvl256b\nmmu : sv48"})
    target = detect(root, "riscv64", None, (0,))
    assert {"m", "d", "v", "zba", "zvl256b"} <= target.features
    assert target.vector_bytes == 32


def test_frequency_prefers_the_maximum(machine):
    files = {"proc/cpuinfo": "cpu MHz : 1200.5"}
    assert detect(machine(files), "x86_64", None, (0,)).frequency_ghz == pytest.approx(1.2005)
    files["sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq"] = "3500000"
    assert detect(machine(files), "x86_64", None, (0,)).frequency_ghz == pytest.approx(3.5)


SAPPHIRE = dict.fromkeys([*KNOWN["sapphirerapids"].features, "avx512f"], True)
SAPPHIRE_FLAGS = " ".join(X86.kernel_names.get(name, name) for name in SAPPHIRE)


@pytest.mark.parametrize(
    ("vendor", "row"),
    [("GenuineIntel", "emeraldrapids"), ("AuthenticAMD", "znver5"), ("Somebody", "x86-64-v4")],
)
def test_a_processor_that_no_table_knows_takes_the_closest_row(machine, vendor, row):
    root = machine({"proc/cpuinfo": f"vendor_id : {vendor}\nflags : {SAPPHIRE_FLAGS}"})
    for llvm in (llvm_view("futurelake", **SAPPHIRE), None):
        target = detect(root, "x86_64", llvm, (0,))
        assert target.core_of == row
        assert target.core == KNOWN[row].core
        assert target.cpu == (llvm.cpu if llvm else "x86-64-v4")


def test_a_name_in_the_table_decides_whatever_the_features_are(machine):
    root = machine({"proc/cpuinfo": f"vendor_id : GenuineIntel\nflags : {SAPPHIRE_FLAGS}"})
    assert detect(root, "x86_64", llvm_view("znver4", **SAPPHIRE), (0,)).core_of == "znver4"
    assert detect(root, "x86_64", llvm_view("raptorlake"), (0,)).core_of == "alderlake"


@pytest.mark.parametrize(
    ("implementer", "row"), [("0x41", "neoverse-v2"), ("0x61", "apple-m4"), ("0xc0", "neoverse-v2")]
)
def test_an_unlisted_arm_processor_takes_the_closest_row(machine, implementer, row):
    words = "fp asimd asimddp asimdhp atomics crc32 asimdrdm asimdfhm bf16 i8mm sve sve2"
    text = f"Features : {words}\nCPU implementer : {implementer}"
    target = detect(machine({"proc/cpuinfo": text}), "aarch64", None, (0,))
    assert target.core_of == row
