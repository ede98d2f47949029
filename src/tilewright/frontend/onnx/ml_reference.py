"""Operators of maps and texts that the ONNX reference implementation lacks, for it to run.

They are not on the way of what is compiled: a model with texts or maps inside runs by reference.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import onnx
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun

from tilewright.frontend.onnx.loop_reference import Loop
from tilewright.frontend.onnx.ml_scores import DOMAIN

__all__ = ["evaluator_of"]

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


class CategoryMapper(OpRun):  # type: ignore[misc]
    """Numbers for texts, or texts for numbers."""

    op_domain = DOMAIN

    def _run(
        self,
        x: Any,
        cats_int64s: Sequence[int] | None = None,
        cats_strings: Sequence[str] | None = None,
        default_int64: int = -1,
        default_string: str = "_Unused",
    ) -> tuple[Any]:
        numbers, texts = cats_int64s or (), cats_strings or ()
        if x.dtype.kind in "iu":
            to_text = dict(zip(numbers, texts, strict=True))
            found: list[Any] = [to_text.get(int(v), default_string) for v in x.ravel()]
            return (np.array(found, dtype=np.str_).reshape(x.shape),)
        to_number = dict(zip(texts, numbers, strict=True))
        found = [to_number.get(str(v), default_int64) for v in x.ravel()]
        return (np.array(found, dtype=np.int64).reshape(x.shape),)


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


EXTRA: Final = [ZipMap, CategoryMapper, CastMap, Loop]


def evaluator_of(model: onnx.ModelProto) -> ReferenceEvaluator:
    """The reference implementation of a model, with what it lacks or gets wrong."""
    return ReferenceEvaluator(_in_short(model), new_ops=EXTRA)


def _in_short(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with the short name of ONNX's own domain, the only one that is known there."""
    imports = [entry for holder in (model, *model.functions) for entry in holder.opset_import]
    if all(entry.domain != "ai.onnx" for entry in imports):
        return model
    own = onnx.ModelProto()
    own.CopyFrom(model)
    for holder in (own, *own.functions):
        for entry in holder.opset_import:
            entry.domain = "" if entry.domain == "ai.onnx" else entry.domain
    return own
