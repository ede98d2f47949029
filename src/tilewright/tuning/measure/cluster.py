"""What a dispatcher needs of a cluster: nodes with their fingerprints, workers on them, news.

A worker has a node for itself and measures there with a runner of its own, so that nothing that a
candidate does goes beyond the processes of that runner. What may happen to a worker itself is the
infrastructure's fault, and comes as `Lost`. `ray_cluster.py` is the one for Ray; tests have one
that breaks as they please.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from tilewright.records.record import target_key
from tilewright.tuning.measure.trial import Job, Outcome

__all__ = ["Answered", "Cluster", "Kind", "Lost", "News", "Node", "Opened"]

Worker = int
"""Workers are numbered, and a number is never used again: late news of a lost one is known."""


@dataclass(frozen=True)
class Node:
    """A machine that is alive: its place, its kind of processor, how many it may use.

    `key` is what times depend on (`records.record.target_key`). `problem` says why nothing can be
    measured there.
    """

    id: str
    address: str
    key: str = ""
    processors: int = 0
    problem: str = ""


@dataclass(frozen=True)
class Kind:
    """What a job asks of a node: its processor, since times hold there only, and enough of them."""

    cpu: str
    threads: int = 1

    @classmethod
    def of(cls, job: Job) -> Kind:
        """What a job asks for."""
        return cls(target_key(job.target), job.threads)

    def has(self, node: Node) -> bool:
        """Whether times of a node hold for such jobs."""
        return not node.problem and node.key == self.cpu and node.processors >= self.threads


@dataclass(frozen=True)
class Opened:
    """A worker has its node, and takes trials."""

    worker: Worker


@dataclass(frozen=True)
class Answered:
    """A trial is done."""

    worker: Worker
    number: int
    outcome: Outcome


@dataclass(frozen=True)
class Lost:
    """A worker is gone, with everything that it had not answered.

    `problem` is an exception of its runner, None where its process or its node ended.
    """

    worker: Worker
    detail: str
    problem: Exception | None = None


News = Opened | Answered | Lost


class Cluster(Protocol):
    """Nodes that measure."""

    def nodes(self) -> list[Node]:
        """Those that are alive now."""

    def open(self, worker: Worker, node: Node) -> None:
        """Ask for a lease on a node; `Opened` follows as soon as nobody else has one."""

    def submit(self, worker: Worker, number: int, job: Job, points: Mapping[str, object]) -> None:
        """Let a worker measure."""

    def news(self, timeout_s: float) -> list[News]:
        """What has happened since; waits until there is something, or the time is over."""

    def forget(self, worker: Worker) -> None:
        """Nobody waits for trials any more that this worker has not begun."""

    def end(self, worker: Worker) -> None:
        """Give a node back, whatever happens there."""

    def close(self) -> None:
        """End everything that was started."""
