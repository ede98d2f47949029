"""Operators of the first opsets that later ones dropped, beside onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright
from tests.onnx.beside_ort import beside, node_model
from tilewright.errors import ModelError
from tilewright.graph.ir import Array


def images(*shape: int) -> Array:
    return np.random.default_rng(0).normal(0.5, 2, shape).astype(np.float32)


def early(op: str, inputs: list[Any], opset: int = 7, **options: Any) -> None:
    beside(op, inputs, domain="", version=opset, standard=opset, **options)


@pytest.mark.parametrize("opset", [1, 7, 9])
@pytest.mark.parametrize("op", ["Affine", "ParametricSoftplus", "ScaledTanh"])
def test_of_each_element(op: str, opset: int) -> None:
    early(op, [images(11, 3, 5)], opset, alpha=1.5, beta=-0.5)


def test_factors_that_are_left_out() -> None:
    early("Affine", [images(11, 3)])
    early("Scale", [images(11, 3)])
    early("Scale", [images(11, 3)], scale=0.25)


def test_image_scaler() -> None:
    early("ImageScaler", [images(11, 3, 4, 13)], scale=0.5, bias=[1.0, -2.0, 3.0])


@pytest.mark.parametrize("shape", [(1, 3, 6, 5), (11, 3, 13, 17)], ids=str)
def test_crop(shape: tuple[int, ...]) -> None:
    early("Crop", [images(*shape)], border=[1, 0, 1, 2])
    early("Crop", [images(*shape)], border=[1, 2, 0, 0], scale=[3, 2])


@pytest.mark.parametrize("across_channels", [0, 1])
@pytest.mark.parametrize("normalize_variance", [0, 1])
@pytest.mark.parametrize("opset", [1, 8])
def test_mean_variance_normalization(
    across_channels: int, normalize_variance: int, opset: int
) -> None:
    words = {"across_channels": across_channels, "normalize_variance": normalize_variance}
    early("MeanVarianceNormalization", [images(2, 3, 4, 5)], opset, **words)


def test_dynamic_slice() -> None:
    inputs = [images(4, 11, 5), np.array([1, -4]), np.array([3, 100]), np.array([0, 2])]
    early("DynamicSlice", inputs, known=[1, 2, 3])
    early("DynamicSlice", inputs[:3], known=[1, 2])


@pytest.mark.parametrize(
    ("op", "shape", "attributes", "reason"),
    [
        ("Crop", (1, 3, 4, 4), {"border": [1, 2, 3]}, "there are four"),
        ("Crop", (1, 3, 4, 4), {"border": [0, 3, 0, 3]}, "leaves nothing"),
        ("Crop", (1, 3, 4, 4), {"border": [0, 0, 0, 0], "scale": [5, 1]}, "asks for more"),
        ("Crop", (3, 4, 4), {"border": [0, 0, 0, 0]}, "four dimensions"),
        ("ImageScaler", (1, 3, 4, 4), {"bias": [1.0, 2.0]}, "cannot be broadcast"),
        ("ScaledTanh", (3,), {"alpha": 1.0}, "`beta` is missing"),
    ],
    ids=lambda part: part if isinstance(part, str) else "",
)
def test_what_they_cannot_do_is_refused(
    op: str, shape: tuple[int, ...], attributes: dict[str, Any], reason: str
) -> None:
    model, _ = node_model(op, [images(*shape)], [1], domain="", standard=7, version=7, **attributes)
    with pytest.raises(ModelError, match=reason):
        tilewright.compile(model, cache=False)
