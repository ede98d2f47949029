"""The limit of the machine: an FMA-only loop that takes its turns like every other engine."""

from __future__ import annotations

from typing import Final

import numpy as np

from benchmarks.engines import NOTHING, Runner, Variants
from benchmarks.numbers import Arrays
from benchmarks.workloads import Workload
from tilewright.llvm.calibrate import FmaPeak, Team
from tilewright.llvm.probes import compile_probes
from tilewright.target import Target

PEER: Final = False

_peaks: list[FmaPeak] = []


def start(threads: int) -> dict[str, str]:
    target = Target.host()
    _peaks.append(FmaPeak(target, compile_probes(target), Team(threads)))
    return {"target": str(target)}


def variants(workload: Workload) -> Variants:
    return {"fma": _build} if workload.group != "compile" else NOTHING


def _build(_: Arrays) -> Runner:
    """A turn of the loop, scaled to 10⁹ operations."""
    (peak,) = _peaks
    nothing = np.zeros(0, "f4")
    return Runner(lambda: 1 / peak.run(), lambda: nothing, self_timed=True, flops=10**9)
