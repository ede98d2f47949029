"""Copies between layouts as tasks: what a conversion costs is measured, and not only predicted.

Whoever chooses layouts pays for a value that is written in one form and read in another. The copy
is a kernel like any other, whose recipe (`schedule/recipes/transpose.py`) has loops to tune. Its
best time is a record of the conversion: of values of one type from one form into another.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tilewright.graph.ir import Value
from tilewright.layouts.alone import conversion_alone
from tilewright.layouts.forms import Form
from tilewright.layouts.timing import converted_kind
from tilewright.model.site_kernels import conversion_kernel
from tilewright.records import Record, conversion_record
from tilewright.schedule.measured import conversion_key
from tilewright.target import Target
from tilewright.tuning.stopping import Patience
from tilewright.tuning.task import Task, variant_of

if TYPE_CHECKING:
    from tilewright.tuning.tuner import Tuned

__all__ = ["FEW", "PATIENCE", "ConversionTask", "conversion_records", "conversion_tasks"]

FEW: Final = 8
"""Trials of a conversion: its loops differ little, and there may be many of them."""
PATIENCE: Final = Patience(FEW, 0.05)

Copy = tuple[Value, Form, Form]


@dataclass(frozen=True)
class ConversionTask:
    """Values of one kind, copied from one form into another, both by name."""

    kind: str
    before: str
    after: str
    task: Task

    @property
    def key(self) -> str:
        """What its records are found by."""
        return conversion_key(self.kind, self.before, self.after)


def conversion_tasks(
    copies: Iterable[Copy], target: Target, known: Collection[str] = ()
) -> Iterator[ConversionTask]:
    """The tasks of copies, each distinct one once; without those whose keys are `known`."""
    seen = set(known)
    for value, before, after in copies:
        kind = converted_kind(value)
        names = before.plain.name(value.rank), after.exact_name(value.rank)
        kernel = None
        if (key := conversion_key(kind, *names)) not in seen:
            kernel = conversion_kernel(value, before, after)
        seen.add(key)
        if kernel is None:
            continue
        variant = variant_of(kernel, target, conversion_alone(value, before, after).nodes)
        if variant.decisions:
            task = Task((variant,), f"{kind}: {names[0]} → {names[1]}")
            yield ConversionTask(kind, *names, task)


def conversion_records(
    tasks: Sequence[ConversionTask], tuned: Sequence[Tuned], threads: int
) -> list[Record]:
    """What the copies take at best, of those that were measured."""
    return [
        conversion_record(
            own.kind, own.before, own.after, own.task.target, threads, time_ns=each.best_ns
        )
        for own, each in zip(tasks, tuned, strict=True)
        if each.tuner.reference_ns
    ]
