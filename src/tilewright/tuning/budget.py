"""How long a tuner may go on: in trials, in seconds, or until it has nothing more to try."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from math import isfinite
from typing import Final

from tilewright.errors import Code, TuneError

__all__ = ["Amount", "Budget", "parse_budget"]

U041 = Code("U041", "`{text}` is no length of time")

_NUMBER = r"(\d{1,9}(?:\.\d{1,9})?)"
_UNITS: Final = re.compile(rf"(?:{_NUMBER}h)?(?:{_NUMBER}m)?(?:{_NUMBER}s)?", re.ASCII)
_SECONDS: Final = re.compile(_NUMBER, re.ASCII)


def parse_budget(text: str) -> float:
    """Seconds of "90", "90s", "10m", "1h" or "1h30m"; U041 for anything else, and for none."""
    stripped = text.strip().lower()
    if found := _SECONDS.fullmatch(stripped):
        seconds = float(found[1])
    else:
        units = _UNITS.fullmatch(stripped)
        hours, minutes, rest = units.groups("0") if units else ("0", "0", "0")
        seconds = 3600 * float(hours) + 60 * float(minutes) + float(rest)
    if seconds > 0:
        return seconds
    raise TuneError(U041, {"text": text}, hint="write 90s, 10m, 1h or 1h30m")


MOST_RESERVED: Final = 0.25
"""Of the seconds of a budget, for what comes behind a search."""


@dataclass(frozen=True)
class Amount:
    """Trials and seconds; of what is left, None where there is no limit of the kind."""

    trials: int | None
    seconds: float | None


@dataclass
class Budget:
    """Trials and seconds that may be spent; the clock runs from when it is made.

    It ends when either is gone. `clock` gives seconds.
    """

    trials: int | None = None
    seconds: float | None = None
    clock: Callable[[], float] = time.monotonic
    _trials: int = field(default=0, init=False)
    _begin: float = field(default=0.0, init=False)

    def __post_init__(self) -> None:
        if self.trials is not None and self.trials < 0:
            raise ValueError(f"a budget of {self.trials} trials")
        if self.seconds is not None and not (isfinite(self.seconds) and self.seconds >= 0):
            raise ValueError(f"a budget of {self.seconds} seconds")
        self._begin = self.clock()

    def spend(self, trials: int) -> None:
        """Trials were made."""
        self._trials += trials

    def reserve(self, seconds: float) -> float:
        """Keep so much for what comes behind, but no more than a part of all; what was kept."""
        if self.seconds is not None:
            seconds = min(seconds, MOST_RESERVED * self.seconds)
            self.seconds -= seconds
        return seconds

    @property
    def spent(self) -> Amount:
        """Trials and seconds so far."""
        return Amount(self._trials, self.clock() - self._begin)

    @property
    def left(self) -> Amount:
        """What remains of each kind, never less than nothing."""
        trials = None if self.trials is None else max(0, self.trials - self._trials)
        elapsed = self.clock() - self._begin
        return Amount(trials, None if self.seconds is None else max(0.0, self.seconds - elapsed))

    @property
    def is_spent(self) -> bool:
        """Whether one of both is gone."""
        left = self.left
        return left.trials == 0 or left.seconds == 0

    def at_most(self, count: int) -> int:
        """So many trials, or what remains of them."""
        left = self.left.trials
        return count if left is None else min(count, left)
