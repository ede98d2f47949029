"""The three engines: each runs a model on the inputs of several runs, or raises."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import onnx
from onnx import TensorProto, defs, helper
from onnx.reference import ReferenceEvaluator
from onnx.shape_inference import infer_shapes

from fuzz.case import Case, Feeds
from fuzz.mended import mended
from fuzz.values import NARROW, numpy_type

__all__ = ["ORACLES", "Results", "run_onnxruntime", "run_reference", "run_tilewright"]

Results = list[list[Any]]
"""The outputs of each run."""

FOREIGN: Final = frozenset({TensorProto.BFLOAT16, *NARROW})
"""Types that the Python face of onnxruntime does not take or give: floats stand for them."""

NUMBERS: Final = (onnx.AttributeProto.FLOAT, onnx.AttributeProto.INT)
"""Types of attributes."""


def run_reference(model: onnx.ModelProto, runs: Sequence[Feeds]) -> Results:
    """By the ONNX reference implementation, which needs the types inside of a model."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        opset = next(o.version for o in model.opset_import if not o.domain)
        made = ReferenceEvaluator(infer_shapes(_with_defaults(model)), new_ops=mended(opset))
        return [list(made.run(None, dict(feeds))) for feeds in runs]


def _with_defaults(model: onnx.ModelProto) -> onnx.ModelProto:
    """With the numbers that ONNX says if an attribute is missing: the reference has other ones.

    Its defaults are numbers of Python, 0.01 instead of the f32 next to it, and those of the newest
    opset.
    """
    versions = {o.domain: o.version for o in model.opset_import}
    explicit = onnx.ModelProto()
    explicit.CopyFrom(model)
    for node in (*explicit.graph.node, *(n for f in explicit.functions for n in f.node)):
        if not defs.has(node.op_type, node.domain):
            continue
        given = {a.name for a in node.attribute}
        schema = defs.get_schema(node.op_type, versions[node.domain], node.domain)
        for name, attribute in schema.attributes.items():
            default = attribute.default_value
            if name not in given and default.type in NUMBERS:
                node.attribute.append(default)
    return explicit


def run_onnxruntime(model: onnx.ModelProto, runs: Sequence[Feeds]) -> Results:
    """By onnxruntime as the model is written: nothing is rewritten before it runs."""
    import onnxruntime

    onnxruntime.set_default_logger_severity(4)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    plain, ins, outs = _with_plain_edges(model)
    session = onnxruntime.InferenceSession(
        plain.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return [_run_session(session, feeds, ins, outs) for feeds in runs]


def _run_session(session: Any, feeds: Feeds, ins: set[str], outs: dict[str, int]) -> list[Any]:
    given = {n: np.asarray(a, np.float32) if n in ins else a for n, a in feeds.items()}
    names = [output.name for output in session.get_outputs()]
    found = session.run(None, given)
    return [
        a.astype(numpy_type(outs[n])) if n in outs else a for n, a in zip(names, found, strict=True)
    ]


def _with_plain_edges(model: onnx.ModelProto) -> tuple[onnx.ModelProto, set[str], dict[str, int]]:
    """Inputs and outputs of foreign types as floats, which hold all their values."""
    ins = {i.name for i in model.graph.input if i.type.tensor_type.elem_type in FOREIGN}
    outs = {
        o.name: o.type.tensor_type.elem_type
        for o in model.graph.output
        if o.type.tensor_type.elem_type in FOREIGN
    }
    if not ins and not outs:
        return model, ins, outs
    plain = onnx.ModelProto()
    plain.CopyFrom(model)
    inside = {name: f"{name}_inside" for name in (*ins, *outs)}
    for node in plain.graph.node:
        _rename(node, inside)
    before, after = [], []
    for info in plain.graph.input:
        if info.name in ins:
            wanted = info.type.tensor_type.elem_type
            before.append(helper.make_node("Cast", [info.name], [inside[info.name]], to=wanted))
            info.type.tensor_type.elem_type = TensorProto.FLOAT
    for info in plain.graph.output:
        if info.name in outs:
            after.append(
                helper.make_node("Cast", [inside[info.name]], [info.name], to=TensorProto.FLOAT)
            )
            info.type.tensor_type.elem_type = TensorProto.FLOAT
    nodes = [*before, *plain.graph.node, *after]
    del plain.graph.node[:]
    plain.graph.node.extend(nodes)
    for tensor in plain.graph.initializer:
        tensor.name = inside.get(tensor.name, tensor.name)
    return plain, ins, outs


def _rename(node: onnx.NodeProto, names: dict[str, str]) -> None:
    """Inputs and outputs by other names, in subgraphs as well."""
    node.input[:] = [names.get(n, n) for n in node.input]
    node.output[:] = [names.get(n, n) for n in node.output]
    for attribute in node.attribute:
        for graph in [attribute.g] if attribute.HasField("g") else attribute.graphs:
            for inner in graph.node:
                _rename(inner, names)


def run_tilewright(case: Case) -> tuple[Results, list[str]]:
    """By tilewright; also which operators ran on the reference."""
    import tilewright

    setting = case.setting
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module = tilewright.compile(
            case.model.SerializeToString(),
            threads=setting.threads,
            accuracy=setting.accuracy,
            layouts=setting.layouts,
            cache=False,
        )
        found = [list(module.run(dict(feeds))) for feeds in case.runs]
    return found, sorted({node.operator for node in module.by_reference})


ORACLES: Final = {"onnxruntime": run_onnxruntime, "reference": run_reference}
