"""Parameters of the recipes for windows: how many sums grow in registers at a time.

Few sums wait for each other's additions, many leave no registers to what they add, and between the
two it depends on the processor. The recipes choose a number that suits most of them; a tuner may
try all of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tilewright.target import Target

__all__ = ["WindowPlan", "window_plans"]


@dataclass(frozen=True)
class WindowPlan:
    """At most so many vectors of sums: columns of a line, or lines of an image."""

    sums: int


def window_plans(target: Target) -> Iterator[WindowPlan]:
    """All plans that the recipes can follow: half of the registers are for data and weights."""
    for sums in range(1, target.vector_registers // 2 + 1):
        yield WindowPlan(sums)
