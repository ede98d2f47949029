"""Iterator maps: how the loops around a block take the points of its domain.

`detect` finds the map or refuses with a `Reason`; an `IterMap` can be inverted and composed.
"""

from tilewright.tensor.arith.itermap.detect import IterMap, compose, detect
from tilewright.tensor.arith.itermap.result import Reason, Refusal

__all__ = ["IterMap", "Reason", "Refusal", "compose", "detect"]
