"""Blocks that one recipe schedules; `grouping` finds them."""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.tensor.analysis.structure import Kind

__all__ = ["Group"]


@dataclass(frozen=True)
class Group:
    """Blocks that one recipe schedules; `shared` counts the leading dimensions of a row group."""

    kind: Kind
    blocks: tuple[str, ...]
    epilogue: str | None = None
    shared: int = 0

    @property
    def members(self) -> tuple[str, ...]:
        """All its blocks in program order."""
        return self.blocks if self.epilogue is None else (*self.blocks, self.epilogue)
