"""The modules that hold handlers, one for each family of operators."""

from __future__ import annotations

import importlib

__all__ = ["FAMILIES", "load"]

FAMILIES = (
    "activations",
    "arithmetic",
    "attention",
    "constants",
    "contrib_attention",
    "control",
    "conversions",
    "convolution",
    "einsum",
    "fused",
    "indexing",
    "logic",
    "movement",
    "normalization",
    "pooling",
    "products",
    "quantization",
    "recurrent",
    "reductions",
    "sequences",
    "resize",
    "sampling",
    "shapes",
    "sorting",
)


def load() -> None:
    """Import all families, which registers their handlers."""
    for family in FAMILIES:
        importlib.import_module(f"tilewright.frontend.onnx.{family}")
