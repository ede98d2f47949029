"""From a scheduled program to flat loops: one file per pass, in the order of `passes.py`."""

from tilewright.lower.lowered import Lowered
from tilewright.lower.passes import LOWERING, STAGES, Observer, lower, lower_from

__all__ = ["LOWERING", "STAGES", "Lowered", "Observer", "lower", "lower_from"]
