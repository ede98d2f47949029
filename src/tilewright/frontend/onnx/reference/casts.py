"""`Cast` between texts and numbers, in the place of the reference implementation's.

That knows the types of NumPy only, takes every text for true, and no fraction for an integer.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import helper
from onnx.reference.op_run import OpRun

from tilewright.frontend.onnx.reference.texts import as_texts
from tilewright.frontend.onnx.reference.understood import Understood

__all__ = ["Cast", "CastLike"]

TRUTHS = {"true": 1, "false": 0}


class _Cast(OpRun):  # type: ignore[misc]
    """What both have in common."""

    def _cast(self, x: Any, to: int) -> Any:
        if x.dtype.kind in "OUST":
            texts = as_texts(x)
            return texts if to == onnx.TensorProto.STRING else self._numbers(texts, to)
        if to == onnx.TensorProto.STRING:
            return _plain(x).astype(np.str_).astype(object)
        return x.astype(helper.tensor_dtype_to_np_dtype(to))

    def _numbers(self, texts: Any, to: int) -> Any:
        """Numbers of a type that holds what is written, then as `Cast` makes others of these."""
        wanted = helper.tensor_dtype_to_np_dtype(to)
        if wanted.kind == "c":
            return texts.astype(np.str_).astype(wanted)
        is_whole = wanted.kind in "iub" or "int" in wanted.name
        listed = [(_whole if is_whole else float)(text) for text in texts.ravel().tolist()]
        wide = np.uint64 if wanted == np.uint64 else np.int64
        held = np.array(listed, wide if is_whole else np.float64).reshape(texts.shape)
        if held.dtype == wanted:
            return held
        attributes = {a.name: helper.get_attribute_value(a) for a in self.onnx_node.attribute}
        node = helper.make_node("Cast", ["x"], ["y"], **{**attributes, "to": to})
        found = Understood(node, self.run_params["opsets"]).results([held])
        return held.astype(wanted) if found is None else found[0]


class Cast(_Cast):
    """Texts as numbers, numbers as texts, and texts as they are."""

    def _run(self, x: Any, to: int = 0, **_how: Any) -> tuple[Any]:
        return (self._cast(x, to),)


class CastLike(_Cast):
    """To the type of another tensor."""

    def _run(self, x: Any, like: Any, **_how: Any) -> tuple[Any]:
        is_text = like.dtype.kind in "OUST"
        string = onnx.TensorProto.STRING
        return (self._cast(x, string if is_text else helper.np_dtype_to_tensor_dtype(like.dtype)),)


def _plain(x: Any) -> Any:
    """Numbers of a type that NumPy can write, none of them changed."""
    if x.dtype.isbuiltin == 1:
        return x
    return x.astype(np.int32 if "int" in x.dtype.name else np.float32)


def _whole(text: str) -> int:
    """An integer as it is written; of other numbers what stands before the fraction."""
    word = text.strip().lower()
    if word in TRUTHS:
        return TRUTHS[word]
    try:
        return int(word)
    except ValueError:
        return int(float(word))
