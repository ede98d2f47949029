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
from onnx.reference.ops.aionnxml import op_tree_ensemble_classifier as classifier
from onnx.reference.ops.aionnxml import op_tree_ensemble_regressor as regressor

from tilewright.frontend.onnx.encoder_reference import (
    CategoryMapper,
    LabelEncoder,
    OneHotEncoder,
    Where,
)
from tilewright.frontend.onnx.loop_reference import Loop
from tilewright.frontend.onnx.ml_scores import DOMAIN
from tilewright.frontend.onnx.norm_reference import BatchNormalization
from tilewright.frontend.onnx.scan_reference import Scan
from tilewright.frontend.onnx.sparse import with_dense
from tilewright.frontend.onnx.text_reference import (
    RegexFullMatch,
    StringNormalizer,
    StringSplit,
    TfIdfVectorizer,
)
from tilewright.frontend.onnx.token_reference import Tokenizer

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


class _Trees:
    """Trees that do not say where missing values go: these go the way of what is false."""

    def _run(self, x: Any, **attributes: Any) -> tuple[Any, ...]:
        if attributes.get("nodes_missing_value_tracks_true") is None:
            count = len(attributes["nodes_modes"])
            attributes["nodes_missing_value_tracks_true"] = [0] * count
        found: tuple[Any, ...] = super()._run(x, **attributes)  # type: ignore[misc]
        return found


class TreeEnsembleClassifier(_Trees, classifier.TreeEnsembleClassifier):  # type: ignore[misc]
    """Scores of classes, and the best of these."""

    op_domain = DOMAIN


class TreeEnsembleRegressor(_Trees, regressor.TreeEnsembleRegressor):  # type: ignore[misc]
    """Scores of targets."""

    op_domain = DOMAIN


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


EXTRA: Final = [
    BatchNormalization,
    CastMap,
    CategoryMapper,
    DictVectorizer,
    LabelEncoder,
    Loop,
    OneHotEncoder,
    RegexFullMatch,
    Scan,
    StringNormalizer,
    StringSplit,
    TfIdfVectorizer,
    Tokenizer,
    TreeEnsembleClassifier,
    TreeEnsembleRegressor,
    Where,
    ZipMap,
]


def evaluator_of(model: onnx.ModelProto) -> ReferenceEvaluator:
    """The reference implementation of a model, with what it lacks or gets wrong."""
    return ReferenceEvaluator(with_dense(_in_short(model)), new_ops=EXTRA)


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
