"""The names of sizes in a model file: equal ones are one size, unless they mean "unknown".

Exporters fill in a word where they know nothing: Paddle `?` and `-1`, tf2onnx `unk__` with a
number, others the text of Python's `None`. Two of these say nothing about each other. Sizes that
share a proper name may differ all the same in a run: onnxruntime does not mind, and a version of
the model in which they are `apart` does not either (`model/spreading.py`).
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final

import onnx

__all__ = ["dims_of", "is_proper"]

UNKNOWN: Final = re.compile(
    r"[\s?*_.\-]*|[+-]?\d+|none|null|nil|nan|any|n/?a|dyn(amic)?|unk(nown)?|undefined|unk__\d+",
    re.IGNORECASE,
)
"""Names that stand for no size: signs, numbers, and words for what is not known."""


def is_proper(name: str) -> bool:
    """Whether all sizes of this name are meant to be equal."""
    return not UNKNOWN.fullmatch(name)


def dims_of(info: onnx.ValueInfoProto, apart: Collection[str] = ()) -> tuple[int | str, ...]:
    """The dimensions of a tensor, numbers or names; one without a name has that of its place.

    So have those whose names are to be kept `apart`. Negative numbers are unknown.
    """
    return tuple(
        int(d.dim_value)
        if d.HasField("dim_value") and d.dim_value >= 0
        else d.dim_param
        if is_proper(d.dim_param) and d.dim_param not in apart
        else f"{info.name}_{k}"
        for k, d in enumerate(info.type.tensor_type.shape.dim)
    )
