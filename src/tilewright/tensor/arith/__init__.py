"""Arithmetic on indices: simplify, bound, prove; iterator maps; boxes.

`Analyzer` is the face of the simplifier, `itermap.detect` finds how loops take the points of a
block's domain, `region_bounds` finds what indices touch. Everything here either proves or says that
it does not know; nothing is guessed.
"""

from tilewright.tensor.arith.analyzer import Analyzer
from tilewright.tensor.arith.boxes import Box, contains, covers, union
from tilewright.tensor.arith.interval import Interval
from tilewright.tensor.arith.sweep import region_bounds

__all__ = ["Analyzer", "Box", "Interval", "contains", "covers", "region_bounds", "union"]
