"""Ray itself: whether it is there, and how a cluster is reached or started.

This is the only module that starts or enters a cluster; `ray_cluster.py` says what keeps it safe.
"""

from __future__ import annotations

import importlib
import logging
import socket
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any, Final

from tilewright.errors import Code, TuneError
from tilewright.options import ray_auth_mode, set_ray_defaults
from tilewright.runtime.pool import usable_cpus
from tilewright.tuning.measure.interrupts import interrupts_wait

__all__ = ["LOOPBACK", "Connection", "connect", "require_loopback", "require_ray"]
__all__ += ["require_tokens"]

LOOPBACK: Final = "127.0.0.1"

REACH_S: Final = 5.0
"""Ray itself tries for most of a minute."""

STORE_BYTES: Final = 128 << 20
"""For objects of Ray: kernels as programs, and outcomes. Its default is a third of all memory."""

U050 = Code("U050", "measuring on Ray needs Ray, which is not installed")
U051 = Code("U051", "the Ray cluster at `{address}` cannot be used")
U056 = Code("U056", "the Ray cluster at `{address}` would be spoken to without a token")


@dataclass(frozen=True)
class Connection:
    """The module of Ray, in a cluster; `is_ours` where leaving it is our business."""

    ray: Any
    is_ours: bool

    def close(self) -> None:
        """Leave the cluster, which ends if it was started here."""
        if self.is_ours and self.ray.is_initialized():
            with interrupts_wait():  # processes that were not told would stay for minutes
                self.ray.shutdown()


def require_ray(*, is_loopback: bool) -> Any:
    """The module; U050 where it is not installed, U051 where it would listen to other machines."""
    set_ray_defaults(is_loopback=is_loopback)
    try:
        ray = importlib.import_module("ray")
    except ImportError:
        raise TuneError(U050, hint="pip install 'tilewright[ray]'") from None
    if is_loopback and not ray.is_initialized():
        require_loopback(ray.util.get_node_ip_address())
    return ray


def require_loopback(host: str) -> None:
    """U051 where Ray takes another address for this machine's: it was imported before."""
    if not _is_loopback(host):
        problem = f"Ray was imported before, and would listen on {host}"
        hint = "make the runner before `import ray`, or call `ray.init` as you want it to listen"
        raise TuneError(U051, {"address": LOOPBACK, "problem": problem}, hint=hint)


def require_tokens(address: str, auth_mode: str) -> None:
    """U056 for another machine without tokens: whoever answers there could run code here."""
    host, _ = _place(address)
    if not _is_loopback(host) and auth_mode != "token":
        facts = {"address": address, "RAY_AUTH_MODE": auth_mode or "not set"}
        hint = "start the cluster with RAY_AUTH_MODE=token, and unset RAY_AUTH_MODE here"
        raise TuneError(U056, facts, hint=hint)


def connect(address: str | None = None) -> Connection:
    """Enter the cluster at `HOST:PORT`, or start one of this machine alone.

    Whoever has called `ray.init` already stays in that cluster, and decides when to leave it.
    """
    if address is not None:
        require_tokens(address, ray_auth_mode())
    ray = require_ray(is_loopback=address is None or _is_loopback(_place(address)[0]))
    if ray.is_initialized():
        _require_same(address, ray.get_runtime_context().gcs_address)
        return Connection(ray, is_ours=False)
    quiet = {"log_to_driver": False, "logging_level": logging.ERROR}
    if address is None:
        return _started(ray, quiet)
    _require_listener(address)
    try:
        ray.init(address, **quiet)
    except (OSError, RuntimeError, ValueError, ray.exceptions.RayError) as problem:
        raise _unreachable(address, str(problem).partition("\n")[0]) from None
    return Connection(ray, is_ours=True)


def _started(ray: Any, quiet: dict[str, Any]) -> Connection:
    """A cluster of this machine alone, as a whole or not at all."""
    made = Connection(ray, is_ours=True)
    try:
        with interrupts_wait():
            ray.init(
                "local",
                num_cpus=usable_cpus(),
                include_dashboard=False,
                object_store_memory=STORE_BYTES,
                _node_ip_address=LOOPBACK,
                **quiet,
            )
    except KeyboardInterrupt:
        made.close()
        raise
    return made


def _require_same(address: str | None, entered: str) -> None:
    if address is not None and _place(address) != _place(entered):
        raise _unreachable(address, f"this process is in the cluster at {entered}")


def _require_listener(address: str) -> None:
    try:
        socket.create_connection(_place(address), REACH_S).close()
    except OSError as problem:
        raise _unreachable(address, str(problem)) from None


def _place(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    if not host or "/" in host or not port.isdecimal():
        raise _unreachable(address, "an address is `HOST:PORT`, as `ray start --head` prints it")
    return host.strip("[]"), int(port)


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _unreachable(address: str, problem: str) -> TuneError:
    hint = "look with `ray status`; this machine must be a node of the cluster and have its token"
    return TuneError(U051, {"address": address, "problem": problem}, hint=hint)
