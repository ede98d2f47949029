"""Points are believed inside of the model: the best few of each kernel run there beside the draft.

A kernel alone meets other caches than inside of a model, and the best of many times that were
measured is too good to be true (the winner's curse). So candidates of all kernels run inside of the
model, one of each kernel at once, by turns with the draft. What is not the fastest there is
withdrawn: it has a record that says so. What was chosen runs beside the draft once more.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from tilewright.model.module import Module
from tilewright.records import Database, Record, Records
from tilewright.records.record import SLOWER, target_key
from tilewright.schedule.source import ScheduleSource
from tilewright.target import Target
from tilewright.tuning.task import Variant
from tilewright.tuning.whole_model import kernel_times

__all__ = ["Verification"]

PAYS: Final = 0.998
"""Time of a kernel in the model by that of its draft, above which its points are withdrawn."""
CLOSE: Final = 1.003
"""What is this near to the fastest is as fast."""
LEAST, MOST = 3, 8
"""Points of each kernel that run inside of the model, by how much time there is."""
COMPILING, COMPARING = 0.6, 0.2
"""Of the time that there is, for compiling the model with them, and for each comparison."""
ALL: Final = 1 << 30


@dataclass(frozen=True)
class Verification:
    """A model that is compiled with one source of schedules or another, and what it is fed."""

    database: Database
    target: Target
    threads: int
    compiled: Callable[[ScheduleSource], Module]
    feeds: dict[str, Any]

    def run(self, kernels: Sequence[Variant], seconds: float) -> None:
        """Withdraw what is slower inside of the model, in about so many seconds."""
        modules, tried = self._compiled_with(kernels, COMPILING * seconds)
        if not tried:
            return
        times = kernel_times(modules, self.feeds, COMPARING * seconds)
        self.database.add(
            record
            for kernel in kernels
            if kernel.symbol in times and kernel.workload in tried
            for record in self._withdrawn(kernel, tried[kernel.workload], times[kernel.symbol])
        )
        self._confirm(kernels, modules[0], COMPARING * seconds)

    def _compiled_with(
        self, kernels: Sequence[Variant], seconds: float
    ) -> tuple[list[Module], Mapping[str, list[Record]]]:
        """The drafted model, one with the best candidate of each kernel, one with the next …

        A kernel with fewer candidates than others has its last one again.
        """
        known, begin = Records(self.database, self.target, self.threads), time.perf_counter()
        best = {k.workload: own for k in kernels if (own := self._usable(k, MOST))}
        modules = [self.compiled(known.with_winners({}))]
        for rank in range(max(map(len, best.values()), default=0)):
            if rank >= LEAST and time.perf_counter() - begin > seconds:
                break
            chosen = {w: own[min(rank, len(own) - 1)] for w, own in best.items()}
            modules.append(self.compiled(known.with_winners(chosen)))
        return modules, {w: own[: len(modules) - 1] for w, own in best.items()}

    def _withdrawn(
        self, kernel: Variant, tried: Sequence[Record], times: Sequence[float]
    ) -> list[Record]:
        """Of the points that were tried, in the order of their gains alone, those not to be used.

        All there are, if none of these is faster than the draft; else those before the fastest: of
        what stays, the record with the greatest gain is used.
        """
        drafted, *others = times[: 1 + len(tried)]
        fastest = min(range(len(others)), key=others.__getitem__)
        if others[fastest] > drafted * PAYS:
            return self._all(kernel)
        worse = (k for k in range(fastest) if others[k] > others[fastest] * CLOSE)
        return [self._slower(kernel, tried[k]) for k in worse]

    def _confirm(self, kernels: Sequence[Variant], drafted: Module, seconds: float) -> None:
        """What was the fastest of several has to be faster than the draft in a run of its own."""
        known = Records(self.database, self.target, self.threads)
        used = [kernel for kernel in kernels if kernel.workload in known.winners]
        if not used:
            return
        times = kernel_times([drafted, self.compiled(known)], self.feeds, seconds)
        for kernel in used:
            before, now = times.get(kernel.symbol, (1.0, 0.0))
            if now > before * PAYS:
                self.database.add(self._all(kernel))

    def _usable(self, kernel: Variant, count: int) -> list[Record]:
        """The best records of a kernel that may be used, the best first."""
        about = kernel.workload, target_key(self.target), self.threads
        return self.database.usable(*about, count=count)

    def _all(self, kernel: Variant) -> list[Record]:
        """Nothing stays: what is next best alone was never looked at inside of the model."""
        return [self._slower(kernel, record) for record in self._usable(kernel, ALL)]

    def _slower(self, kernel: Variant, record: Record) -> Record:
        points = record.points_for(kernel.kernel.program)
        workload = kernel.kernel.workload(kernel.target)
        return Record.of(workload, self.threads, points, label=record.label, outcome=SLOWER)
