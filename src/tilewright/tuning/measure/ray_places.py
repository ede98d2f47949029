"""Builds on nodes of a Ray cluster that are there to build: a task of Ray for each, on a processor.

This runs on the node that measures. Ray repeats nothing: a task whose node ends is built by who
asked for it (`elsewhere.py`). The processes that build stay from one task to the next.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from functools import cache, partial
from typing import Any, Final

from tilewright.tuning.measure.build import ProcessBuilder, Request
from tilewright.tuning.measure.elsewhere import Made, made
from tilewright.tuning.measure.limits import Limits
from tilewright.tuning.measure.process import Process
from tilewright.tuning.measure.ray_nodes import RayNodes, on_node

__all__ = ["RayPlaces"]

LOOK_S: Final = 2.0
"""How often nodes are listed."""
TICK_S: Final = 0.5
"""How often a build that goes on is asked whether anybody still waits for it, and its node."""
PATIENCE_S: Final = 60.0
"""For a build, with the start of its processes, and for builds of others before it."""


class RayPlaces:
    """Nodes with the label of builders, as `Places`."""

    def __init__(self, ray: Any) -> None:
        self._ray = ray
        self._nodes = RayNodes(ray, build=True)
        self._lock = threading.Lock()
        self._looked_s = -LOOK_S
        self._cpus: dict[str, int] = {}
        self._asked: Counter[str] = Counter()

    def room(self) -> int:
        """Processors of all builders."""
        with self._lock:
            self._look()
            return sum(self._cpus.values())

    def ask(self, request: Request, is_over: Callable[[], bool]) -> Made | None:
        """Have a kernel built on the node with most room."""
        node = self._taken()
        if node is None:
            return None
        try:
            ref = on_node(self._ray, node, _built, num_cpus=1, max_retries=0).remote(request)
            return self._answer(ref, node, is_over)
        except self._ray.exceptions.RayError:
            return None
        finally:
            with self._lock:
                self._asked[node] -= 1

    def _taken(self) -> str | None:
        with self._lock:
            self._look()
            node = max(self._cpus, key=self._free, default=None)
            if node is not None:
                self._asked[node] += 1
            return node

    def _free(self, node: str) -> int:
        return self._cpus[node] - self._asked[node]

    def _answer(self, ref: Any, node: str, is_over: Callable[[], bool]) -> Made | None:
        deadline = time.monotonic() + PATIENCE_S
        while not self._ray.wait([ref], timeout=TICK_S)[0]:
            if is_over() or time.monotonic() > deadline or not self._is_there(node):
                self._ray.cancel(ref)
                return None
        found: Made = self._ray.get(ref)
        return found

    def _is_there(self, node: str) -> bool:
        with self._lock:
            self._look()
            return node in self._cpus

    def _look(self) -> None:
        if time.monotonic() - self._looked_s >= LOOK_S:
            sound = [node.id for node in self._nodes.look() if not node.problem]
            self._cpus = {id_: self._nodes.cpus(id_) for id_ in sound}
            self._looked_s = time.monotonic()


def _built(request: Request) -> Made:
    """On the node that builds."""
    return made(request, _builder().answer)


@cache
def _builder() -> ProcessBuilder:
    """For as long as Ray keeps this process."""
    limits = Limits()
    return ProcessBuilder(limits, partial(Process, limits=limits))
