"""Outputs that are no tensors of numbers: labels that are texts, and maps from classes to scores.

Models of scikit-learn end with them. What computes is compiled as if labels were numbers and scores
a matrix (`frontend/onnx/endings.py`); the last step, which makes texts and maps of these, is Python
and belongs to the module.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewright.errors import CallError
from tilewright.runtime.failures import C025
from tilewright.shown import quoted

__all__ = ["Ending"]

Key = int | str


@dataclass(frozen=True)
class Ending:
    """What an output is made of: a map for each row of scores, or a text for each number."""

    keys: tuple[Key, ...]
    is_map: bool

    @property
    def type(self) -> str:
        """As the ONNX world writes it."""
        if not self.is_map:
            return "tensor(string)"
        key = "string" if isinstance(self.keys[0], str) else "int64"
        return f"seq(map({key},tensor(float)))"

    def apply(self, result: Any, model: str, output: str) -> Any:
        """The output of what the program gave; raises `CallError` if these do not fit together."""
        numbers = np.asarray(result)
        if self.is_map:
            rows = np.atleast_2d(numbers)
            if rows.ndim != 2 or rows.shape[1] != len(self.keys):
                raise self._unfit(model, output, f"scores of shape {list(numbers.shape)}")
            return [dict(zip(self.keys, row, strict=True)) for row in rows.tolist()]
        if numbers.size and not 0 <= numbers.min() <= numbers.max() < len(self.keys):
            raise self._unfit(model, output, f"numbers up to {numbers.max()}")
        return np.array(self.keys, dtype=object)[numbers]

    def _unfit(self, model: str, output: str, found: str) -> CallError:
        problem = f"{quoted(output)} has {len(self.keys)} classes, and there are {found}"
        return CallError(C025, {"model": model, "problem": problem}, hint="export the model again")

    def to_dict(self) -> dict[str, Any]:
        """For files."""
        return {"keys": list(self.keys), "is_map": self.is_map}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Ending:
        """The inverse of `to_dict`; ValueError for what it never gives."""
        match data:
            case {"keys": [_, *_] as keys, "is_map": bool() as is_map}:
                kinds = {type(key) for key in keys}
                if kinds == {str} or (kinds == {int} and is_map):
                    return cls(tuple(keys), is_map)
        raise ValueError("an ending has classes that are texts or numbers")
