"""A model whose weights lie in another file, and what an attacker would like that file to be."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto

from tests.small import WEIGHTS, two_outputs

SECRET = np.full(WEIGHTS.shape, 7, np.float32)


def write_model(folder: Path, name: str = "model.onnx", **entries: object) -> Path:
    """Write `two_outputs` with external data described by `entries`; the data are not written."""
    model = two_outputs()
    (tensor,) = model.graph.initializer
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in entries.items():
        tensor.external_data.add(key=key, value=str(value))
    path = folder / name
    path.write_bytes(model.SerializeToString())
    return path


def write_weights(path: Path, array: np.ndarray = WEIGHTS, before: bytes = b"") -> Path:
    """Write the data of a tensor."""
    path.write_bytes(before + array.tobytes())
    return path


def weights_of(model: onnx.ModelProto) -> np.ndarray:
    """The weights that were read."""
    return onnx.numpy_helper.to_array(model.graph.initializer[0])
