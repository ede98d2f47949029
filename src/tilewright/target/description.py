"""Hardware as data: everything the compiler knows about a machine is a value of this module.

A `Target` is found out (`Target.host()`), given by name (`Target.named("aarch64+dotprod")`) or read
from JSON; nothing else in the compiler asks the machine. It is frozen, and equal descriptions have
equal fingerprints. The fingerprint leaves out what may differ between two runs on one machine
(name, frequency estimate, measured numbers) or two releases of LLVM (features it newly reports).
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property
from typing import Any, Self

from tilewright.errors import Code, TargetError
from tilewright.target.isa import ARCHES, Masks
from tilewright.target.machine import MachineModel, nominal

__all__ = ["Bandwidth", "Cache", "Core", "Measured", "Rate", "Target"]

T004 = Code("T004", "this machine cannot run code for `{name}`: it lacks {missing}")
T005 = Code("T005", "a target description cannot be read: {problem}")


@dataclass(frozen=True, slots=True)
class Cache:
    """One level of data cache; `shared_by` cores use it together."""

    level: int
    size_bytes: int
    line_bytes: int = 64
    ways: int = 8
    shared_by: int = 1

    @property
    def share_bytes(self) -> int:
        """What one core may count on when all of them are busy."""
        return self.size_bytes // self.shared_by


@dataclass(frozen=True, slots=True)
class Core:
    """How wide one core is: ports of each kind, bytes that one port moves, latency in cycles."""

    fma_ports: int = 2
    fma_bytes: int = 32
    fma_latency: int = 5
    load_ports: int = 2
    load_bytes: int = 32
    store_ports: int = 1
    store_bytes: int = 32


@dataclass(frozen=True, slots=True)
class Rate:
    """A rate of one core alone, and of all cores together."""

    one: float
    all: float


@dataclass(frozen=True, slots=True)
class Bandwidth:
    """Sustained GB/s of one memory level (`L1` … `DRAM`), counting bytes read plus written."""

    level: str
    read: Rate
    copy: Rate
    triad: Rate


@dataclass(frozen=True, slots=True)
class Measured:
    """What calibration found: fp32 GFLOP/s of an FMA-only loop, and bandwidth per level."""

    fma_gflops: Rate
    bandwidth: tuple[Bandwidth, ...]

    def level(self, name: str) -> Bandwidth:
        """The numbers of a level; the slowest one stands in for a level that does not exist."""
        return next((b for b in self.bandwidth if b.level == name), self.bandwidth[-1])

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """The inverse of `dataclasses.asdict`; raises `TargetError` on anything else."""
        try:
            levels = tuple(_bandwidth_from(item) for item in data["bandwidth"])
            measured = cls(_rate_from(data["fma_gflops"]), levels)
        except (AttributeError, KeyError, TypeError, ValueError) as problem:
            raise _unreadable(f"measured numbers: {_reason(problem)}") from None
        if not levels:
            raise _unreadable("measured numbers: no memory level")
        return measured


@dataclass(frozen=True)
class Target:
    """A machine to compile for. `cpu` and `llvm_features` are in LLVM's words, ready to be used."""

    name: str
    triple: str
    arch: str
    cpu: str
    llvm_features: str
    features: frozenset[str]
    vector_bytes: int
    vector_registers: int
    fma: bool
    core: Core
    caches: tuple[Cache, ...]
    cores: int
    threads_per_core: int = 1
    frequency_ghz: float = field(default=2.5, compare=False)
    core_of: str = field(default="", compare=False)
    """The row of the table of processors that `core` comes from; see `known.closest`."""
    measured: Measured | None = field(default=None, compare=False)
    model: MachineModel | None = None
    """What costs ask, if something better than nominal figures is known; see `machine`."""

    @cached_property
    def machine(self) -> MachineModel:
        """What things cost here: measured where that is known, else nominal."""
        return self.model or nominal(self)

    @staticmethod
    def host() -> Target:
        """The machine this runs on, looked at once per process."""
        from tilewright.target.host import host

        return host()

    @staticmethod
    def named(text: str) -> Target:
        """A target by name, with features switched: `x86-64-v3`, `aarch64+dotprod,-fullfp16`."""
        from tilewright.target.named import parse

        return parse(text)

    def lanes(self, element_bytes: int) -> int:
        """How many elements of this size one vector register holds."""
        return max(1, self.vector_bytes // element_bytes)

    def masks(self, element_bytes: int) -> Masks | None:
        """How vectors of elements of this size are accessed in part; None if not at all."""
        return ARCHES[self.arch].masks_of(self.features, element_bytes)

    def cache(self, level: int) -> Cache:
        """The cache of this level; the last one stands in for a level that does not exist."""
        return next((c for c in self.caches if c.level == level), self.caches[-1])

    @property
    def fma_per_cycle(self) -> float:
        """Full-width vector multiply-adds that one core starts per cycle."""
        return self.core.fma_ports * min(1.0, self.core.fma_bytes / self.vector_bytes)

    @property
    def accumulators(self) -> int:
        """Independent vector accumulators needed to keep the multiply-add ports busy."""
        return math.ceil(self.fma_per_cycle * self.core.fma_latency)

    def peak_gflops(self, element_bytes: int = 4, cores: int = 1) -> float:
        """Peak of float multiply-adds: as a loop of them ran, else by the machine model."""
        if self.measured is not None:
            rate = self.measured.fma_gflops
            gflops = rate.one * cores if cores < self.cores else rate.all * cores / self.cores
            return gflops * 4 / element_bytes
        # Without FMA a multiply and an add share the ports.
        flops = (2 if self.fma else 1) * self.lanes(element_bytes) * self.machine.fma_per_cycle
        return flops * self.machine.ghz * cores

    def with_measured(self, measured: Measured | None) -> Target:
        """The same machine with calibrated numbers."""
        return replace(self, measured=measured)

    @cached_property
    def fingerprint(self) -> str:
        """16 hex digits that equal descriptions share, on every machine and in every run."""
        data = self.to_dict()
        for volatile in ("name", "frequency_ghz", "core_of", "measured", "model", "llvm_features"):
            del data[volatile]
        data["features"] = sorted(self.code_features)
        text = json.dumps(data, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    @property
    def code_features(self) -> frozenset[str]:
        """The features that change generated code; a host reports many that do not."""
        return self.features & ARCHES[self.arch].needs.keys()

    def missing_on(self, machine: Target) -> str:
        """What code for this target needs and `machine` lacks; nothing if it can run there."""
        if self.arch != machine.arch:
            return f"the architecture {self.arch}"
        return ", ".join(sorted(self.code_features - machine.features))

    def require_runs_on(self, machine: Target) -> None:
        """Code for this target must be able to run on `machine`."""
        missing = self.missing_on(machine)
        if not missing:
            return
        hint = "for another machine: `tilewright compile --target`, or a build until `object`"
        if self.arch == machine.arch:
            hint = "build for `host`, or for a lower level such as `x86-64-v2`"
        here = f"{machine.cpu} ({machine.arch})"
        facts = {"missing": missing, "name": self.name, "this machine": here}
        raise TargetError(T004, facts, hint=hint)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {**asdict(self), "features": sorted(self.features)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """The inverse of `to_dict`; raises `TargetError` on anything else."""
        try:
            values = {f.name: data[f.name] for f in fields(cls)}
            values["features"] = frozenset(map(str, data["features"]))
            values["core"] = Core(**data["core"])
            values["caches"] = tuple(Cache(**item) for item in data["caches"])
        except (KeyError, TypeError) as problem:
            raise _unreadable(_reason(problem)) from None
        if data["measured"] is not None:
            values["measured"] = Measured.from_dict(data["measured"])
        if data["model"] is not None:
            values["model"] = MachineModel.from_dict(data["model"])
        target = cls(**values)
        target._require_sensible()
        return target

    def _require_sensible(self) -> None:
        counts: list[object] = [
            self.vector_bytes,
            self.vector_registers,
            self.cores,
            self.threads_per_core,
        ]
        counts += asdict(self.core).values()
        counts += [value for cache in self.caches for value in asdict(cache).values()]
        if any(not isinstance(count, int) or count < 1 for count in counts):
            raise _unreadable("a size or a count is not a positive integer")
        if self.arch not in ARCHES:
            raise _unreadable(f"unknown architecture `{self.arch}`")
        if not self.caches:
            raise _unreadable("no cache")

    def __str__(self) -> str:
        caches = ", ".join(f"L{c.level} {c.size_bytes >> 10} KiB" for c in self.caches)
        return f"{self.name} ({self.cpu}, {self.vector_bytes * 8}-bit vectors, {caches})"


def _unreadable(problem: str) -> TargetError:
    hint = "start from what `Target.to_dict` writes, and change single entries"
    return TargetError(T005, {"problem": problem}, hint=hint)


def _reason(problem: Exception) -> str:
    return f"no entry {problem}" if isinstance(problem, KeyError) else str(problem)


def _rate_from(data: Mapping[str, Any]) -> Rate:
    return Rate(float(data["one"]), float(data["all"]))


def _bandwidth_from(data: Mapping[str, Any]) -> Bandwidth:
    rates = (_rate_from(data[kind]) for kind in ("read", "copy", "triad"))
    return Bandwidth(str(data["level"]), *rates)
