"""Tensor instructions and math functions: meaning and implementation, both in tensor IR."""

from tilewright.intrin import arm as _arm  # noqa: F401  (registers them)
from tilewright.intrin import contractions as _contractions  # noqa: F401
from tilewright.intrin import x86 as _x86  # noqa: F401
from tilewright.intrin.functions import define_function
from tilewright.intrin.intrinsic import FAMILIES, TensorIntrinsic, intrinsic, lookup

__all__ = ["FAMILIES", "TensorIntrinsic", "define_function", "intrinsic", "lookup"]
