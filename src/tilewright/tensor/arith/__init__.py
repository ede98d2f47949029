"""Arithmetic on indices: simplify, bound, prove; iterator maps; regions.

`Analyzer` is the face of the simplifier. Everything here either proves or says that it does not
know; nothing is guessed.
"""

from tilewright.tensor.arith.analyzer import Analyzer
from tilewright.tensor.arith.interval import Interval

__all__ = ["Analyzer", "Interval"]
