"""What the machine under us is: LLVM's opinion, checked against what the kernel says.

LLVM knows the processor's name and features; a hypervisor may hide some of them, so that only what
the kernel reports as well is believed. Without llvmlite (a compiled artefact needs none) the kernel
alone decides and the name is that of the instruction-set level. What sysfs does not tell is taken
from the table of known machines: from the row of the processor's name, else from the one that is
closest by vendor and features. `root` exists for tests: it stands for `/`.
"""

from __future__ import annotations

import functools
import os
import platform
import re
from dataclasses import dataclass, replace
from pathlib import Path

from tilewright.errors import TargetError, UserError
from tilewright.options import O001, host_target
from tilewright.target.description import Cache, Target
from tilewright.target.isa import ARCHES, X86, Arch
from tilewright.target.known import KNOWN, Known, closest, find, level_of

__all__ = ["cpu_name", "detect", "host", "present", "stand_in", "this_machine", "without_row"]

_MACHINES = {"AMD64": "x86_64", "arm64": "aarch64"}
_VENDORS = {"GenuineIntel": "intel", "AuthenticAMD": "amd", "HygonGenuine": "amd", "0x61": "apple"}
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


@dataclass(frozen=True, slots=True)
class LlvmView:
    """LLVM's name of the processor, the default triple, and the state of each feature."""

    cpu: str
    triple: str
    features: dict[str, bool]


@functools.cache
def host() -> Target:
    """The machine this process runs on (the cores that its affinity allows), or its stand-in."""
    name = host_target()
    return this_machine() if name is None else stand_in(name, this_machine())


@functools.cache
def this_machine() -> Target:
    """The machine this process runs on, whatever is to stand for it."""
    return detect(Path("/"), platform.machine(), _ask_llvm(), _allowed_cpus())


def stand_in(name: str, machine: Target) -> Target:
    """A named target in place of `machine`: its instructions, core and caches, on our processors.

    TILEWRIGHT_TARGET names it. What code for the target needs, the machine must have: everything
    that is compiled runs here, so that the test suite can be run as on a lesser or differently
    built machine.
    """
    from tilewright.target.named import parse

    try:
        target = parse(name, lambda: machine)
        target.require_runs_on(machine)
    except TargetError as error:
        facts = {
            "variable": "TILEWRIGHT_TARGET",
            "expected": "a target whose code this machine can run",
            "found": repr(name),
            "problem": str(error).partition("\n")[0],
        }
        hint = "name a lower level such as `x86-64-v2`, or unset it for this machine as it is"
        raise UserError(O001, facts, hint=hint) from None
    return replace(
        target,
        name="host",
        triple=machine.triple,
        cores=machine.cores,
        threads_per_core=machine.threads_per_core,
        frequency_ghz=machine.frequency_ghz,
    )


def without_row(target: Target) -> Target:
    """The same machine, if its processor were not in the table: the closest row takes its place."""
    row = KNOWN[target.core_of]
    other = closest(row.arch, target.features, row.vendor, without=row.cpu)
    return replace(target, core=other.core, core_of=other.cpu, measured=None, model=None)


@functools.cache
def present() -> tuple[str, frozenset[str]]:
    """The architecture of this machine and its features, as far as they change code.

    It asks the kernel alone, which is quick: an artefact is loaded without LLVM. Where the kernel
    does not tell, `this_machine` decides. What stands for the machine does not matter here.
    """
    machine = platform.machine()
    name = _MACHINES.get(machine, machine)
    if name not in ARCHES:
        return name, frozenset()
    seen = _kernel_features(ARCHES[name], _cpuinfo(Path("/")))
    return name, ARCHES[name].closure(seen) if seen else this_machine().code_features


def cpu_name() -> str:
    """What the processor of this machine calls itself; "" where the system does not say."""
    return _cpuinfo(Path("/")).get("model name", "")


def detect(root: Path, machine: str, llvm: LlvmView | None, cpus: tuple[int, ...]) -> Target:
    """Describe a machine from its file tree, LLVM's view of it and the usable logical CPUs."""
    # An unknown architecture is treated as a plain 64-bit one: correct code, modest speed.
    arch = ARCHES.get(_MACHINES.get(machine, machine), X86)
    info = _cpuinfo(root)
    features, llvm_features = _features(arch, info, llvm)
    level = level_of(arch, features)
    row = (find(llvm.cpu) if llvm else None) or closest(arch, features, _vendor(arch, info))
    siblings = _siblings(root, cpus)
    cores = max(1, len(set(siblings.values())))
    vector_bytes, vector_registers = arch.vector_shape(features)
    return Target(
        name="host",
        triple=llvm.triple if llvm else arch.triple,
        arch=arch.name,
        cpu=llvm.cpu if llvm else level.cpu,
        llvm_features=llvm_features,
        features=features,
        vector_bytes=vector_bytes,
        vector_registers=vector_registers,
        fma=arch.has_fma(features),
        core=row.core,
        caches=_caches(root, cpus[0], row, cores, max(map(len, siblings.values()))),
        cores=cores,
        threads_per_core=max(1, len(cpus) // cores),
        frequency_ghz=_frequency_ghz(root, cpus[0], info),
        core_of=row.cpu,
    )


def _ask_llvm() -> LlvmView | None:
    try:
        from llvmlite import binding
    except ImportError:
        return None
    features = {name: bool(on) for name, on in binding.get_host_cpu_features().items()}
    return LlvmView(binding.get_host_cpu_name(), binding.get_default_triple(), features)


def _allowed_cpus() -> tuple[int, ...]:
    if hasattr(os, "sched_getaffinity"):
        return tuple(sorted(os.sched_getaffinity(0)))
    return tuple(range(os.cpu_count() or 1))


def _cpuinfo(root: Path) -> dict[str, str]:
    """The fields of the first processor in /proc/cpuinfo; empty where there is none."""
    first = _read(root / "proc/cpuinfo").partition("\n\n")[0]
    pairs = (line.partition(":") for line in first.splitlines())
    return {key.strip(): value.strip() for key, _, value in pairs}


def _features(
    arch: Arch, info: dict[str, str], llvm: LlvmView | None
) -> tuple[frozenset[str], str]:
    """The usable features, and the list for LLVM which switches off all that is hidden."""
    seen = _kernel_features(arch, info)
    if llvm is None:
        features = arch.closure(seen) if seen else level_of(arch, frozenset()).features
        return features, ",".join(f"+{feature}" for feature in sorted(features))
    features = frozenset(name for name, on in llvm.features.items() if on)
    if not features:  # LLVM does not report features on every system
        features = level_of(arch, frozenset()).features | seen
    if seen:
        for hidden in (features & arch.needs.keys()) - seen:
            features = arch.without(features, hidden)
    every = sorted(features | llvm.features.keys())
    return features, ",".join(f"{'+' if name in features else '-'}{name}" for name in every)


def _kernel_features(arch: Arch, info: dict[str, str]) -> frozenset[str]:
    """Features that the kernel reports, in LLVM's names; empty where it reports none."""
    if arch.name == "riscv64":
        letters, *extensions = info.get("isa", "").lower().split("_")
        words = {*letters.removeprefix("rv64"), *extensions}
    else:
        words = set((info.get("flags") or info.get("Features") or "").split())
    known = {name for name in arch.needs if arch.kernel_names.get(name, name) in words}
    # The kernel lists `fp` and `asimd` for AArch64, but never what x86-64 always has.
    return frozenset(known) | (arch.closure(["sse2"]) if known and arch is X86 else frozenset())


def _vendor(arch: Arch, info: dict[str, str]) -> str:
    """Who designed the core; most of those who license AArch64 build cores by Arm."""
    name = info.get("vendor_id") or info.get("CPU implementer", "")
    return _VENDORS.get(name, "arm" if name and arch.name == "aarch64" else "")


def _siblings(root: Path, cpus: tuple[int, ...]) -> dict[int, frozenset[int]]:
    """The logical CPUs that share a core, for each of ours."""
    base = root / "sys/devices/system/cpu"
    lists = {
        cpu: _cpu_list(_read(base / f"cpu{cpu}/topology/thread_siblings_list")) for cpu in cpus
    }
    return {cpu: found or frozenset({cpu}) for cpu, found in lists.items()}


def _caches(root: Path, cpu: int, row: Known, cores: int, smt: int) -> tuple[Cache, ...]:
    """Data caches from sysfs; levels that it does not list come from the table."""
    folder = root / f"sys/devices/system/cpu/cpu{cpu}/cache"
    entries = (_cache(index, smt) for index in sorted(folder.glob("index*")))
    found = {cache.level: cache for cache in entries if cache is not None}
    assumed = {cache.level: cache for cache in row.caches(cores)}
    return tuple(cache for _, cache in sorted({**assumed, **found}.items()))


def _cache(index: Path, smt: int) -> Cache | None:
    if _read(index / "type") not in {"Data", "Unified"}:
        return None
    level, size = _number(_read(index / "level")), _size(_read(index / "size"))
    if not level or not size:
        return None
    cache = Cache(level, size)
    sharing = len(_cpu_list(_read(index / "shared_cpu_list")))
    return replace(
        cache,
        line_bytes=_number(_read(index / "coherency_line_size")) or cache.line_bytes,
        ways=_number(_read(index / "ways_of_associativity")) or cache.ways,
        shared_by=max(1, sharing // smt),
    )


def _frequency_ghz(root: Path, cpu: int, info: dict[str, str]) -> float:
    """The highest frequency if it is known, else the present one; an estimate either way."""
    text = _read(root / f"sys/devices/system/cpu/cpu{cpu}/cpufreq/cpuinfo_max_freq")
    if khz := _number(text):
        return khz / 1e6
    try:
        return float(info["cpu MHz"]) / 1e3 or 2.5
    except (KeyError, ValueError):
        return 2.5


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def _number(text: str) -> int:
    return int(text) if text.isdecimal() else 0


def _size(text: str) -> int:
    form = re.fullmatch(r"(\d+)([KMG]?)", text)
    return int(form[1]) * _UNITS[form[2]] if form else 0


def _cpu_list(text: str) -> frozenset[int]:
    """`0-3,8` → {0, 1, 2, 3, 8}."""
    ranges = re.findall(r"(\d+)(?:-(\d+))?", text)
    return frozenset(cpu for lo, hi in ranges for cpu in range(int(lo), int(hi or lo) + 1))
