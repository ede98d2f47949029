"""Which limit of `accuracy` holds for which operator: all of the standard domain with a handler.

An operator that is several steps (a recurrent layer, a normalisation with an activation) has the
errors of its steps; the table names these. A test asks that no operator is left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

__all__ = ["KINDS", "Kind"]


@dataclass(frozen=True)
class Kind:
    """Operators whose results differ from exact ones in the same way."""

    error: str
    operators: tuple[str, ...]


def _kind(error: str, operators: str) -> Kind:
    return Kind(error, tuple(operators.split()))


KINDS: Final = (
    _kind(
        "none: data are moved, chosen, counted or compared",
        "And ArgMax ArgMin BitCast BitShift BitwiseAnd BitwiseNot BitwiseOr BitwiseXor "
        "CenterCropPad Compress Concat ConcatFromSequence Constant ConstantOfShape Crop "
        "DepthToSpace DynamicSlice Equal Expand EyeLike Flatten Gather GatherElements GatherND "
        "GlobalMaxPool Greater GreaterOrEqual Hardmax Identity If IsInf IsNaN Less LessOrEqual "
        "Loop MaxPool MaxRoiPool MaxUnpool NonZero Not OneHot Optional OptionalGetElement "
        "OptionalHasElement Or Pad ReduceMax ReduceMin Reshape ReverseSequence Scan SequenceAt "
        "SequenceConstruct SequenceEmpty SequenceErase SequenceInsert SequenceLength SequenceMap "
        "Shape Sign Size Slice SpaceToDepth Split SplitToSequence Squeeze TensorScatter Tile TopK "
        "Transpose Trilu Unique Unsqueeze Where Xor",
    ),
    _kind(
        "0.5 ulp: one rounding, that of the result",
        "Abs Add Cast CastLike Ceil Clip Div Floor Max Min Mod Mul Neg Range Reciprocal Relu Round "
        "Scale Sqrt Sub ThresholdedRelu",
    ),
    _kind(
        "one rounding for each of their few operations",
        "Affine AffineGrid HardSigmoid HardSwish ImageScaler LeakyRelu PRelu RotaryEmbedding "
        "Shrink Softsign",
    ),
    _kind(
        "none: the bits of the standard's definition, each operation rounded once, half to even; "
        "integers are exact",
        "ConvInteger DequantizeLinear DynamicQuantizeLinear MatMulInteger QLinearConv "
        "QLinearMatMul QuantizeLinear",
    ),
    _kind(
        "of a function, in ulp, as listed above and in [functions.md](functions.md); 4 ulp of the "
        "largest intermediate value where several are combined",
        "Acos Acosh Asin Asinh Atan Atanh Celu Cos Cosh Elu Erf Exp Gelu Log Mish "
        "ParametricSoftplus Pow ScaledTanh Selu Sigmoid Sin Sinh Softplus Swish Tan Tanh",
    ),
    _kind(
        "of a sum of n terms: n·u·Σ|terms|",
        "AveragePool Col2Im Conv ConvTranspose CumSum Einsum Gemm GlobalAveragePool MatMul Mean "
        "ReduceL1 ReduceMean ReduceSum ReduceSumSquare Scatter ScatterElements ScatterND Sum",
    ),
    _kind(
        "of a sum, then of the function that is applied to it",
        "GlobalLpPool LRN LpNormalization LpPool ReduceL2 ReduceLogSum ReduceLogSumExp "
        "TfIdfVectorizer",
    ),
    _kind("n·u relative, of a product of n factors", "CumProd ReduceProd"),
    _kind("of a sum over the terms of a transform or an elimination", "DFT Det STFT"),
    _kind(
        "of positions, rounded in the type of the coordinates, times the slope of the data, and of "
        "a sum of the elements around them",
        "DeformConv GridSample Resize RoiAlign Upsample",
    ),
    _kind(
        "of a softmax: (n + |x - max x|)·u·y; its logarithm: (n + |x - max x|)·u",
        "LogSoftmax Softmax",
    ),
    _kind(
        "of a normalisation: n·u·|scale|·(max|x|/σ + |y|)",
        "BatchNormalization GroupNormalization InstanceNormalization LayerNormalization "
        "MeanVarianceNormalization RMSNormalization SimplifiedLayerNormalization",
    ),
    _kind("of attention, as above", "Attention"),
    _kind("of products and functions, handed on from step to step", "GRU LSTM RNN"),
    _kind(
        "of a sum of products of areas: boxes whose overlap is the threshold go either way",
        "NonMaxSuppression",
    ),
    _kind("a few ulp of the frequencies", "MelWeightMatrix"),
    _kind(
        "none to speak of: numbers are random, and equal for equal seeds",
        "Bernoulli Dropout Multinomial RandomNormal RandomNormalLike RandomUniform "
        "RandomUniformLike",
    ),
)
