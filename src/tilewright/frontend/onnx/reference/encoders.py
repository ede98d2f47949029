"""Encoders of texts and numbers for the ONNX reference implementation, in the place of its own.

That wants defaults to be given, takes no tensors of several keys, refuses arrays without elements,
and gives texts arrays of fixed lengths, in which others cut longer ones off.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
from onnx.reference.op_run import OpRun

from tilewright.frontend.onnx.ml_scores import DOMAIN

__all__ = ["CategoryMapper", "LabelEncoder", "OneHotEncoder"]

UNKNOWN: Final = "_Unused"
"""The text for what an encoder does not know, unless it says another."""
NAN: Final = object()
"""The key of NaN, which equals nothing, not even itself."""


def _key(value: Any) -> Any:
    return value if value == value else NAN  # noqa: PLR0124  (only NaN differs from itself)


def _encoded(x: Any, table: Mapping[Any, Any], default: Any, kind: Any) -> Any:
    """The values of elements; texts in an array of objects."""
    found = [table.get(_key(v), default) for v in x.ravel().tolist()]
    return np.array(found, dtype=kind).reshape(x.shape)


class LabelEncoder(OpRun):  # type: ignore[misc]
    """A value for each key; in its first form texts are classes and have their places as values."""

    op_domain = DOMAIN

    def _run(self, x: Any, classes_strings: Sequence[str] | None = None, **given: Any) -> Any:
        keys: Sequence[Any]
        values: Sequence[Any]
        if classes_strings is None:
            keys, _ = _listed(given, "keys")
            values, kind = _listed(given, "values")
        elif x.dtype.kind in "iu":
            keys, values, kind = range(len(classes_strings)), classes_strings, "string"
        else:
            keys, values, kind = classes_strings, range(len(classes_strings)), "int64"
        table = {_key(k): v for k, v in zip(keys, values, strict=True)}
        default, dtype = _default(given, kind)
        return (_encoded(x, table, default, dtype),)


def _listed(given: Mapping[str, Any], name: str) -> tuple[Sequence[Any], str]:
    """Keys or values, and what they are called."""
    for kind in ("tensor", "strings", "int64s", "floats"):
        found = given.get(f"{name}_{kind}")
        if found is not None:
            return (found.ravel().tolist() if kind == "tensor" else found), kind.removesuffix("s")
    raise ValueError(f"there are no {name}")


def _default(given: Mapping[str, Any], kind: str) -> tuple[Any, Any]:
    """The value of what is not known, and the type of all values."""
    found = given.get(f"default_{kind}")
    if kind == "tensor":
        values = np.asarray(given["values_tensor"])
        dtype = values.dtype if values.dtype.kind in "fiu" else np.dtype(object)
        other = {"f": -0.0, "i": -1, "u": 0}.get(dtype.kind, UNKNOWN)
        return (other if found is None else np.asarray(found).ravel().tolist()[0]), dtype
    usual, dtype = {
        "string": (UNKNOWN, np.dtype(object)),
        "int64": (-1, np.dtype(np.int64)),
        "float": (-0.0, np.dtype(np.float32)),
    }[kind]
    return (usual if found is None else found), dtype


class CategoryMapper(OpRun):  # type: ignore[misc]
    """Numbers for texts, or texts for numbers."""

    op_domain = DOMAIN

    def _run(
        self,
        x: Any,
        cats_int64s: Sequence[int] | None = None,
        cats_strings: Sequence[str] | None = None,
        default_int64: int = -1,
        default_string: str = UNKNOWN,
    ) -> tuple[Any]:
        numbers, texts = cats_int64s or (), cats_strings or ()
        if x.dtype.kind in "iu":
            return (_encoded(x, dict(zip(numbers, texts, strict=True)), default_string, object),)
        table = dict(zip(texts, numbers, strict=True))
        return (_encoded(x, table, default_int64, np.int64),)


class OneHotEncoder(OpRun):  # type: ignore[misc]
    """A new dimension with a one at the place of the category."""

    op_domain = DOMAIN

    def _run(
        self,
        x: Any,
        cats_int64s: Sequence[int] | None = None,
        cats_strings: Sequence[str] | None = None,
        zeros: int = 1,
    ) -> tuple[Any]:
        known = list(cats_strings or cats_int64s or ())
        values = x if x.dtype.kind not in "fiub" else x.astype(np.int64)
        places = _encoded(values, {c: k for k, c in enumerate(known)}, -1, np.int64)
        if not zeros and (places < 0).any():
            raise ValueError("a category that is not known")
        return ((places[..., None] == np.arange(len(known))).astype(np.float32),)
