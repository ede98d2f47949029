"""Measuring on the nodes of a Ray cluster: `LocalRunner`s on all that have the processor asked for.

    RayRunner()                    # a cluster of this machine alone, ended by `close`
    RayRunner("10.0.0.5:6379")     # one that is there; this machine is a node of it

What is new against one machine is in the modules below: `ray_connection.py` (Ray, tokens),
`ray_nodes.py` (who is there), `ray_cluster.py` (leases), `ray_worker.py` (what runs on a node that
measures), `ray_places.py` (builds on nodes that do not), and for any cluster `fleet.py` (who
measures), `dispatch.py` (which trials, and which again) and `elsewhere.py` (what is built where).
"""

from __future__ import annotations

from tilewright.tuning.measure.dispatch import AHEAD, SILENCE_S, Dispatcher
from tilewright.tuning.measure.ray_cluster import RayCluster
from tilewright.tuning.measure.ray_connection import connect
from tilewright.tuning.measure.ray_worker import MakeRunner
from tilewright.tuning.measure.trial import Runner

__all__ = ["RayRunner"]


class RayRunner(Dispatcher):
    """A `Runner` on Ray.

    `make_runner` makes the runner of a node, there. A worker that is lost costs its trials at most
    `repeats` repetitions. `wait_s` is how long a node is waited for that others have, or that is to
    come in the place of a lost one; a worker that answers nothing for `silence_s` is given up.
    """

    def __init__(
        self,
        address: str | None = None,
        *,
        make_runner: MakeRunner | None = None,
        ahead: int = AHEAD,
        repeats: int = 2,
        wait_s: float = 60.0,
        silence_s: float = SILENCE_S,
    ) -> None:
        cluster = RayCluster(connect(address), make_runner or _local, ahead)
        super().__init__(cluster, ahead=ahead, repeats=repeats, wait_s=wait_s, silence_s=silence_s)


def _local() -> Runner:
    """On the node that measures: a runner that has kernels built by nodes that do not."""
    import ray

    from tilewright.tuning.measure.elsewhere import Elsewhere
    from tilewright.tuning.measure.local import LocalRunner
    from tilewright.tuning.measure.ray_places import RayPlaces

    return LocalRunner(wrap=lambda here: Elsewhere(here, RayPlaces(ray)), elsewhere=AHEAD)
