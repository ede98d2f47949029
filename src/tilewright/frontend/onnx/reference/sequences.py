"""`SequenceInsert`, in the place of the reference implementation's, which needs a member before."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx.reference.op_run import OpRun

__all__ = ["SequenceInsert"]


class SequenceInsert(OpRun):  # type: ignore[misc]
    """A sequence with one more member, at its end or before one that is there."""

    def _run(self, sequence: Any, member: Any, position: Any = None) -> tuple[Any]:
        made = list(sequence)
        place = len(made) if position is None else int(np.asarray(position).item())
        if not -len(made) <= place <= len(made):
            raise IndexError(f"position {place} of a sequence of {len(made)}")
        made.insert(place, member)
        return (made,)
