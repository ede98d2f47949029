"""What a report is about: the kernels of a planned model, their records, layouts, the machine.

Nothing is compiled, run or measured here: times come from the database alone, and work (operations
and bytes) from the graph.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tilewright.graph.sizes import evaluate_size, variables
from tilewright.graph.structure import graph_key
from tilewright.layouts.show import Overview, overview
from tilewright.model.listing import labels_of
from tilewright.model.standalone import USUAL_SIZE
from tilewright.model.work import flops_of, moved_bytes
from tilewright.records import Database, Record
from tilewright.records.kinds import verdicts
from tilewright.records.record import target_key, workload_key
from tilewright.report.kernels import Kernel, Tried, best_so_far, searches
from tilewright.schedule.measured import MODEL, model_key
from tilewright.target import Target
from tilewright.version import __version__

if TYPE_CHECKING:
    from tilewright.model.kernel_plan import Planned
    from tilewright.model.kernels import KernelTask
    from tilewright.pipeline.model import PlannedModel

__all__ = ["About", "Failure", "Report", "Roofs", "gather"]


@dataclass(frozen=True)
class About:
    """Of what a report is: the model's name, the processor's, threads of a run, the database."""

    model: str
    cpu: str
    threads: int
    database: Path


@dataclass(frozen=True)
class Roofs:
    """What the machine can do at most with these threads, by its model."""

    gflops: float
    bandwidths: tuple[tuple[str, float], ...]
    """GB/s of each level of memory, the nearest first."""

    @classmethod
    def of(cls, target: Target, threads: int) -> Roofs:
        """Multiply-adds of all threads, and what each level gives to all of them."""
        machine, cores = target.machine, max(1, min(threads, target.cores))
        flops = (2 if target.fma else 1) * target.lanes(4) * machine.fma_per_cycle
        levels = machine.shared_by(cores).levels
        rates = ((level.name, level.read * machine.ghz * cores) for level in levels)
        return cls(flops * machine.ghz * cores, tuple(rates))


@dataclass(frozen=True)
class Failure:
    """Trials of a kernel that came to the same end."""

    kernel: int
    outcome: str
    detail: str
    count: int


@dataclass(frozen=True)
class Report:
    """Everything that the page shows. `places` are the kernels of sites, by their numbers."""

    about: About
    target: str
    kernels: tuple[Kernel, ...]
    roofs: Roofs
    layouts: Overview
    places: Mapping[int, int] = field(hash=False)
    verdict: Record | None = None
    """The whole model beside its draft, as it was measured last."""
    version: str = __version__
    written: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="minutes"))

    @cached_property
    def measured(self) -> list[Kernel]:
        """Kernels with times, those that take longest first."""
        known = (kernel for kernel in self.kernels if kernel.is_measured)
        return sorted(known, key=lambda kernel: -kernel.runs * kernel.drafted_ns)

    @cached_property
    def before_ns(self) -> float:
        """All runs of the kernels that have times, as drafted."""
        return sum(kernel.runs * kernel.drafted_ns for kernel in self.kernels)

    @cached_property
    def after_ns(self) -> float:
        """The same with the best records."""
        return sum(kernel.runs * kernel.best_ns for kernel in self.kernels)

    @property
    def gain(self) -> float:
        """How many times as fast as drafted."""
        return self.before_ns / self.after_ns if self.after_ns else 1.0

    @property
    def trials(self) -> int:
        """Records about these kernels on this machine, with as many threads."""
        return sum(len(kernel.trials) for kernel in self.kernels)

    @cached_property
    def curves(self) -> dict[str, list[float]]:
        """The best so far over measured trials, for each search."""
        return {by: best_so_far(self.kernels, by) for by in searches(self.kernels)}

    @cached_property
    def failures(self) -> list[Failure]:
        """What was tried in vain, the most frequent first."""
        counts = Counter(
            (kernel.number, trial.outcome, trial.detail)
            for kernel in self.kernels
            for trial in kernel.trials
            if trial.ratio is None
        )
        ranked = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
        return [Failure(*about, count) for about, count in ranked]

    def share(self, kernel: Kernel) -> float:
        """The part of the time as drafted that all runs of a kernel take."""
        return kernel.runs * kernel.drafted_ns / self.before_ns if self.before_ns else 0.0

    def to_dict(self) -> dict[str, Any]:
        """Data of JSON."""
        return {
            **asdict(self.about),
            "database": str(self.about.database),
            "target": self.target,
            "version": self.version,
            "written": self.written,
            "trials": self.trials,
            "before_ns": self.before_ns or None,
            "after_ns": self.after_ns or None,
            "gain": self.gain,
            "model_before_ns": None if self.verdict is None else self.verdict.reference_ns,
            "model_after_ns": None if self.verdict is None else self.verdict.time_ns,
            "kernels": [{**k.to_dict(), "share": self.share(k)} for k in self.kernels],
            "curves": self.curves,
            "roofs": {"gflops": self.roofs.gflops, "gb_per_s": dict(self.roofs.bandwidths)},
            "layouts": self.layouts.to_dict(),
            "kernels_of_sites": {str(site): kernel for site, kernel in self.places.items()},
            "failures": [asdict(failure) for failure in self.failures],
        }


def gather(model: PlannedModel, about: About, target: Target, database: Database | None) -> Report:
    """A model as it was planned, with what a database knows of its kernels."""
    chosen, planned = model.chosen, model.planned
    choice = chosen.choice
    layouts = overview(chosen.graph, chosen.settings, choice.sites, exact=choice.exact)
    kernels = _kernels(planned, database, target, about.threads)
    roofs, places = Roofs.of(target, about.threads), _places(planned, layouts)
    verdict = _verdict(model, database, target, about.threads)
    return Report(about, target_key(target), kernels, roofs, layouts, places, verdict)


def _kernels(
    planned: Planned, database: Database | None, target: Target, threads: int
) -> tuple[Kernel, ...]:
    runs = Counter(task.key for task in planned.tasks.values())
    steps = {task.key: step for step, task in planned.tasks.items()}
    found: list[Kernel] = []
    for number, (task, labels) in enumerate(zip(planned.kernels, labels_of(planned), strict=True)):
        key = workload_key(task.workload(target))
        nodes = steps[task.key].group.nodes
        work = flops_of(nodes), moved_bytes(nodes, task.params)
        sizes = dict.fromkeys(variables(work), USUAL_SIZE)
        flops, moved = (evaluate_size(own, sizes) for own in work)
        kernel = Kernel(number, labels, key, runs[task.key], flops, moved)
        if database is not None:
            where = key, target_key(target), threads
            trials = tuple(map(Tried.of, database.records(*where)))
            best = next((r for r in database.best(*where) if r.pays), None)
            kernel = replace(kernel, trials=trials, best=best)
        found.append(kernel)
    return tuple(found)


def _verdict(
    planned: PlannedModel, database: Database | None, target: Target, threads: int
) -> Record | None:
    """The last measurement of the whole model, if there is one."""
    if database is None:
        return None
    known = verdicts(database.of_kind(MODEL, target_key(target), threads))
    return known.get(model_key(graph_key(planned.chosen.graph)))


def _places(planned: Planned, layouts: Overview) -> dict[int, int]:
    """The kernel that each site has become; a view is none, and some share one with others."""
    numbers = {task.key: k for k, task in enumerate(planned.kernels)}
    writers: dict[str, KernelTask] = {
        value.name: task for step, task in planned.tasks.items() for value in step.outputs
    }
    made = ((row.site, writers.get(row.value)) for row in layouts.sites if not row.is_view)
    return {site: numbers[task.key] for site, task in made if task is not None}
