"""A model node by node: what each gives, with rounding errors added on request.

The generator grows graphs by it, since it tells shapes and values while a graph is being made; the
reducer cuts graphs by it; and results with errors added tell how far a difference between two
engines may come from rounding alone, in whatever way a graph amplifies or hides it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
import onnx
from onnx import helper, numpy_helper
from onnx.inliner import inline_local_functions
from onnx.shape_inference import infer_shapes

from fuzz.case import Array, Feeds
from fuzz.engines import ORACLES
from fuzz.values import UNIT, is_float, numpy_type, onnx_type, wide

__all__ = ["Noise", "evaluate_node", "free_names", "run_stepwise"]

EXACT: Final = frozenset({
    "Abs", "And", "ArgMax", "ArgMin", "BitCast", "BitShift", "BitwiseAnd", "BitwiseNot",
    "BitwiseOr", "BitwiseXor", "Ceil", "CenterCropPad", "Clip", "Compress", "Concat", "Constant",
    "ConstantOfShape", "DepthToSpace", "Equal", "Expand", "EyeLike", "Flatten", "Floor", "Gather",
    "GatherElements", "GatherND", "GlobalMaxPool", "Greater", "GreaterOrEqual", "Hardmax",
    "Identity", "IsInf", "IsNaN", "Less", "LessOrEqual", "Max", "MaxPool", "Min", "Neg", "NonZero",
    "Not", "OneHot", "Or", "Pad", "ReduceMax", "ReduceMin", "Relu", "Reshape", "ReverseSequence",
    "Round", "Scatter", "ScatterND", "Shape", "Sign", "Size", "Slice", "SpaceToDepth", "Split",
    "Squeeze", "Tile", "TopK", "Transpose", "Trilu", "Unique", "Unsqueeze", "Where", "Xor",
})  # fmt: skip
"""Operators that round nothing."""

ORDER: Final = ("reference", "onnxruntime")

DOUBTFUL: Final = frozenset({"LRN", "LpNormalization", "SoftmaxCrossEntropyLoss"})
"""Operators that the reference gets wrong (`fuzz.known`), or that overflow in its f16: onnxruntime
is asked first."""

BESIDE_ONE: Final = frozenset({
    "BlackmanWindow", "GRU", "HammingWindow", "HannWindow", "LSTM", "LogSoftmax", "RNN",
})  # fmt: skip
"""Sums of waves or of gates, and of a logarithm of about one: results may be small beside these."""

TRANSFORMS: Final = frozenset({"DFT", "STFT"})
"""Sums of products with waves: errors are relative to what is summed up."""

SCALED: Final = frozenset({"Resize", "Upsample"})
"""Operators with floats that say how large results are: an error would change shapes."""

SINGLE: Final = frozenset({
    "DeformConv", "Erf", "Gelu", "GridSample", "GroupNormalization", "HardSwish",
    "LayerNormalization", "RMSNormalization", "Resize", "Upsample",
})  # fmt: skip
"""Operators that oracles compute in f32, be the elements f64, or of which coordinates are f32
(`fuzz.known`)."""

Value = Any  # an array, a list of arrays, or None


class Noise:
    """Errors of a few units of the last place, after every operator that rounds."""

    def __init__(self, seed: int, units: float = 2.0) -> None:
        self.rng = np.random.default_rng(seed)
        self.units = units

    def on(self, value: Value, units: float = 1.0, floor: float | Array = 0.0) -> Value:
        """The value with errors of up to `units` times the usual number of them.

        Errors are relative to each element, and to `floor`.
        """
        if isinstance(value, list):  # one of nothing says of which type it is
            return [self.on(v, units, floor) for v in value] or value
        if not isinstance(value, np.ndarray) or not is_float(value.dtype):
            return value
        unit = UNIT[value.dtype] * self.units * units
        exact = value.astype(np.float64)
        errors = self.rng.uniform(-unit, unit, exact.shape)
        with np.errstate(all="ignore"):
            return np.asarray(exact + errors * (np.abs(exact) + floor)).astype(value.dtype)


def run_stepwise(
    model: onnx.ModelProto,
    feeds: Feeds,
    noise: Noise | None = None,
    order: Sequence[str] = ORDER,
) -> dict[str, Value]:
    """All values of the main graph by name."""
    if model.functions:
        model = inline_local_functions(model)
    values: dict[str, Value] = {"": None, **feeds}
    values.update((t.name, numpy_helper.to_array(t)) for t in model.graph.initializer)
    for node in model.graph.node:
        needed = {name: values[name] for name in (*node.input, *free_names(node))}
        rounds = noise is not None and node.op_type not in EXACT
        if noise is not None and rounds:
            floor = _floor(node, values)
            exact = set(node.input[1:]) if node.op_type in SCALED else set[str]()
            given = {
                n: v if n in exact else noise.on(v, 0.5 * _units(node, v), _input_floor(node, v))
                for n, v in needed.items()
            }
            results = evaluate_node(model, node, given, order)
            results = [noise.on(v, _units(node, v), floor) for v in results]
        else:
            results = evaluate_node(model, node, needed, order)
        values.update(zip((name for name in node.output if name), results, strict=True))
    return values


def _floor(node: onnx.NodeProto, values: Mapping[str, Value]) -> float | Array:
    """What errors are relative to besides the result, where it is small beside what it is made of.

    Weights of cubic interpolations are sums of much larger numbers, of places whose errors grow
    with how far they are, and one plus a hyperbolic tangent or an error function has the errors of
    one.
    """
    if node.op_type in BESIDE_ONE:
        return 1.0
    if node.op_type in TRANSFORMS:
        given = [values[n] for n in node.input if n]
        most = [np.max(_sizes(v), initial=0) for v in given if is_float(np.asarray(v).dtype)]
        return max(1.0, float(np.prod(most)))
    cubic = any(a.name == "mode" and a.s in {b"cubic", b"bicubic"} for a in node.attribute)
    if cubic or node.op_type.endswith("Gelu"):
        sizes = _sizes(values[node.input[0]])
        return float(np.max(sizes, initial=0)) * max(sizes.shape, default=1) if cubic else sizes
    return 0.0


def _input_floor(node: onnx.NodeProto, value: Value) -> float:
    """What errors of an input are relative to besides each element.

    Elimination is as exact as if all elements had errors of the size of the largest one's.
    """
    return float(np.max(_sizes(value), initial=0)) if node.op_type == "Det" else 0.0


def _units(node: onnx.NodeProto, value: Value) -> float:
    """How many times the usual errors a value has."""
    is_double = isinstance(value, np.ndarray) and value.dtype == np.float64
    return 2.0**29 if is_double and node.op_type in SINGLE else 1.0


def _sizes(value: Value) -> Array:
    """How large finite numbers are; zero for others."""
    sizes = np.abs(wide(np.asarray(value)))
    return np.where(np.isfinite(sizes), sizes, 0)


def evaluate_node(
    model: onnx.ModelProto,
    node: onnx.NodeProto,
    values: Mapping[str, Value],
    order: Sequence[str] = ORDER,
) -> list[Value]:
    """The results of a node of a model by the first oracle of `order` that gives any.

    Shapes and types that contradict the inference of the onnx package do not count. Raises what
    the first one said, or what makes the node invalid.
    """
    names = [n for n in dict.fromkeys((*node.input, *free_names(node))) if n]
    feeds = {name: values[name] for name in names}
    single = _single(model, node, feeds)
    inferred = infer_shapes(single, check_type=True, strict_mode=True)
    problems: list[Exception] = []
    if order == ORDER and node.op_type in DOUBTFUL:
        order = ORDER[::-1]
    for name in order:
        try:
            found = RUNS[name](single, inferred, feeds)
            _require_consistent(inferred, found)
        except Exception as problem:  # noqa: BLE001  (the next one is asked)
            problems.append(problem)
        else:
            return [Nothing(inferred)] if node.op_type == "SequenceEmpty" else found
    raise problems[0]


def _run_wide(single: onnx.ModelProto, inferred: onnx.ModelProto, feeds: Feeds) -> list[Value]:
    """By the reference with floats of 64 bits, and rounded once: it sums up in the type it gets."""
    wider = onnx.ModelProto()
    wider.CopyFrom(single)
    for info in wider.graph.input:
        if is_float(np.asarray(feeds[info.name]).dtype):
            info.type.tensor_type.elem_type = onnx.TensorProto.DOUBLE
    infer_shapes(wider, check_type=True, strict_mode=True)
    exact = ORACLES["reference"](wider, [{name: wide(np.asarray(a)) for name, a in feeds.items()}])
    kinds = [info.type.tensor_type.elem_type for info in inferred.graph.output]
    with np.errstate(all="ignore"):
        return [
            np.asarray(a).astype(numpy_type(k)) if k and np.asarray(a).dtype == np.float64 else a
            for a, k in zip(exact[0], kinds, strict=True)
        ]


RUNS: Final = {
    "reference": lambda single, _, feeds: ORACLES["reference"](single, [feeds])[0],
    "onnxruntime": lambda single, _, feeds: ORACLES["onnxruntime"](single, [feeds])[0],
    "wide": _run_wide,
}
"""Ways to run one node."""


def _require_consistent(model: onnx.ModelProto, found: Sequence[Value]) -> None:
    """The reference knows no schemas, and has shapes of its own for some operators."""
    for info, value in zip(model.graph.output, found, strict=True):
        kind = info.type.tensor_type
        if not info.type.HasField("tensor_type") or not isinstance(value, np.ndarray | np.generic):
            continue
        same = not kind.elem_type or kind.elem_type == onnx_type(np.asarray(value))
        dims = [d.dim_value if d.HasField("dim_value") else None for d in kind.shape.dim]
        if kind.HasField("shape"):
            same &= len(dims) == np.ndim(value) and all(
                d is None or d == n for d, n in zip(dims, np.shape(value), strict=True)
            )
        if not same:
            raise ValueError(f"{info.name}: {np.shape(value)} instead of what is inferred")


def free_names(node: onnx.NodeProto) -> list[str]:
    """Names from outside that the subgraphs of a node use."""
    return list(dict.fromkeys(n for a in node.attribute for g in _graphs(a) for n in _free(g)))


def _free(graph: onnx.GraphProto) -> Iterator[str]:
    own = {i.name for i in graph.input} | {t.name for t in graph.initializer}
    for node in graph.node:
        yield from (n for n in (*node.input, *free_names(node)) if n and n not in own)
        own.update(node.output)
    yield from (o.name for o in graph.output if o.name not in own)


def _graphs(attribute: onnx.AttributeProto) -> Sequence[onnx.GraphProto]:
    return [attribute.g] if attribute.HasField("g") else list(attribute.graphs)


def _single(
    model: onnx.ModelProto, node: onnx.NodeProto, values: Mapping[str, Value]
) -> onnx.ModelProto:
    """A model of one node; texts and sequences have their types, too."""
    graph = helper.make_graph(
        [node],
        "single",
        [helper.make_value_info(name, _type(value)) for name, value in values.items()],
        [onnx.ValueInfoProto(name=name) for name in node.output if name],
    )
    return helper.make_model(
        graph,
        opset_imports=model.opset_import,
        ir_version=model.ir_version,
        functions=model.functions,
    )


class Nothing(list[Array]):
    """A sequence of no tensors, which alone would not say of which type they are."""

    def __init__(self, inferred: onnx.ModelProto) -> None:
        super().__init__()
        self.type: onnx.TypeProto = inferred.graph.output[0].type


def _type(value: Value) -> onnx.TypeProto:
    if isinstance(value, Nothing):
        return value.type
    if isinstance(value, list):
        return helper.make_sequence_type_proto(_type(value[0]))
    return helper.make_tensor_type_proto(onnx_type(np.asarray(value)), np.asarray(value).shape)
