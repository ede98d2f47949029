"""Operators of texts, maps and control flow that the ONNX reference implementation lacks or gets
wrong, by domain and name.

They are not on the way of what is compiled: a model with texts or maps inside runs by value.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from onnx.reference.op_run import OpRun

from tilewright.frontend.onnx.reference.casts import Cast, CastLike
from tilewright.frontend.onnx.reference.encoders import CategoryMapper, LabelEncoder, OneHotEncoder
from tilewright.frontend.onnx.reference.loops import Loop
from tilewright.frontend.onnx.reference.maps import CastMap, DictVectorizer, ZipMap
from tilewright.frontend.onnx.reference.scans import Scan
from tilewright.frontend.onnx.reference.sequences import SequenceInsert
from tilewright.frontend.onnx.reference.texts import (
    RegexFullMatch,
    StringNormalizer,
    StringSplit,
    TfIdfVectorizer,
)
from tilewright.frontend.onnx.reference.tokens import Tokenizer
from tilewright.frontend.onnx.reference.trees import TreeEnsembleClassifier, TreeEnsembleRegressor

__all__ = ["OPERATORS"]

_CLASSES: Final[tuple[type[OpRun], ...]] = (
    Cast,
    CastLike,
    CastMap,
    CategoryMapper,
    DictVectorizer,
    LabelEncoder,
    Loop,
    OneHotEncoder,
    RegexFullMatch,
    Scan,
    SequenceInsert,
    StringNormalizer,
    StringSplit,
    TfIdfVectorizer,
    Tokenizer,
    TreeEnsembleClassifier,
    TreeEnsembleRegressor,
    ZipMap,
)

OPERATORS: Final[Mapping[tuple[str, str], type[OpRun]]] = {
    (own.op_domain, own.__name__): own for own in _CLASSES
}
