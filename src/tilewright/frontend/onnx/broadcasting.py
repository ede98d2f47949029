"""Operators whose inputs are broadcast: a size may be one where another one is not.

All others say that sizes are equal. Both meet in the same operators of a graph, in which two sizes
that nobody can compare are taken for equal: only here is it known what a run may do instead.
"""

from __future__ import annotations

from typing import Final

__all__ = ["broadcasts"]

_STANDARD: Final = (
    "Add Sub Mul Div Pow Mod And Or Xor Equal Greater GreaterOrEqual Less LessOrEqual "
    "BitShift BitwiseAnd BitwiseOr BitwiseXor Where Max Min Mean Sum PRelu Expand "
    "MatMul MatMulInteger QLinearMatMul Gemm Einsum Attention "
    "LayerNormalization RMSNormalization SimplifiedLayerNormalization"
)
_CONTRIB: Final = (
    "FusedMatMul FusedMatMulActivation TransposeMatMul FusedGemm GemmFastGelu MatMulInteger16 "
    "MatMulIntegerToFloat DynamicQuantizeMatMul MulInteger QLinearAdd QLinearMul QLinearWhere "
    "QGemm BiasSoftmax ComplexMul ComplexMulConj MultiHeadAttention SimplifiedLayerNormalization "
    "SkipLayerNormalization SkipSimplifiedLayerNormalization"
)
_OPERATORS: Final = frozenset(
    (domain, name)
    for domain, names in (("", _STANDARD), ("com.microsoft", _CONTRIB))
    for name in names.split()
)


def broadcasts(domain: str, operator: str) -> bool:
    """Whether an operator broadcasts its inputs, or some of them."""
    return (domain, operator) in _OPERATORS
