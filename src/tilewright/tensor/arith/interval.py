"""Intervals of integers with constant ends, either of which may be unknown."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Interval"]


class Interval(NamedTuple):
    """`lo ≤ value ≤ hi`; None means that nothing is known on that side."""

    lo: int | None
    hi: int | None

    def contains(self, value: int) -> bool:
        """Whether `value` is inside."""
        return (self.lo is None or self.lo <= value) and (self.hi is None or value <= self.hi)

    def within(self, lo: int, hi: int) -> bool:
        """Whether every value is known to be in `[lo, hi]`."""
        return self.lo is not None and self.hi is not None and lo <= self.lo and self.hi <= hi

    def union(self, other: Interval) -> Interval:
        """The least interval around both."""
        lo = None if self.lo is None or other.lo is None else min(self.lo, other.lo)
        hi = None if self.hi is None or other.hi is None else max(self.hi, other.hi)
        return Interval(lo, hi)

    @property
    def size(self) -> int | None:
        """How many values there are, if that is known."""
        if self.lo is None or self.hi is None:
            return None
        return max(0, self.hi - self.lo + 1)
