"""Who is in a Ray cluster: nodes with processors, what they are for, and what each says it is.

Nodes measure. Those that were started with the label `tilewright=builds` do not: they build kernels
for those that do (`ray_places.py`). So a search never waits for its own builds to get a lease, and
never keeps another one from getting it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from tilewright.tuning.measure.cluster import Node
from tilewright.tuning.measure.fingerprint import fingerprint, problem_of

__all__ = ["RayNodes", "is_builder", "on_node", "text_of"]

LABEL: Final = "tilewright"
BUILDS: Final = "builds"


class RayNodes:
    """Nodes that measure, or those that build."""

    def __init__(self, ray: Any, *, build: bool) -> None:
        self._ray, self._build = ray, build
        self._rows: dict[str, Mapping[str, Any]] = {}
        self._probes: dict[str, Any] = {}
        self._nodes: dict[str, Node] = {}

    def look(self, wait_s: float = 0.0) -> list[Node]:
        """Those that are alive; for what they have to say of themselves is waited so long."""
        rows = {row["NodeID"]: row for row in self._ray.nodes()}
        self._rows = {id_: row for id_, row in rows.items() if self._is_wanted(row)}
        for id_ in self._rows.keys() - self._nodes.keys() - self._probes.keys():
            self._probes[id_] = on_node(self._ray, id_, fingerprint, num_cpus=0).remote()
        refs = list(self._probes.values())
        said = self._ray.wait(refs, num_returns=len(refs), timeout=wait_s)[0] if refs else []
        for id_, ref in list(self._probes.items()):
            if ref in said:
                self._nodes[id_] = self._known(id_, ref)
                del self._probes[id_]
        return [self._nodes.get(id_) or self._silent(id_) for id_ in self._rows]

    def cpus(self, id_: str) -> int:
        """Processors of a node as Ray counts them; none if it is gone."""
        return _cpus(self._rows.get(id_, {}))

    def _is_wanted(self, row: Mapping[str, Any]) -> bool:
        return _cpus(row) > 0 and is_builder(row) == self._build

    def _known(self, id_: str, ref: Any) -> Node:
        try:
            found = self._ray.get(ref)
        except self._ray.exceptions.RayError as problem:
            return Node(id_, self._address(id_), problem=text_of(problem))
        return Node(id_, self._address(id_), found.key, found.processors, problem_of(found))

    def _silent(self, id_: str) -> Node:
        return Node(id_, self._address(id_), problem="it has not said what it is")

    def _address(self, id_: str) -> str:
        return f"{self._rows.get(id_, {}).get('NodeManagerAddress', '?')}, node {id_[:8]}"


def is_builder(row: Mapping[str, Any]) -> bool:
    """Whether a node is there to build for others."""
    return bool(row.get("Labels", {}).get(LABEL) == BUILDS)


def on_node(ray: Any, id_: str, what: Any, **about: Any) -> Any:
    """A function or an actor for one node alone."""
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    where = NodeAffinitySchedulingStrategy(id_, soft=False)
    return ray.remote(what).options(scheduling_strategy=where, **about)


def text_of(problem: Exception) -> str:
    """The line of an error of Ray that says most: the last of a traceback, else the first."""
    lines = [line.strip() for line in str(problem).splitlines() if line.strip()]
    is_traceback = any(line.startswith("Traceback") or "ray::" in line for line in lines)
    return (lines[-1] if is_traceback else lines[0]) if lines else type(problem).__name__


def _cpus(row: Mapping[str, Any]) -> int:
    return int(row.get("Resources", {}).get("CPU", 0)) if row.get("Alive") else 0
