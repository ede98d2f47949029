"""How much memory this process uses, as the kernel counts it."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

__all__ = ["Memory"]

PROCESS: Final = Path("/proc/self")
RESET_PEAK: Final = "5"


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes in memory now, and the most since the peak was reset; of mapped files what was read.

    `own` are those that no file stands behind: the system cannot have them back.
    """

    resident: int
    peak: int
    own: int

    @classmethod
    def now(cls) -> Self:
        """What `/proc/self/status` says."""
        lines = (PROCESS / "status").read_text(encoding="utf-8").splitlines()
        fields = dict(line.partition(":")[::2] for line in lines)
        names = ("VmRSS", "VmHWM", "RssAnon")
        return cls(*(int(fields[name].split()[0]) << 10 for name in names))

    @classmethod
    def start(cls) -> Self:
        """What is used now, from where the peak counts anew if the system allows it."""
        with contextlib.suppress(OSError):
            (PROCESS / "clear_refs").write_text(RESET_PEAK, encoding="ascii")
        return cls.now()
