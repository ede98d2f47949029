"""Small models that are right, to be damaged: together they have all that a model file can hold."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import numpy as np
import onnx
from onnx import external_data_helper, numpy_helper, parser

__all__ = ["SEEDS", "wide_seed", "write_seed"]

OPSETS: Final = '"" : 20, "own" : 1, "ai.onnx.ml" : 3, "com.microsoft" : 1'
HEAD: Final = f"<ir_version: 9, opset_import: [{OPSETS}]>\n"

CONV: Final = """
conv (float[n, 3, 8, 8] x) => (float[n, 5] y) {
  a = Conv <pads = [1, 1, 1, 1], kernel_shape = [3, 3]> (x, w, b)
  r = Relu (a)
  p = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (r)
  n1 = BatchNormalization <epsilon = 0.001> (p, scale, bias, mean, var)
  g = GlobalAveragePool (n1)
  f = Flatten <axis = 1> (g)
  h = Gemm <transB = 1> (f, v, c)
  y = Softmax <axis = -1> (h)
}"""
WIDE: Final = """
wide (float[1, 32, 24, 24] x) => (float[1, 32, 24, 24] y) {
  y = Conv <pads = [1, 1, 1, 1], kernel_shape = [3, 3]> (x, w)
}"""
BLOCK: Final = """
block (float[n, s, 8] x) => (float[n, s, 8] y) {
  l = LayerNormalization <axis = -1> (x, g, be)
  q = MatMul (l, wq)
  k = MatMul (l, wk)
  v = MatMul (l, wv)
  qh = Reshape (q, heads)
  kh = Reshape (k, heads)
  vh = Reshape (v, heads)
  qt = Transpose <perm = [0, 2, 1, 3]> (qh)
  kt = Transpose <perm = [0, 2, 3, 1]> (kh)
  vt = Transpose <perm = [0, 2, 1, 3]> (vh)
  sc = MatMul (qt, kt)
  sd = Div (sc, root)
  sm = Softmax <axis = -1> (sd)
  o = MatMul (sm, vt)
  ot = Transpose <perm = [0, 2, 1, 3]> (o)
  of = Reshape (ot, flat)
  r = Add (x, of)
  ge = Gelu (r)
  y = Add (ge, r)
}"""
LSTM: Final = """
lstm (float[t, n, 4] x) => (float[t, 2, n, 3] y, float[2, n, 3] h) {
  y, h, c = LSTM <hidden_size = 3, direction = "bidirectional"> (x, w, r, b)
}"""
CONTROL: Final = """
control (float[n, 4] x, bool c, int64 trips) => (float[n, 4] y, float[n, 4] z, float[k, n, 4] all) {
  y = If (c) <
    then_branch = yes () => (float[n, 4] p) { p = Relu (x) },
    else_branch = no () => (float[n, 4] q) { q = Neg (x) }
  >
  z, all = Loop (trips, c, x) <
    body = turn (int64 i, bool go, float[n, 4] v) => (bool on, float[n, 4] w, float[n, 4] seen) {
      on = Identity (go)
      w = Mul (v, half)
      seen = Add (w, y)
    }
  >
}"""
QUANTISED: Final = """
quantised (float[n, 4] x) => (float[n, 3] y) {
  q = QuantizeLinear (x, s, zp)
  d = DequantizeLinear (q, s, zp)
  wd = DequantizeLinear <axis = 1> (w, ws, wz)
  m = MatMul (d, wd)
  u, us, uz = DynamicQuantizeLinear (m)
  i = MatMulInteger (u, v, uz)
  f = Cast <to = 1> (i)
  y = Mul (f, us)
}"""
FUNCTIONS: Final = """
calls (float[n, 4] x) => (float[n, 4] y) {
  a = own.twice <by = 2.0> (x)
  y = own.both <amount = 3.0> (a, x)
}
<domain: "own", opset_import: ["" : 20]>
twice <by> (v) => (w) {
  k = Constant <value_float: float = @by> ()
  w = Mul (v, k)
}
<domain: "own", opset_import: ["" : 20, "own" : 1]>
both <amount> (p, q) => (r) {
  s = Add (p, q)
  r = own.twice <by: float = @amount> (s)
}"""
SHAPES: Final = """
shapes (float[n, m] x, int64[k] at) => (float[a, b] y, int64[c] i, float[d, e] z, float[f] v) {
  s = Shape (x)
  first = Gather <axis = 0> (s, zero)
  doubled = Concat <axis = 0> (one, s)
  wide = Expand (x, doubled)
  part = Slice (wide, zeros, ends)
  flat = Reshape (part, minus)
  tiled = Tile (flat, two)
  padded = Pad (tiled, pads)
  v = CumSum (padded, zero)
  numbers = Range (zero, four, step)
  filled = ConstantOfShape <value = int64[1] {7}> (two)
  i0 = Add (numbers, step)
  i = Concat <axis = 0> (i0, filled, at)
  y = GatherElements <axis = 0> (x, where)
  hot = OneHot <axis = -1> (at, four, values)
  r = ReduceSum <keepdims = 0> (hot, one)
  big = Einsum <equation = "i,j->ij"> (r, r)
  t, ti = TopK <axis = 0> (big, one)
  z = Trilu (t)
}"""
IMAGES: Final = """
images (float[1, 2, h, w] x) => (float[1, 2, a, b] y, float[1, 2, c, d] z) {
  y = Resize <mode = "linear", coordinate_transformation_mode = "half_pixel"> (x, , scales)
  t = ConvTranspose <strides = [2, 2], group = 2> (x, k)
  p = AveragePool <kernel_shape = [2, 2], ceil_mode = 1> (t)
  z = Clip (p, low, high)
}"""
LISTS: Final = """
lists (float[n, 2] x, float[n, 2] u) => (float[m, 2] y) {
  s = SequenceConstruct (x, u)
  t = SequenceInsert (s, x)
  y = ConcatFromSequence <axis = 0> (t)
}"""

BOXES: Final = """
boxes (float[1, 3, 4] b, float[1, 2, 3] s, float[1, 2, 6, 6] x, float[1, 4, 4, 2] g)
  => (int64[k, 3] i, float[r, 2, 2, 2] y, float[1, 2, 4, 4] z, float[3, 4] t, int64[q] u) {
  i = NonMaxSuppression (b, s, most, half, low)
  flat = Reshape (b, rows)
  y = RoiAlign <output_height = 2, output_width = 2> (x, flat, images)
  z = GridSample <mode = "bilinear"> (x, g)
  t = ScatterND <reduction = "add"> (flat, where, news)
  n = NonZero (t)
  u, first, back, counts = Unique <axis = 0> (numbers)
}"""
FOREST: Final = """
forest (float[n, 2] x) => (float[n, 1] y, string[n] l) {
  s = ai.onnx.ml.Scaler <offset = [0.5, 0.0], scale = [2.0, 1.0]> (x)
  y = ai.onnx.ml.TreeEnsembleRegressor <
    n_targets = 1, nodes_treeids = [0, 0, 0], nodes_nodeids = [0, 1, 2],
    nodes_featureids = [1, 0, 0], nodes_modes = ["BRANCH_LEQ", "LEAF", "LEAF"],
    nodes_values = [0.5, 0.0, 0.0], nodes_truenodeids = [1, 0, 0],
    nodes_falsenodeids = [2, 0, 0], target_treeids = [0, 0], target_nodeids = [1, 2],
    target_ids = [0, 0], target_weights = [1.5, -2.0]> (s)
  c, p = ai.onnx.ml.LinearClassifier <
    coefficients = [0.5, -1.0, 1.0, 2.0], intercepts = [0.1, 0.2],
    classlabels_ints = [3, 5], post_transform = "SOFTMAX"> (s)
  l = ai.onnx.ml.LabelEncoder <
    keys_int64s = [3, 5], values_strings = ["three", "five"], default_string = "none"> (c)
}"""
FUSED: Final = """
fused (float[n, t, 8] x) => (float[n, t, 4] y, float[n, t, 8] z) {
  h, m, v, r = com.microsoft.SkipLayerNormalization <epsilon = 0.001> (x, x, scale, bias)
  a = com.microsoft.Attention <num_heads = 2> (h, w, b)
  g = com.microsoft.BiasGelu (a, bias)
  z = com.microsoft.FusedMatMul <alpha = 0.5, transB = 1> (g, square)
  y = com.microsoft.MatMulNBits <K = 8, N = 4, bits = 4, block_size = 16> (z, packed, scales)
}"""
TEXT: Final = """
text (string[n] x, float[n] v) => (string[n] y, string[n, k] parts, int64[n] c, float[n] w) {
  s = StringConcat (x, x)
  y = StringNormalizer <case_change_action = "UPPER", is_case_sensitive = 1> (s)
  parts, c = StringSplit <delimiter = ","> (x)
  small = Cast <to = 17> (v)
  w = Cast <to = 1> (small)
}"""


def _floats(*shape: int) -> np.ndarray:
    size = int(np.prod(shape))
    return np.linspace(-1, 1, size, dtype=np.float32).reshape(shape)


def _integers(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def _bytes(*shape: int) -> np.ndarray:
    return np.arange(int(np.prod(shape)), dtype=np.int8).reshape(shape)


WEIGHTS: Final[Mapping[str, dict[str, np.ndarray]]] = {
    "conv": {"w": _floats(4, 3, 3, 3), "b": _floats(4), "scale": _floats(4), "bias": _floats(4)}
    | {"mean": _floats(4), "var": np.ones(4, np.float32), "v": _floats(5, 4), "c": _floats(5)},
    "wide": {"w": _floats(32, 32, 3, 3)},
    "block": {"wq": _floats(8, 8), "wk": _floats(8, 8), "wv": _floats(8, 8)}
    | {"g": _floats(8), "be": _floats(8), "root": np.array(2, np.float32)}
    | {"heads": _integers(0, -1, 2, 4), "flat": _integers(0, -1, 8)},
    "lstm": {"w": _floats(2, 12, 4), "r": _floats(2, 12, 3), "b": _floats(2, 24)},
    "control": {"half": np.array(0.5, np.float32)},
    "quantised": {"s": np.array(0.1, np.float32), "ws": _floats(3)}
    | {"zp": np.array(128, np.uint8)}
    | {"w": _bytes(4, 3), "wz": _bytes(3), "v": _bytes(3, 3)},
    "functions": {},
    "shapes": {"zero": np.array(0), "one": _integers(1), "two": _integers(2), "four": np.array(4)}
    | {"zeros": _integers(0, 0, 0), "ends": _integers(9, 9, 9), "minus": _integers(-1)}
    | {"pads": _integers(1, 2), "step": np.array(1), "values": _floats(2)}
    | {"where": np.zeros((1, 2), np.int64)},
    "images": {"scales": np.array([1, 1, 2, 1.5], np.float32), "k": _floats(2, 1, 3, 3)}
    | {"low": np.array(0, np.float32), "high": np.array(6, np.float32)},
    "lists": {},
    "boxes": {"most": _integers(2), "half": _floats(1), "low": _floats(1)}
    | {"rows": _integers(3, 4), "images": _integers(0, 0, 0), "numbers": _integers(3, 1, 3)}
    | {"where": np.array([[0], [2]]), "news": _floats(2, 4)},
    "forest": {},
    "fused": {"scale": _floats(8), "bias": _floats(8), "w": _floats(8, 24), "b": _floats(24)}
    | {"square": _floats(8, 8), "packed": np.full((4, 1, 8), 0x59, np.uint8)}
    | {"scales": _floats(4)},
    "text": {},
}


def _text_seed(name: str, text: str) -> Callable[[], onnx.ModelProto]:
    def make() -> onnx.ModelProto:
        model = parser.parse_model(HEAD + text.strip())
        tensors = [numpy_helper.from_array(a, n) for n, a in WEIGHTS[name].items()]
        model.graph.initializer.extend(tensors)
        return model

    return make


TEXTS: Final = {"conv": CONV, "block": BLOCK, "lstm": LSTM, "control": CONTROL}
TEXTS_MORE: Final = {"quantised": QUANTISED, "functions": FUNCTIONS, "shapes": SHAPES}
TEXTS_OTHER: Final = {"images": IMAGES, "lists": LISTS, "boxes": BOXES, "forest": FOREST}
TEXTS_LAST: Final = {"fused": FUSED, "text": TEXT}

SEEDS: Final[Mapping[str, Callable[[], onnx.ModelProto]]] = {
    name: _text_seed(name, text)
    for name, text in {**TEXTS, **TEXTS_MORE, **TEXTS_OTHER, **TEXTS_LAST}.items()
}
"""Models by name; `write_seed` also knows `external`, the first of them with data beside it."""


wide_seed: Final = _text_seed("wide", WIDE)
"""A model with Winograd weights, for a small file."""


def write_seed(name: str, folder: Path) -> onnx.ModelProto:
    """A seed with what must lie beside it."""
    if name != "external":
        return SEEDS[name]()
    model = SEEDS["conv"]()
    external_data_helper.convert_model_to_external_data(
        model, location="weights.bin", size_threshold=0, convert_attribute=True
    )
    external_data_helper.write_external_data_tensors(model, str(folder))
    return model
