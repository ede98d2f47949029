"""Which nodes measure: a lease on every one that fits, and another one in the place of the lost.

A node has one worker at most. One whose worker was lost gets the next, unless several were lost
there in a row without an answer in between. Nodes that join later are found when somebody looks,
every few seconds. Without any worker for a job there is an error, at once where no node could have
one (U052), else after a while in which others may give a node back (U053) or one may join (U054).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from tilewright.errors import Code, TuneError
from tilewright.tuning.measure.cluster import Cluster, Kind, Node

__all__ = ["LOOK_S", "Fleet", "Member", "lost_error", "require_node", "taken_error"]

LOOK_S: Final = 2.0
"""How often the nodes of a cluster are listed."""

MOST_LOSSES: Final = 3
"""A node that has lost as many workers in a row is left alone."""

U052 = Code("U052", "no node of the cluster has the processor `{cpu}`")
U053 = Code("U053", "all nodes with the processor `{cpu}` are taken by others")
U054 = Code("U054", "all workers with the processor `{cpu}` are lost")


@dataclass
class Member:
    """A worker with its node: whether it has the lease, which trials it has, when it last spoke."""

    worker: int
    node: Node
    is_open: bool = False
    flight: set[int] = field(default_factory=set)
    heard_s: float = 0.0


class Fleet:
    """The workers that there are."""

    def __init__(
        self, cluster: Cluster, wait_s: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.members: dict[int, Member] = {}
        self._cluster, self._wait_s, self._clock = cluster, wait_s, clock
        self._nodes: list[Node] = []
        self._looked_s = -LOOK_S
        self._next = 0
        self._losses: dict[str, int] = {}
        self._details: dict[str, list[str]] = {}
        self._without_s: dict[Kind, float] = {}

    def require(self, kind: Kind) -> None:
        """Lease every node of a kind; the errors of the module where there is none."""
        self._look()
        asked = {member.node.id for member in self.members.values()}
        for node in self._nodes:
            is_sound = self._losses.get(node.id, 0) < MOST_LOSSES
            if is_sound and node.id not in asked and kind.has(node):
                self._open(node)
        members = self.of_kind(kind)
        if any(member.is_open for member in members):
            self._without_s.pop(kind, None)
            return
        if not members and kind.cpu not in self._details:
            require_node(self._nodes, kind)
        since = self._without_s.setdefault(kind, self._clock())
        if self._clock() - since >= self._wait_s:
            raise self._hopeless(kind, members)

    def of_kind(self, kind: Kind) -> list[Member]:
        """Workers on nodes of a kind, those without a lease as yet included."""
        return [member for member in self.members.values() if kind.has(member.node)]

    def opened(self, worker: int) -> None:
        """A worker has its lease."""
        if member := self.members.get(worker):
            member.is_open, member.heard_s = True, self._clock()

    def submitted(self, member: Member, number: int) -> None:
        """A worker has been given a trial."""
        if not member.flight:
            member.heard_s = self._clock()
        member.flight.add(number)

    def answered(self, worker: int, number: int) -> bool:
        """Whether an answer is one that somebody waits for: not from a worker that was given up."""
        member = self.members.get(worker)
        if member is None or number not in member.flight:
            return False
        member.flight.remove(number)
        member.heard_s = self._clock()
        self._losses.pop(member.node.id, None)
        return True

    def lost(self, worker: int, detail: str) -> set[int]:
        """Give a worker up; the trials that it had."""
        member = self.members.pop(worker, None)
        if member is None:
            return set()
        self._cluster.end(worker)
        self._losses[member.node.id] = self._losses.get(member.node.id, 0) + 1
        details = self._details.setdefault(member.node.key, [])
        details.append(f"{member.node.address}: {detail}")
        self._looked_s = self._clock() - LOOK_S  # who is left is asked for at once
        return member.flight

    def forgive(self) -> None:
        """Workers were lost by the fault of a trial: no node is to blame."""
        self._losses.clear()

    def silent(self, silence_s: float) -> list[int]:
        """Workers that have had trials for so long without answering one."""
        before = self._clock() - silence_s
        return [m.worker for m in self.members.values() if m.flight and m.heard_s < before]

    def forget(self) -> None:
        """Nobody waits for the trials in flight."""
        for member in self.members.values():
            if member.flight:
                member.flight.clear()
                self._cluster.forget(member.worker)

    def _look(self) -> None:
        if self._clock() - self._looked_s >= LOOK_S:
            self._nodes = self._cluster.nodes()
            self._looked_s = self._clock()

    def _open(self, node: Node) -> None:
        self.members[self._next] = Member(self._next, node)
        self._cluster.open(self._next, node)
        self._next += 1

    def _hopeless(self, kind: Kind, members: Sequence[Member]) -> TuneError:
        if members:
            return taken_error(kind, (member.node for member in members), self._wait_s)
        return lost_error(kind, self._details[kind.cpu][-3:])


def require_node(nodes: Sequence[Node], kind: Kind) -> None:
    """U052 unless some node is of a kind."""
    if any(kind.has(node) for node in nodes):
        return
    found = [f"{n.address} ({n.problem or f'{n.key}, {n.processors} processors'})" for n in nodes]
    facts = {"cpu": kind.cpu, "threads": kind.threads}
    hint = "times of one processor say nothing about another: add such a node, or tune for theirs"
    raise TuneError(U052, {**facts, "found": ", ".join(found) or "no node"}, hint=hint)


def taken_error(kind: Kind, nodes: Iterable[Node], waited_s: float) -> TuneError:
    """What is said when nobody gives a node back."""
    places = ", ".join(node.address for node in nodes)
    facts = {"cpu": kind.cpu, "nodes": places, "waited": f"{waited_s:g} s"}
    hint = "one search at a time has a node: wait for the other, or add a node"
    return TuneError(U053, facts, hint=hint)


def lost_error(kind: Kind, details: Sequence[str]) -> TuneError:
    """What is said when no worker is left."""
    facts = {"cpu": kind.cpu, "last": "; ".join(details)}
    hint = "what was measured is kept: start nodes again (`ray status`), then go on"
    return TuneError(U054, facts, hint=hint)
