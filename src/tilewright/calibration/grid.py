"""Measured figures on a coarse grid, so that two calibrations of one machine agree.

A measured figure differs from run to run by a few percent, and no decision of the compiler is worth
that much. So a figure that is near the nominal one is the nominal one, and any other is the nearest
power of a step of a quarter.
"""

from __future__ import annotations

import math
from typing import Final

__all__ = ["on_grid"]

NEAR: Final = 1.2
STEP: Final = 5 / 4


def on_grid(measured: float, nominal: float) -> float:
    """The figure to use for a measured one."""
    if nominal > 0 and 1 / NEAR <= measured / nominal <= NEAR:
        return nominal
    return float(f"{STEP ** round(math.log(measured, STEP)):.3g}")
