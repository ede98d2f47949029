"""A machine whose rates nobody has to measure."""

from __future__ import annotations

from tilewright.target import Bandwidth, Measured, Rate, Target

__all__ = ["known_machine"]


def known_machine() -> Target:
    """This machine, said to have 100 GFLOP/s on one core and 10 GB/s of memory."""
    levels = (Bandwidth("DRAM", Rate(10, 20), Rate(10, 20), Rate(10, 20)),)
    return Target.host().with_measured(Measured(Rate(100, 200), levels))
