"""What a model may make of itself while it is imported: nodes again and again, copies of parts.

A graph in a branch is imported for each way that leads to it, a call of a function stands for its
body with what the call hands over, and nodes whose results have no form are computed wherever these
are read. All of that multiplies what a file holds, which has to have an end.
"""

from __future__ import annotations

import functools

import onnx

from tilewright.frontend.onnx.extent import too_large
from tilewright.frontend.onnx.limits import (
    COPIED_BASE,
    COPIED_FACTOR,
    MAX_COPIES,
    MAX_OPAQUE,
    MAX_REPEATED,
    SPARE_NODES,
)

__all__ = ["Budget"]


class Budget:
    """Counts down; M005 when nothing is left. `nodes` are those of the model with all calls."""

    def __init__(self, model: onnx.ModelProto, nodes: int) -> None:
        self.model = model
        self.copied_bytes = 0
        self.opaque = MAX_OPAQUE
        self.imports = nodes + min((MAX_COPIES - 1) * nodes, MAX_REPEATED) + SPARE_NODES

    @functools.cached_property
    def _factored(self) -> int:
        """Bytes that the size of a model allows; to count that takes a second for 400 MB."""
        return COPIED_FACTOR * int(self.model.ByteSize())

    def import_node(self) -> None:
        """One more node is imported."""
        self.imports -= 1
        if self.imports < 0:
            raise too_large(self.model, "branches or loops multiply its nodes beyond measure")

    def allows_opaque(self) -> bool:
        """Whether one more node may give what has no form before a run."""
        self.opaque -= 1
        return self.opaque >= 0

    def copy(self, size_bytes: int, what: str = "its calls of functions") -> None:
        """So many bytes of the file stand somewhere else again."""
        self.copied_bytes += size_bytes
        if self.copied_bytes > COPIED_BASE and self.copied_bytes > COPIED_BASE + self._factored:
            raise too_large(self.model, f"{what} multiply their contents")
