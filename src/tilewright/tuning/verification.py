"""Points are believed inside of the model: the best few of each kernel run there beside the draft.

A kernel alone meets other caches than inside of a model, and the best of many times that were
measured is too good to be true (the winner's curse). So candidates of all kernels run inside of the
model, one of each kernel at once, by turns with the draft. What would be used before the fastest of
them is withdrawn: it has a record that says so. What was chosen runs beside the draft once more.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
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
MOST: Final = 9
"""Points of each kernel that run inside of the model, if there is time."""
AT_ONCE: Final = 3
"""Of them in one comparison with the draft; there is always time for one."""
COMPARING: Final = 0.2
"""Of the time that there is, for all these comparisons, and for the last one."""


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
        tried = {k.workload: own for k in kernels if (own := self._usable(k, MOST))}
        if not tried:
            return
        known = Records(self.database, self.target, self.threads)
        drafted = self.compiled(known.with_winners({}))
        times = self._times(drafted, known, tried, seconds)
        self.database.add(
            record
            for kernel in kernels
            if kernel.symbol in times and kernel.workload in tried
            for record in self._withdrawn(kernel, tried[kernel.workload], times[kernel.symbol])
        )
        self._confirm(kernels, drafted, COMPARING * seconds)

    def _times(
        self,
        drafted: Module,
        known: Records,
        tried: Mapping[str, Sequence[Record]],
        seconds: float,
    ) -> dict[str, list[float]]:
        """Of each kernel by its symbol: times of its candidates by that of the draft.

        The first module has the best candidate of each kernel, the second one the next … A kernel
        with fewer candidates than others has its last one again. A few modules are compared at
        once: each holds the weights of the model.
        """
        ranks, begin, done = max(map(len, tried.values())), time.perf_counter(), 0
        found: dict[str, list[float]] = {}
        for first in range(0, ranks, AT_ONCE):
            if first and time.perf_counter() - begin > (1 - COMPARING) * seconds:
                break
            modules = [drafted]
            for rank in range(first, min(first + AT_ONCE, ranks)):
                chosen = {w: own[min(rank, len(own) - 1)] for w, own in tried.items()}
                modules.append(self.compiled(known.with_winners(chosen)))
            share = COMPARING * seconds * AT_ONCE / MOST
            for symbol, times in kernel_times(modules, self.feeds, share).items():
                found.setdefault(symbol, []).extend(t / times[0] for t in times[1:])
            done += len(modules) - 1
        return {symbol: times for symbol, times in found.items() if len(times) == done}

    def _withdrawn(
        self, kernel: Variant, tried: Sequence[Record], times: Sequence[float]
    ) -> list[Record]:
        """Of the points that were tried, in the order of their gains alone, those not to be used.

        All there are, if none of these is faster than the draft; else those before the fastest: of
        what stays, the record with the greatest gain is used.
        """
        others = times[: len(tried)]
        fastest = min(range(len(others)), key=others.__getitem__)
        if others[fastest] > PAYS:
            return [self._all(kernel, tried[0].label)]
        enough = min(PAYS, others[fastest] * CLOSE)
        return [_slower(tried[k]) for k in range(fastest) if others[k] > enough]

    def _confirm(self, kernels: Sequence[Variant], drafted: Module, seconds: float) -> None:
        """What was the fastest of several has to be faster than the draft in a run of its own."""
        known = Records(self.database, self.target, self.threads).unjudged()
        used = [kernel for kernel in kernels if kernel.workload in known.winners]
        if not used:
            return
        times = kernel_times([drafted, self.compiled(known)], self.feeds, seconds)
        for kernel in used:
            before, now = times.get(kernel.symbol, (1.0, 0.0))
            if now > before * PAYS:
                self.database.add(self._all(kernel, known.winners[kernel.workload].label))

    def _usable(self, kernel: Variant, count: int) -> list[Record]:
        """The best records of a kernel that may be used, the best first."""
        about = kernel.workload, target_key(self.target), self.threads
        return self.database.usable(*about, count=count)

    def _all(self, kernel: Variant, label: str) -> Record:
        """Nothing stays: what is next best alone was never looked at inside of the model."""
        workload = kernel.kernel.workload(kernel.target)
        detail = "none of its points is faster inside of the model"
        return Record.of(workload, self.threads, label=label, outcome=SLOWER, detail=detail)


def _slower(record: Record) -> Record:
    """That the points of a record are not to be used."""
    return replace(
        record,
        outcome=SLOWER,
        time_ns=0.0,
        reference_ns=0.0,
        spread=0.0,
        detail="inside of the model",
        when=datetime.now(UTC).isoformat(),
    )
