"""A Ray cluster of two nodes on this machine, on the loopback interface, with a token of its own.

Nothing here runs without Ray (`make test-ray`). Ray keeps clusters to a process and reads its
settings once, so all tests share one, and a node that a test ends is replaced by the test.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tilewright.options import set_ray_defaults
from tilewright.tuning.measure.ray_connection import LOOPBACK, require_loopback

ROOT = Path(__file__).parents[2]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Ray leaves sockets and files to the end of the process, and warns of its own future."""
    for item in items:
        if Path(item.path).is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.filterwarnings("ignore"))


@pytest.fixture(scope="session")
def ray(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The module, with settings of tests."""
    token = tmp_path_factory.mktemp("ray") / "token"
    token.write_text(secrets.token_hex(32))
    token.chmod(0o600)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_AUTH_TOKEN_PATH", str(token))
        for variable in ("RAY_AUTH_TOKEN", "RAY_AUTH_MODE", "RAY_ADDRESS"):
            patch.delenv(variable, raising=False)
        # Nodes that are killed are missed within seconds.
        patch.setenv("RAY_health_check_initial_delay_ms", "500")
        patch.setenv("RAY_health_check_period_ms", "500")
        patch.setenv("RAY_health_check_failure_threshold", "2")
        paths = [str(ROOT / "src"), str(ROOT), os.environ.get("PYTHONPATH", "")]
        patch.setenv("PYTHONPATH", os.pathsep.join(filter(None, paths)))
        patch.setenv("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
        set_ray_defaults(is_loopback=True)
        module = pytest.importorskip("ray")
        require_loopback(module.util.get_node_ip_address())  # before anything listens
        yield module


@pytest.fixture(scope="session")
def cluster(ray: Any) -> Iterator[Any]:
    """A head that measures nothing, and this process in it; tests add nodes."""
    from ray.cluster_utils import Cluster

    head = {"num_cpus": 0, "include_dashboard": False, "node_ip_address": LOOPBACK}
    made = Cluster(initialize_head=True, head_node_args=head)
    ray.init(made.address, log_to_driver=False, logging_level="ERROR")
    yield made
    ray.shutdown()
    made.shutdown()


@pytest.fixture
def add_node(cluster: Any) -> Iterator[Any]:
    """Adds nodes of one processor, which end with the test."""
    added = []

    def add(**about: Any) -> Any:
        added.append(cluster.add_node(num_cpus=1, node_ip_address=LOOPBACK, **about))
        return added[-1]

    yield add
    for node in added:
        if node in cluster.worker_nodes:
            cluster.remove_node(node)
