"""The limit of memory: streams beyond the caches that take their turns like every other engine."""

from __future__ import annotations

from functools import partial
from typing import Final

import numpy as np

from benchmarks.engines import NOTHING, Runner, Variants
from benchmarks.kinds import AnyWorkload
from benchmarks.models.workload import ModelWorkload
from benchmarks.numbers import Arrays
from tilewright.llvm.calibrate import MemoryStream, Team
from tilewright.llvm.probes import STREAMS, Stream, compile_probes
from tilewright.target import Target

PEER: Final = False
COUNTED_BYTES: Final = 10**9

_streams: dict[str, MemoryStream] = {}


def start(threads: int) -> dict[str, str]:
    target = Target.host()
    probes, team = compile_probes(target), Team(threads)
    _streams.update({s.name: MemoryStream(target, probes, team, s) for s in STREAMS})
    return {"target": str(target)}


def variants(workload: AnyWorkload) -> Variants:
    """All streams, of which the fastest counts: only where weights come from memory in each run."""
    if not isinstance(workload, ModelWorkload) or not workload.model.streams_weights:
        return NOTHING
    return {stream.name: partial(_build, stream) for stream in STREAMS}


def _build(stream: Stream, _: Arrays) -> Runner:
    """A turn of the stream, scaled to 10⁹ bytes."""
    nothing = np.zeros(0, "f4")
    rate = _streams[stream.name].run
    return Runner(lambda: COUNTED_BYTES / 1e9 / rate(), lambda: nothing, self_timed=True)
