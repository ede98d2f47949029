"""Whether the machine was ours while we measured: CPU time that other processes took meanwhile."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

__all__ = ["Clock"]

TICKS: Final = os.sysconf("SC_CLK_TCK")
IDLE_FIELDS: Final = (3, 4)  # idle and iowait, among the figures of the first line of /proc/stat
COUNTED_FIELDS: Final = 8  # the ones after that repeat guest time


@dataclass(frozen=True, slots=True)
class Clock:
    """Seconds so far: on the wall, of CPU time on the machine, and of that our own."""

    wall: float
    busy: float
    own: float

    @classmethod
    def read(cls, pids: Iterable[int]) -> Self:
        """Now; `pids` are our children that still run, the ended ones are known to the system."""
        line = Path("/proc/stat").read_text(encoding="utf-8").partition("\n")[0]
        figures = [int(word) / TICKS for word in line.split()[1 : 1 + COUNTED_FIELDS]]
        busy = sum(figures) - sum(figures[i] for i in IDLE_FIELDS)
        # The first four figures: user and system time, our own and that of ended children.
        return cls(time.monotonic(), busy, sum(os.times()[:4]) + sum(map(_cpu_seconds, pids)))

    def foreign_since(self, start: Clock) -> float:
        """CPUs that others kept busy on average; time stolen by a hypervisor counts."""
        elapsed = self.wall - start.wall
        foreign = (self.busy - start.busy) - (self.own - start.own)
        return max(0.0, foreign / elapsed) if elapsed > 0 else 0.0


def _cpu_seconds(pid: int) -> float:
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except OSError:
        return 0.0
    fields = text.rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / TICKS  # its own, and that of children it waited for
