"""Models that packages bring as ONNX files: reading of text in pictures, and voice activity."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from benchmarks.models.spec import Input, Model, Packaged, normal, value, zeros

__all__ = ["MODELS", "page"]

OCR: Final = "rapidocr_onnxruntime"


def page(rng: np.random.Generator, shape: tuple[int, ...]) -> NDArray[Any]:
    """Lines of dark strokes on light paper: on noise the detection finds nothing at all."""
    picture = 2 + 0.05 * rng.standard_normal(shape)
    height, width = shape[2:]
    for top in range(16, height - 24, 48):
        for left in range(16, width - 16, 20):
            down = top + rng.integers(4, 20)
            picture[..., top : top + 22, left : left + 3] -= 4
            picture[..., down : down + 3, left + 3 : left + 12] -= 4
    return picture.astype("f4")


MODELS: Final = (
    Model(
        "silero-vad",
        "packaged",
        Packaged("silero_vad", "data/silero_vad.onnx", takes_numbers=False),
        (
            Input("input", ("batch", "samples"), normal(0.1)),
            Input("state", (2, "batch", 128), zeros()),
            Input("sr", (), value(16000)),
        ),
        ({"batch": 1, "samples": 576}, {"batch": 4, "samples": 576}),
        dynamic=("batch", "samples"),
    ),
    Model(
        "ocr-orientation",
        "packaged",
        Packaged(OCR, "models/ch_ppocr_mobile_v2.0_cls_infer.onnx"),
        (Input("x", ("batch", 3, "height", "width"), page),),
        ({"batch": 1, "height": 48, "width": 192}, {"batch": 6, "height": 48, "width": 192}),
        dynamic=("batch", "height", "width"),
    ),
    Model(
        "ocr-recognition",
        "packaged",
        Packaged(OCR, "models/ch_PP-OCRv4_rec_infer.onnx"),
        (Input("x", ("batch", 3, "height", "width"), page),),
        (
            {"batch": 1, "height": 48, "width": 320},
            {"batch": 1, "height": 48, "width": 480},
            {"batch": 6, "height": 48, "width": 320},
        ),
        dynamic=("batch", "height", "width"),
    ),
    Model(
        "ocr-detection",
        "packaged",
        Packaged(OCR, "models/ch_PP-OCRv4_det_infer.onnx"),
        (Input("x", ("batch", 3, "height", "width"), page),),
        (
            {"batch": 1, "height": 480, "width": 640},
            {"batch": 1, "height": 736, "width": 736},
        ),
        dynamic=("batch", "height", "width"),
    ),
)
