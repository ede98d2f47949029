"""`Case`: a model and the arrays of one or several runs, as everything here hands it around."""

from __future__ import annotations

import io
import pickle
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import onnx
from numpy.typing import NDArray

__all__ = ["Array", "Case", "Feeds", "Setting"]

Array: TypeAlias = NDArray[Any]
Feeds: TypeAlias = Mapping[str, Array]


@dataclass(frozen=True)
class Setting:
    """How tilewright compiles a case."""

    accuracy: str = "default"
    threads: int = 1
    layouts: str = "auto"


@dataclass(frozen=True)
class Case:
    """A model, the inputs of each run, and a setting; one compilation serves all runs."""

    model: onnx.ModelProto
    runs: Sequence[Feeds]
    setting: Setting = Setting()
    origin: str = ""

    @property
    def operators(self) -> list[str]:
        """What the nodes of the main graph are, in order."""
        return [node.op_type for node in self.model.graph.node]

    def to_bytes(self) -> bytes:
        """For the scratch files of this tool, which nobody else writes."""
        runs = [dict(feeds) for feeds in self.runs]
        return pickle.dumps((self.model.SerializeToString(), runs, self.setting, self.origin))

    @classmethod
    def from_bytes(cls, data: bytes) -> Case:
        """The inverse of `to_bytes`."""
        model, runs, setting, origin = pickle.loads(data)
        return cls(onnx.load_model_from_string(model), runs, setting, origin)

    def save(self, path: Path) -> None:
        """Write `path` with the model, and the arrays beside it as `.npz`."""
        onnx.save_model(self.model, path)
        numbered = {f"{k}/{n}": a for k, feeds in enumerate(self.runs) for n, a in feeds.items()}
        memory = io.BytesIO()
        np.savez(memory, allow_pickle=False, **{n: _plain(a) for n, a in numbered.items()})
        path.with_suffix(".npz").write_bytes(memory.getvalue())

    @classmethod
    def load(cls, path: Path, setting: Setting | None = None) -> Case:
        """The inverse of `save`."""
        model = onnx.load_model(path)
        types = {i.name: i.type.tensor_type.elem_type for i in model.graph.input}
        runs: dict[int, dict[str, Array]] = {}
        with np.load(path.with_suffix(".npz"), allow_pickle=False) as arrays:
            for key in arrays.files:
                number, name = key.split("/", maxsplit=1)
                array = _typed(arrays[key], types[name])
                runs.setdefault(int(number), {})[name] = array
        ordered = [runs[k] for k in sorted(runs)] or [{}]
        return cls(model, ordered, setting or Setting(), path.name)


def _plain(array: Array) -> Array:
    """As NumPy's files can hold it: types that it lacks as bytes, texts as texts."""
    if array.dtype.kind == "O":
        return array.astype(np.str_)
    return (
        array.view(np.uint8 if array.dtype.itemsize == 1 else np.uint16)
        if _is_new(array)
        else array
    )


def _typed(array: Array, elem_type: int) -> Array:
    dtype = onnx.helper.tensor_dtype_to_np_dtype(elem_type)
    if elem_type == onnx.TensorProto.STRING:
        return array.astype(object)
    return array if array.dtype == dtype else array.view(dtype)


def _is_new(array: Array) -> bool:
    return array.dtype.kind == "V" or array.dtype.type.__module__ != "numpy"
