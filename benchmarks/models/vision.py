"""Image models from the configurations of transformers: classifiers and a segmentation model.

The detector is written here.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from benchmarks.models.spec import Exported, Input, Model, image

__all__ = ["MODELS"]

LABELS: Final = 1000
YOLO_SIDE: Final = 320


def build(architecture: str, side: int, **settings: Any) -> Any:
    """An image model of transformers that gives its logits alone."""
    import transformers

    from benchmarks.models.torch_modules import FirstResult, seeded

    config = getattr(transformers, f"{architecture.partition('For')[0]}Config")
    settings = {"num_labels": LABELS, **settings}

    def make() -> Any:
        inner = getattr(transformers, architecture)(config(**settings))
        if hasattr(inner, "efficientnet"):
            _pool_all(inner.efficientnet)
        return FirstResult(inner, "logits")

    return seeded(make, 4, 3, side, side)


def _pool_all(inner: Any) -> None:
    """The mean of all pixels, instead of one over a window far larger than the picture.

    The result is the same, but some peers refuse such a window.
    """
    from torch import nn

    inner.pooler = nn.AdaptiveAvgPool2d(1)


def _detector(side: int) -> Any:
    from benchmarks.models.torch_detector import Detector
    from benchmarks.models.torch_modules import seeded

    return seeded(Detector, 4, 3, side, side)


def _model(name: str, architecture: str, side: int = 224, **settings: Any) -> Model:
    return _of_pictures(
        name, Exported(partial(build, architecture, side, **settings), ("logits",)), side
    )


def _of_pictures(name: str, source: Exported, side: int) -> Model:
    return Model(
        name,
        "vision",
        source,
        (Input("pixel_values", ("batch", 3, side, side), image),),
        ({"batch": 1}, {"batch": 4}),
        dynamic=("batch",),
        tolerance=2e-4,
    )


MODELS: Final = (
    _model("mobilenet-v2", "MobileNetV2ForImageClassification"),
    _model(
        "resnet18",
        "ResNetForImageClassification",
        embedding_size=64,
        hidden_sizes=[64, 128, 256, 512],
        depths=[2, 2, 2, 2],
        layer_type="basic",
    ),
    _model("resnet50", "ResNetForImageClassification"),
    _model(
        "efficientnet-b0",
        "EfficientNetForImageClassification",
        image_size=224,
        width_coefficient=1.0,
        depth_coefficient=1.0,
        hidden_dim=1280,
    ),
    _of_pictures(
        "yolo", Exported(partial(_detector, YOLO_SIDE), ("fine", "middle", "coarse")), YOLO_SIDE
    ),
    _model("convnext-tiny", "ConvNextForImageClassification"),
    _model("vit-base", "ViTForImageClassification"),
    _model("swin-tiny", "SwinForImageClassification"),
    _model("segformer-b0", "SegformerForSemanticSegmentation", side=512, num_labels=150),
)
