"""One node of each operator that relates several sizes, as it should be used.

`resized` changes what is right here, one dimension at a time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

__all__ = ["FORESTS", "OPERATORS", "OWN", "Operator"]

RNG = np.random.default_rng(0)
OWN, ML = "com.microsoft", "ai.onnx.ml"


def f(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def up(*shape: int) -> np.ndarray:
    return np.abs(f(*shape)) + np.float32(0.1)


def u8(*shape: int) -> np.ndarray:
    return RNG.integers(0, 255, shape).astype(np.uint8)


def i64(high: int, *shape: int) -> np.ndarray:
    return RNG.integers(0, high, shape)


def i32(high: int, *shape: int) -> np.ndarray:
    return RNG.integers(1, high, shape).astype(np.int32)


ONE, ZERO = np.float32(0.1), np.uint8(3)


@dataclass(frozen=True)
class Operator:
    """A node; inputs in `known` are constants, those in `static` have sizes that are numbers.

    `last` is how many of the last dimensions of all inputs are numbers, too.
    """

    op: str
    inputs: Sequence[Any]
    attributes: Mapping[str, Any] = field(default_factory=dict)
    known: Sequence[int] = ()
    static: Sequence[int] = ()
    last: int = 0
    outputs: int = 1
    domain: str = ""
    opset: int = 22

    @property
    def name(self) -> str:
        """What it is called when something happens."""
        said = ", ".join(f"{k}={v}" for k, v in self.attributes.items() if len(str(v)) < 20)
        return f"{self.op}({said})"

    def options(self) -> dict[str, Any]:
        """How the node is made."""
        return {
            "attributes": self.attributes,
            "known": self.known,
            "outputs": self.outputs,
            "domain": self.domain,
            "opset": self.opset,
        }

    def sized(self, number: int, rank: int) -> range:
        """Dimensions of an input that are numbers."""
        return range(rank) if number in self.static else range(max(rank - self.last, 0), rank)


def node(op: str, *inputs: Any, **options: Any) -> Operator:
    """A node of the standard; what is no field of an `Operator` is an attribute."""
    own = {key: options.pop(key) for key in FIELDS if key in options}
    return Operator(op, inputs, options, **own)


def contrib(op: str, *inputs: Any, **options: Any) -> Operator:
    return node(op, *inputs, domain=OWN, **options)


def ml(op: str, *inputs: Any, **options: Any) -> Operator:
    return node(op, *inputs, domain=ML, **options)


FIELDS = ("known", "static", "last", "outputs", "domain", "opset")

WINDOWS = [
    node("Conv", f(1, 4, 8, 8), f(6, 4, 3, 3), f(6), static=(1,)),
    node("Conv", f(1, 4, 8, 8), f(6, 2, 3, 3), f(6), static=(1,), group=2),
    node("Conv", f(1, 1, 6, 6), f(2, 1, 3, 3), static=(1,), pads=[2] * 4),
    node("Conv", f(1, 1, 6, 6), f(2, 1, 3, 3), static=(1,), auto_pad="SAME_UPPER", strides=[2, 2]),
    node("ConvTranspose", f(1, 4, 6, 6), f(4, 3, 3, 3), f(3), static=(1,)),
    node("ConvTranspose", f(1, 4, 6, 6), f(4, 3, 3, 3), static=(1,), output_padding=[1, 1],
         strides=[2, 2]),
    node("DeformConv", f(1, 2, 6, 6), f(3, 2, 2, 2), f(1, 8, 5, 5), f(3), f(1, 4, 5, 5),
         static=(1,), kernel_shape=[2, 2]),
    node("MaxPool", f(1, 2, 6, 6), kernel_shape=[3, 3], pads=[1] * 4, dilations=[2, 2]),
    node("MaxPool", f(1, 2, 6, 6), kernel_shape=[2, 2], pads=[1] * 4, outputs=2),
    node("AveragePool", f(1, 2, 6, 6), kernel_shape=[3, 3], pads=[1] * 4),
    node("LpPool", f(1, 2, 6, 6), kernel_shape=[2, 2]),
    node("MaxUnpool", f(1, 2, 3, 3), i64(36, 1, 2, 3, 3), kernel_shape=[2, 2], strides=[2, 2]),
    node("Col2Im", f(1, 12, 4), np.array([3, 3]), np.array([2, 2]), known=(1, 2)),
    node("LRN", f(1, 6, 4, 4), size=3),
    node("GridSample", f(2, 3, 5, 5), f(2, 4, 4, 2)),
    node("GridSample", f(1, 1, 4, 4), f(1, 2, 2, 2), mode="nearest", padding_mode="reflection"),
    node("RoiAlign", f(2, 3, 8, 8), up(4, 4), i64(2, 4), output_height=2, output_width=2),
    node("RoiAlign", f(2, 3, 8, 8), up(4, 4), i64(2, 4), mode="max", sampling_ratio=2),
    node("MaxRoiPool", f(2, 3, 8, 8), up(4, 5), pooled_shape=[2, 2]),
    node("NonMaxSuppression", up(1, 6, 4), up(1, 2, 6), np.array([3]), np.array([0.5], "f4"),
         known=(2, 3)),
    node("Resize", f(1, 1, 4, 4), None, np.array([1, 1, 2, 2], "f4"), known=(2,)),
    node("Resize", f(1, 1, 4, 4), None, np.array([1, 1, 2, 2], "f4"), known=(2,), mode="linear"),
    node("AffineGrid", f(1, 2, 3), np.array([1, 1, 3, 3]), known=(1,)),
]  # fmt: skip

PRODUCTS = [
    node("Gemm", f(4, 5), f(5, 6), f(6)),
    node("MatMul", f(2, 4, 5), f(2, 5, 6)),
    node("Einsum", f(4, 5), f(5, 6), equation="ij,jk->ik"),
    node("Einsum", f(4, 4), f(4), equation="ii,i->i"),
    node("Det", f(2, 3, 3), last=2),
    node("LSTM", f(3, 2, 4), f(1, 16, 4), f(1, 16, 4), f(1, 32), i32(3, 2), f(1, 2, 4), f(1, 2, 4),
         f(1, 12), static=(1, 2, 3, 7), hidden_size=4),
    node("GRU", f(3, 2, 4), f(1, 12, 4), f(1, 12, 4), f(1, 24), i32(3, 2), f(1, 2, 4),
         static=(1, 2, 3), hidden_size=4),
    node("RNN", f(3, 2, 4), f(1, 4, 4), f(1, 4, 4), f(1, 8), static=(1, 2, 3), hidden_size=4),
    node("Attention", f(1, 2, 5, 8), f(1, 2, 7, 8), f(1, 2, 7, 8), f(5, 7), opset=23),
    node("Attention", f(1, 4, 5, 8), f(1, 2, 7, 8), f(1, 2, 7, 8), f(1, 1, 5, 10), f(1, 2, 3, 8),
         f(1, 2, 3, 8), opset=23, outputs=3, static=(3,)),
    node("Attention", f(1, 5, 16), f(1, 7, 16), f(1, 7, 16), opset=23, q_num_heads=2,
         kv_num_heads=2),
    node("RotaryEmbedding", f(2, 3, 4, 8), f(20, 4), f(20, 4), i64(20, 2, 4), opset=23),
    node("RotaryEmbedding", f(2, 3, 4, 8), f(2, 4, 4), f(2, 4, 4), opset=23, interleaved=1),
    contrib("FusedMatMul", f(2, 4, 5), f(2, 5, 6)),
    contrib("CDist", f(4, 3), f(5, 3)),
    contrib("Inverse", f(2, 3, 3), last=2),
    contrib("MoE", f(3, 8), f(3, 4), f(4, 6, 8), f(4, 6), f(4, 8, 6), f(4, 8), k=2,
            static=(2, 3, 4, 5)),
    contrib("Attention", f(2, 5, 16), f(16, 48), f(48), i32(5, 2), num_heads=2, static=(1, 2),
            last=1),
    contrib("MultiHeadAttention", f(2, 5, 16), f(2, 7, 16), f(2, 7, 16), f(48),
            i32(2, 2, 7), f(2, 2, 5, 7), num_heads=2, static=(3, 4, 5), last=1),
    contrib("MultiHeadAttention", f(2, 5, 16), f(2, 2, 7, 8), f(2, 2, 7, 8), num_heads=2,
            static=(1, 2), last=1),
    contrib("GroupQueryAttention", f(2, 1, 32), f(2, 1, 16), f(2, 1, 16), f(2, 2, 8, 8),
            f(2, 2, 8, 8), i32(5, 2), np.array(6, "i4"), f(16, 4), f(16, 4), num_heads=4,
            kv_num_heads=2, do_rotary=1, outputs=3, last=1),
    contrib("RotaryEmbedding", f(2, 5, 16), i64(9, 2, 5), f(10, 4), f(10, 4), num_heads=2),
    contrib("BiasSoftmax", f(2, 3, 4, 5), f(2, 1, 1, 5), axis=3, is_inner_broadcast=1,
            static=(1,)),
    contrib("QAttention", u8(2, 5, 16), u8(16, 48), f(48), ONE, f(48), i32(5, 2), ZERO, u8(48),
            num_heads=2, static=(1, 2, 4, 7), last=1),
]  # fmt: skip

PLACES = [
    node("ScatterND", f(6, 5), i64(6, 3, 1), f(3, 5), static=(1,)),
    node("ScatterElements", f(6, 5), i64(6, 3, 5), f(3, 5), axis=0),
    node("GatherElements", f(6, 5), i64(6, 3, 5), axis=0),
    node("GatherND", f(3, 6, 5), i64(6, 3, 2, 1), batch_dims=1, last=1),
    node("Gather", f(6, 5), i64(6, 3)),
    node("TensorScatter", f(2, 3, 8, 4), f(2, 3, 2, 4), i64(4, 2), opset=24),
    node("Compress", f(6, 4), np.arange(6) % 2 == 0, axis=0),
    node("ReverseSequence", f(4, 3, 2), 1 + i64(3, 3)),
    node("NegativeLogLikelihoodLoss", f(3, 5), i64(5, 3), f(5)),
    node("SoftmaxCrossEntropyLoss", f(3, 5), i64(5, 3), f(5)),
    node("OneHot", i64(5, 3), np.array([5]), f(2), known=(1,)),
    node("TopK", f(3, 6), np.array([4]), known=(1,), outputs=2),
    node("Unique", f(9)),
    node("Where", np.arange(12).reshape(3, 4) % 2 == 0, f(3, 4), f(4)),
    contrib("EmbedLayerNormalization", i32(9, 2, 5), i32(2, 2, 5), f(9, 8), f(6, 8), f(2, 8), f(8),
            f(8), i32(2, 2, 5)),
    contrib("NGramRepeatBlock", i64(9, 2, 6), f(2, 10), ngram_size=3),
    contrib("CropAndResize", f(2, 3, 6, 6), up(3, 4), i32(2, 3), np.array([3, 3], "i4"),
            known=(3,)),
    ml("ArrayFeatureExtractor", f(4, 6), i64(6, 3)),
]  # fmt: skip

MOVEMENTS = [
    node("Concat", f(3, 4), f(2, 4), axis=0),
    node("Expand", f(3, 1), np.array([3, 4]), known=(1,)),
    node("Slice", f(6, 6), np.array([1]), np.array([5]), known=(1, 2)),
    node("Split", f(6, 4), np.array([2, 4]), known=(1,), outputs=2),
    node("Pad", f(3, 4), np.array([1, 1, 1, 1]), known=(1,)),
    node("Pad", f(3, 4), np.array([1, 1, 1, 1]), known=(1,), mode="reflect"),
    node("Pad", f(3, 4), np.array([1, 1, 1, 1]), known=(1,), mode="edge"),
    node("Pad", f(3, 4), np.array([1, 1, 1, 1]), known=(1,), mode="wrap"),
    node("CenterCropPad", f(5, 5), np.array([3, 8]), known=(1,)),
    node("Reshape", f(4, 6), np.array([6, -1]), known=(1,)),
    node("DepthToSpace", f(1, 8, 3, 3), blocksize=2),
    node("SpaceToDepth", f(1, 2, 4, 4), blocksize=2),
    node("Tile", f(3, 4), np.array([2, 3]), known=(1,)),
    node("Trilu", f(4, 5)),
    node("EyeLike", f(4, 5)),
    node("CumSum", f(3, 4), np.array(1), known=(1,)),
    node("STFT", f(1, 32, 1), np.array(4), np.ones(8, "f4"), known=(1, 2), last=1),
    node("DFT", f(1, 8, 1), np.array(16), known=(1,), last=1),
    contrib("UnfoldTensor", f(3, 8), size=3, step=2, dim=1),
    contrib("Irfft", f(2, 5, 2), signal_ndim=1, onesided=1, normalized=0, last=1),
    ml("FeatureVectorizer", f(4, 2), f(4, 3), inputdimensions=[2, 3]),
    ml("FeatureVectorizer", f(4, 2), f(4, 3), inputdimensions=[1, 1]),
]  # fmt: skip

ELEMENTS = [
    node("BatchNormalization", f(2, 4, 5, 5), f(4), f(4), f(4), up(4)),
    node("InstanceNormalization", f(2, 4, 5, 5), f(4), f(4)),
    node("LayerNormalization", f(2, 4, 8), f(8), f(8)),
    node("GroupNormalization", f(2, 4, 5, 5), f(4), f(4), num_groups=2),
    node("RMSNormalization", f(2, 4, 8), f(8), opset=23),
    node("PRelu", f(2, 4, 5), f(4, 1), last=1),
    node("Sum", f(3, 4), f(4), f(3, 1), last=1),
    node("ReduceMax", f(4, 6), np.array([1]), known=(1,)),
    node("BitShift", u8(3, 4), u8(4), direction="LEFT"),
    contrib("SkipLayerNormalization", f(2, 5, 8), f(2, 5, 8), f(8), f(8), f(8)),
    contrib("BiasGelu", f(2, 8), f(8)),
    contrib("GroupNorm", f(1, 4, 4, 8), f(8), f(8), groups=2, activation=0),
    contrib("SkipGroupNorm", f(1, 4, 4, 8), f(8), f(8), f(1, 8), f(8), groups=2, activation=0,
            outputs=2),
    contrib("BiasSplitGelu", f(2, 3, 8), f(8)),
    contrib("ComplexMul", f(3, 2), f(3, 2)),
    ml("Scaler", f(4, 2), offset=[1.0, 2.0], scale=[1.0, 2.0]),
    ml("LinearRegressor", f(4, 2), coefficients=[1.0, 2.0], targets=1),
    ml("Imputer", f(4, 2), imputed_value_floats=[1.0, 2.0]),
    ml("Normalizer", f(4, 2), norm="L2"),
    ml("SVMRegressor", f(4, 2), coefficients=[1.0, 2.0], support_vectors=[1.0, 2.0, 3.0, 4.0],
       n_supports=2, kernel_type="RBF", kernel_params=[1.0, 0.0, 0.0], rho=[0.1]),
]  # fmt: skip

QUANTIZED = [
    node("QLinearConv", u8(1, 4, 8, 8), ONE, ZERO, u8(6, 4, 3, 3), up(6), u8(6), ONE, ZERO,
         i32(9, 6), static=(3,)),
    node("ConvInteger", u8(1, 4, 8, 8), u8(6, 4, 3, 3), ZERO, u8(6), static=(1,)),
    node("QLinearMatMul", u8(4, 5), ONE, ZERO, u8(5, 6), up(6), u8(6), ONE, ZERO),
    node("MatMulInteger", u8(4, 5), u8(5, 6), u8(4), u8(6)),
    node("QuantizeLinear", f(3, 4, 5), up(4), u8(4), axis=1),
    node("DequantizeLinear", u8(3, 4, 5), up(4), u8(4), axis=1),
    node("DequantizeLinear", u8(3, 8, 5), up(3, 2, 5), u8(3, 2, 5), axis=1, block_size=4),
    node("QuantizeLinear", f(3, 8, 5), up(3, 2, 5), u8(3, 2, 5), axis=1, block_size=4),
    contrib("MatMulNBits", f(2, 32), u8(6, 2, 8), f(12), u8(6), K=32, N=6, bits=4, block_size=16),
    contrib("GatherBlockQuantized", u8(6, 16), i64(6, 3), f(6, 2), u8(6, 1), bits=4,
            block_size=16),
    contrib("MatMulBnb4", f(2, 32), u8(96), f(12), K=32, N=6, block_size=16, quant_type=1),
    contrib("DynamicQuantizeMatMul", f(2, 8), u8(8, 6), f(6), u8(6), f(6)),
    contrib("MatMulIntegerToFloat", u8(2, 8), u8(8, 6), ONE, f(6), ZERO, u8(6), f(6)),
    contrib("QLinearAdd", u8(3, 4), ONE, ZERO, u8(4), ONE, ZERO, ONE, ZERO),
    contrib("QGemm", u8(3, 4), ONE, ZERO, u8(4, 6), f(6), u8(6), i32(5, 6)),
    contrib("QLinearConcat", ONE, ZERO, u8(2, 3), ONE, ZERO, u8(2, 2), ONE, ZERO, axis=1),
    contrib("QLinearReduceMean", u8(3, 4), ONE, ZERO, ONE, ZERO, axes=[1]),
]  # fmt: skip

TREES = {
    "nodes_treeids": [0, 0, 0, 0, 0, 1, 1, 1],
    "nodes_nodeids": [0, 1, 2, 3, 4, 0, 1, 2],
    "nodes_featureids": [0, 1, 0, 0, 0, 1, 0, 0],
    "nodes_modes": [*["BRANCH_LEQ"] * 2, *["LEAF"] * 3, "BRANCH_LEQ", *["LEAF"] * 2],
    "nodes_values": [0.1, -0.2, 0.0, 0.0, 0.0, 0.3, 0.0, 0.0],
    "nodes_truenodeids": [1, 3, 0, 0, 0, 1, 0, 0],
    "nodes_falsenodeids": [2, 4, 0, 0, 0, 2, 0, 0],
}
LEAVES = {
    "treeids": [0, 0, 0, 1, 1],
    "nodeids": [2, 3, 4, 1, 2],
    "weights": [0.3, 0.7, 0.2, 0.5, 0.1],
}

FORESTS = [
    ml("TreeEnsembleRegressor", f(4, 2), **TREES, n_targets=1, target_ids=[0] * 5,
       **{f"target_{key}": value for key, value in LEAVES.items()}),
    ml("TreeEnsembleClassifier", f(4, 2), **TREES, outputs=2, classlabels_int64s=[1, 2, 3],
       class_ids=[0, 1, 0, 2, 0], **{f"class_{key}": value for key, value in LEAVES.items()}),
]  # fmt: skip

OPERATORS = [*WINDOWS, *PRODUCTS, *PLACES, *MOVEMENTS, *ELEMENTS, *QUANTIZED, *FORESTS]
