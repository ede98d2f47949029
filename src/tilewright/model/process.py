"""What ONNX Runtime offers for a whole process, under its names: versions, and switches.

Switches of things that tilewright does not have may be set, and change nothing.
"""

from __future__ import annotations

import platform

from tilewright.version import __version__

__all__ = ["disable_telemetry_events", "enable_telemetry_events", "get_build_info"]
__all__ += ["get_version_string", "set_default_logger_verbosity", "set_seed"]


def get_version_string() -> str:
    """The version of tilewright."""
    return __version__


def get_build_info() -> str:
    """What this is, for reports."""
    return f"tilewright {__version__}, {platform.machine()}, Python {platform.python_version()}"


def set_seed(seed: int) -> None:
    """Has no effect: a node of random numbers without a seed has one that follows from its name."""


def set_default_logger_verbosity(level: int) -> None:
    """Has no effect: there are warnings, and nothing more verbose."""


def disable_telemetry_events() -> None:
    """Nothing to disable: nothing is ever sent."""


def enable_telemetry_events() -> None:
    """Has no effect: nothing is ever sent."""
