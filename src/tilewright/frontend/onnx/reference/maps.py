"""Operators of maps, which the ONNX reference implementation lacks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from onnx.reference.op_run import OpRun

from tilewright.frontend.onnx.ml_scores import DOMAIN

__all__ = ["CastMap", "DictVectorizer", "ZipMap"]

KINDS: Final = {"TO_FLOAT": np.float32, "TO_INT64": np.int64, "TO_STRING": np.str_}


class ZipMap(OpRun):  # type: ignore[misc]
    """A map from classes to scores for each row."""

    op_domain = DOMAIN

    def _run(
        self,
        x: Any,
        classlabels_int64s: Sequence[int] | None = None,
        classlabels_strings: Sequence[str] | None = None,
    ) -> tuple[Any]:
        keys = list(classlabels_strings or classlabels_int64s or ())
        return ([dict(zip(keys, row, strict=True)) for row in np.atleast_2d(x).tolist()],)


class CastMap(OpRun):  # type: ignore[misc]
    """The values of a map in the order of its keys; sparse ones at the places of their keys."""

    op_domain = DOMAIN

    def _run(
        self,
        x: Any,
        cast_to: str = "TO_FLOAT",
        map_form: str = "DENSE",
        max_map: int = 1,
    ) -> tuple[Any]:
        kind = KINDS[cast_to]
        held = dict(x)
        if map_form == "SPARSE":
            values = [held.get(k, "" if kind is np.str_ else 0) for k in range(max_map)]
        else:
            values = [held[k] for k in sorted(held)]
        return (np.array([values]).astype(kind),)


class DictVectorizer(OpRun):  # type: ignore[misc]
    """A row with the values of a map, in the order of a list of keys; zero for those it lacks."""

    op_domain = DOMAIN

    def _run(
        self,
        x: Any,
        int64_vocabulary: Sequence[int] | None = None,
        string_vocabulary: Sequence[str] | None = None,
    ) -> tuple[Any]:
        keys = list(string_vocabulary or int64_vocabulary or ())
        maps = [x] if isinstance(x, dict) else list(x)
        kind = _kind_of([value for held in maps for value in held.values()])
        missing = "" if kind is np.object_ else 0
        rows = [[held.get(key, missing) for key in keys] for held in maps]
        return (np.array(rows, dtype=kind).reshape(len(maps), len(keys)),)


def _kind_of(values: Sequence[Any]) -> Any:
    """The type of a tensor of these values: numbers of Python are of the types that maps have."""
    first = values[0] if values else 0.0
    if isinstance(first, np.generic) and first.dtype.kind in "iuf":
        return first.dtype
    if isinstance(first, str):
        return np.object_
    return np.int64 if isinstance(first, int) else np.float32
