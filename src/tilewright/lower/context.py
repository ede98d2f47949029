"""What passes share besides the program: the target, and remarks for whoever wrote the schedule."""

from __future__ import annotations

from dataclasses import dataclass, field

from tilewright.target import Target

__all__ = ["Context"]


@dataclass
class Context:
    """One run of the lowering. `remarks` says where a schedule's wish could not be granted."""

    target: Target
    remarks: list[str] = field(default_factory=list)

    def remark(self, text: str) -> None:
        """Record something that is correct but slower than what was asked for."""
        if text not in self.remarks:
            self.remarks.append(text)
