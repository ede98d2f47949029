"""What must be known of a machine before its times or its kernels are used on another one."""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.records.record import FORMAT, target_key
from tilewright.runtime.keys import llvm_version
from tilewright.runtime.pool import usable_cpus
from tilewright.target import Target
from tilewright.version import __version__

__all__ = ["Fingerprint", "Versions", "fingerprint", "problem_of", "versions"]


@dataclass(frozen=True)
class Versions:
    """What makes kernels of points: with equal ones, the same points are the same kernel."""

    tilewright: str
    records: int
    llvm: str


def versions() -> Versions:
    """Those of this process."""
    return Versions(__version__, FORMAT, llvm_version())


@dataclass(frozen=True)
class Fingerprint:
    """A machine: what times on it depend on, its processors, its versions."""

    key: str
    processors: int
    versions: Versions


def fingerprint() -> Fingerprint:
    """That of the machine on which this runs."""
    return Fingerprint(target_key(Target.host()), usable_cpus(), versions())


def problem_of(found: Fingerprint) -> str:
    """Why nothing can be built or measured there for this process; nothing if it can."""
    here, there = versions(), found.versions
    if here == there:
        return ""
    if here.llvm != there.llvm:
        return f"it has llvmlite {there.llvm}, and this is {here.llvm}"
    return f"it has tilewright {there.tilewright}, and this is {here.tilewright}"
