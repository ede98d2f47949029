"""The modules that hold handlers, one for each family of operators."""

from __future__ import annotations

import importlib

__all__ = ["FAMILIES", "load"]

FAMILIES = (
    "activations",
    "arithmetic",
    "attention",
    "constants",
    "contrib_arithmetic",
    "contrib_attention",
    "contrib_blocks",
    "contrib_experts",
    "contrib_grouped",
    "contrib_layers",
    "contrib_nchwc",
    "contrib_positions",
    "contrib_quantized",
    "contrib_recurrent",
    "contrib_regions",
    "contrib_standard",
    "control",
    "conversions",
    "convolution",
    "deformed",
    "determinant",
    "early",
    "einsum",
    "fourier",
    "fused",
    "indexing",
    "logic",
    "mel",
    "ml_features",
    "ml_linear",
    "ml_trees",
    "ml_vectors",
    "movement",
    "ngrams",
    "normalization",
    "optimizers",
    "pooling",
    "products",
    "quantization",
    "random_numbers",
    "recurrent",
    "reductions",
    "regions",
    "sequences",
    "resize",
    "sampling",
    "shapes",
    "slices",
    "sorting",
    "suppression",
    "unique",
    "unpooling",
)


def load() -> None:
    """Import all families, which registers their handlers."""
    for family in FAMILIES:
        importlib.import_module(f"tilewright.frontend.onnx.{family}")
