"""Nodes of a Ray cluster: how it is reached, who is there, and an actor for each lease.

A lease on a node is all its processors, as Ray counts them: while one search measures there, Ray
starts nothing else, and another search waits in Ray's queue. It ends with the process that has
it. Actors are never restarted and calls never repeated by Ray, which cannot know whether a
candidate is to blame; `dispatch.py` does that.

Whoever reaches a Ray cluster runs code on it. So tokens are on unless RAY_AUTH_MODE says otherwise,
no dashboard is started, a cluster that is started here listens on the loopback interface only,
and one on another machine is not spoken to without tokens. Tokens are no encryption.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Final

from tilewright.tuning.measure.cluster import Answered, Lost, News, Node, Opened
from tilewright.tuning.measure.ray_connection import Connection
from tilewright.tuning.measure.ray_nodes import RayNodes, on_node, text_of
from tilewright.tuning.measure.ray_worker import MakeRunner, NodeWorker
from tilewright.tuning.measure.sending import to_bytes
from tilewright.tuning.measure.trial import Job

__all__ = ["RayCluster"]

PROBE_S: Final = 60.0
"""How long the first nodes may take to say what they are; later ones are not waited for."""

CONTROLS: Final = 4
"""Calls of an actor beside those that measure."""

CLOSE_S: Final = 15.0


class RayCluster:
    """The nodes of Ray as a `Cluster`."""

    def __init__(self, connection: Connection, make_runner: MakeRunner, ahead: int) -> None:
        self._connection, self._ray = connection, connection.ray
        self._make_runner, self._ahead = make_runner, ahead
        self._actors: dict[int, Any] = {}
        self._opened: set[int] = set()
        self._calls: dict[Any, tuple[int, int | None]] = {}
        """References of what was asked: of which worker, and the trial; None for a lease."""
        self._jobs: dict[int, tuple[Job, int, Any]] = {}
        self._nodes = RayNodes(self._ray, build=False)
        self._wait_s = PROBE_S

    def nodes(self) -> list[Node]:
        """Nodes with processors to be leased, as soon as they have said what they are."""
        wait_s, self._wait_s = self._wait_s, 0.0
        return self._nodes.look(wait_s)

    def open(self, worker: int, node: Node) -> None:
        """Ask Ray for an actor with all processors of a node."""
        count = self._nodes.cpus(node.id) or 1
        about = {"max_concurrency": self._ahead + CONTROLS, "max_restarts": 0}
        kind = on_node(self._ray, node.id, NodeWorker, num_cpus=count, **about)
        actor = self._actors[worker] = kind.remote(self._make_runner)
        self._calls[actor.begun.remote()] = (worker, None)

    def submit(self, worker: int, number: int, job: Job, points: Mapping[str, object]) -> None:
        """Call an actor; a job goes to each node once."""
        _, known, ref = self._jobs.get(id(job)) or self._put(job)
        call = self._actors[worker].measure.remote(number, known, [ref], to_bytes(dict(points)))
        self._calls[call] = (worker, number)

    def news(self, timeout_s: float) -> list[News]:
        """What has been answered, by Ray or by an actor."""
        if not self._calls:
            time.sleep(timeout_s)
            return []
        calls = list(self._calls)
        self._ray.wait(calls, num_returns=1, timeout=timeout_s)
        done, _ = self._ray.wait(calls, num_returns=len(calls), timeout=0)
        return [self._event(call) for call in done]

    def forget(self, worker: int) -> None:
        """Empty the row of an actor."""
        self._drop_calls(worker, is_opening_kept=True)
        self._actors[worker].forget.remote()

    def end(self, worker: int) -> None:
        """Kill an actor; its processes end with it."""
        self._drop_calls(worker)
        self._ray.kill(self._actors.pop(worker))

    def close(self) -> None:
        """Let runners end what they started, then leave the cluster, or end it if it is ours."""
        try:
            ours = self._actors.keys() & self._opened  # others wait for a lease, and answer nothing
            closing = [self._actors[worker].close.remote() for worker in ours]
            if closing:
                self._ray.wait(closing, num_returns=len(closing), timeout=CLOSE_S)
            for worker in list(self._actors):
                self.end(worker)
        finally:  # also of somebody who has waited long enough
            self._connection.close()

    def _put(self, job: Job) -> tuple[Job, int, Any]:
        self._jobs[id(job)] = (job, len(self._jobs), self._ray.put(to_bytes(job)))
        return self._jobs[id(job)]

    def _event(self, call: Any) -> News:
        worker, number = self._calls.pop(call)
        try:
            value = self._ray.get(call)
        except self._ray.exceptions.RayTaskError as problem:
            cause = getattr(problem, "cause", None)
            cause = cause if isinstance(cause, Exception) else problem
            return Lost(worker, text_of(problem), cause)
        except self._ray.exceptions.RayError as problem:
            return Lost(worker, text_of(problem))
        if number is not None:
            return Answered(worker, number, value)
        self._opened.add(worker)
        return Opened(worker)

    def _drop_calls(self, worker: int, *, is_opening_kept: bool = False) -> None:
        for call, (whose, number) in list(self._calls.items()):
            if whose == worker and not (is_opening_kept and number is None):
                del self._calls[call]
