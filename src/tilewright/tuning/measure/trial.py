"""What is asked of a runner, and what it answers.

A `Job` is a kernel of a model with everything that its trials share; a `Trial` is one choice of
points for it. A `Runner` builds trials ahead while it measures others, and answers each with an
`Outcome`: times by turns with the drafted kernel, or what went wrong. Nothing that a candidate does
(crash, hang, eat memory, return wrong values) is an exception here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol

from tilewright.model.kernels import KernelTask
from tilewright.records.record import OK
from tilewright.target import Target

__all__ = ["BUILD", "CRASH", "FAILURES", "MEMORY", "OK", "TIMEOUT", "WRONG", "Job", "Outcome"]
__all__ += ["Runner", "Trial"]

BUILD: Final = "build"
"""The points cannot be followed, or the compiler refused what they make."""
CRASH: Final = "crash"
"""A signal: an illegal instruction, an access beyond an array, an assertion."""
TIMEOUT: Final = "timeout"
MEMORY: Final = "memory"
WRONG: Final = "wrong"
"""The results are not those of the reference."""
FAILURES: Final = (BUILD, CRASH, TIMEOUT, MEMORY, WRONG)
"""What a trial may come to beside `OK`; none of them is tried again."""


@dataclass(frozen=True)
class Job:
    """A kernel to be measured: what all its trials share.

    `threads` is how many run it. `sizes` are symbolic sizes of the graph by name. Constants are
    read from so many copies in turns that `cold_bytes` of them pass through the caches in between:
    zero where the model's weights stay in the cache, more where each run finds its own gone.
    """

    task: KernelTask
    target: Target
    threads: int = 1
    sizes: Mapping[str, int] = field(default_factory=dict, hash=False)
    cold_bytes: int = 0


@dataclass(frozen=True)
class Trial:
    """Points of recipes by the last blocks of their groups; what they leave out is drafted.

    Without any it is the draft, which is measured as it was built for the others to be compared
    with. `tag` belongs to whoever asks.
    """

    job: Job
    points: Mapping[str, object] = field(hash=False)
    tag: object = None


@dataclass(frozen=True)
class Outcome:
    """What came of a trial: the time of a run beside that of the drafted kernel in the same turns.

    `spread` is the half width of the middle half of the turns by their median. `detail` is what a
    failure said.
    """

    status: str = OK
    time_ns: float = 0.0
    reference_ns: float = 0.0
    spread: float = 0.0
    detail: str = ""
    build_s: float = 0.0
    measure_s: float = 0.0

    @property
    def is_ok(self) -> bool:
        """Whether it was measured."""
        return self.status == OK

    @property
    def ratio(self) -> float:
        """Its time by that of the drafted kernel; infinite for a failure."""
        return self.time_ns / self.reference_ns if self.is_ok else float("inf")


class Runner(Protocol):
    """Something that builds and measures; one at a time has the processors for itself."""

    def run(self, trials: Iterable[Trial]) -> Iterator[tuple[Trial, Outcome]]:
        """Answer trials as they are done; a few more than are answered are asked for ahead."""

    def close(self) -> None:
        """End everything that was started."""
