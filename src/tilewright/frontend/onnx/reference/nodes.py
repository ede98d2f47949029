"""Nodes that run on the ONNX reference implementation."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import count
from typing import TYPE_CHECKING

import numpy as np
import onnx
from onnx import numpy_helper, shape_inference

from tilewright.errors import CallError
from tilewright.frontend.onnx.node import OnnxNode
from tilewright.frontend.onnx.registry import Declined, Unknown
from tilewright.frontend.onnx.types import SizeNames, tensor_type, type_proto
from tilewright.graph import Builder, TensorType, Value
from tilewright.graph.ir import Array
from tilewright.graph.ops.host import C302, Host
from tilewright.shown import shown
from tilewright.tensor import ir as tir

if TYPE_CHECKING:
    from tilewright.frontend.onnx.reference.evaluator import Evaluator

__all__ = ["KIND", "Unknown", "host_function", "reference_node", "told_as_call_error"]

KIND = "onnx"
_fresh_numbers = count()


def reference_node(
    b: Builder,
    node: OnnxNode,
    domain: str,
    inputs: Sequence[Value | None],
    opsets: Mapping[str, int],
    captured: Mapping[str, Value],
) -> Sequence[Value | None]:
    """A node as a Python function; its result types come from ONNX's shape inference.

    `captured` are the values that graphs inside of the node read by name.
    """
    model, results = _single_node_model(b, node, inputs, opsets, captured)
    payload = model.SerializeToString()
    given = [v for v in dict.fromkeys(inputs) if v is not None]
    op = Host(KIND, payload, node.op, tuple(results), host_function(payload))
    made = iter(b.add_all(op, *given, *captured.values(), fold=False))
    return [next(made) if name else None for name in node.proto.output]


def host_function(payload: bytes) -> Callable[..., Sequence[Array]]:
    """The function of a stored node; the evaluator is made when it is first needed."""
    made: list[Evaluator] = []

    def run(*arrays: Array) -> Sequence[Array]:
        from tilewright.frontend.onnx.reference.evaluator import evaluator_of

        with told_as_call_error():
            if not made:
                made.append(evaluator_of(onnx.load_model_from_string(payload)))
            evaluator = made[0]
            feeds = dict(zip(evaluator.input_names, arrays, strict=True))
            return [np.asarray(a) for a in evaluator.run(None, feeds)]

    return run


@contextmanager
def told_as_call_error() -> Iterator[None]:
    """Say as C302 what the reference implementation stumbles over while it runs."""
    try:
        yield
    except Exception as problem:  # it raises whatever NumPy does
        reason = f"the ONNX reference implementation failed ({type(problem).__name__}: {problem})"
        hint = "the model was not made for such inputs"
        if isinstance(problem, ImportError):
            hint = "install what is missing; `tilewright[reference]` has all that operators need"
        raise CallError(C302, {"problem": shown(reason, 400)}, hint=hint) from problem


def _single_node_model(
    b: Builder,
    node: OnnxNode,
    inputs: Sequence[Value | None],
    opsets: Mapping[str, int],
    captured: Mapping[str, Value],
) -> tuple[onnx.ModelProto, list[TensorType]]:
    names = SizeNames()
    proto = onnx.NodeProto()
    proto.CopyFrom(node.proto)
    del proto.input[:], proto.output[:]
    known: dict[Value, str] = {}
    for value in inputs:
        if value is not None:
            known.setdefault(value, f"tw_in{len(known)}")
        proto.input.append("" if value is None else known[value])
    outputs = [f"tw_out{k}" for k in range(len(node.proto.output)) if node.proto.output[k]]
    numbers = iter(outputs)
    proto.output.extend(next(numbers) if name else "" for name in node.proto.output)
    graph = onnx.helper.make_graph(
        [proto],
        "node",
        [
            onnx.helper.make_value_info(name, type_proto(v, names))
            for name, v in (*((n, v) for v, n in known.items()), *captured.items())
        ],
        [onnx.ValueInfoProto(name=name) for name in outputs],
    )
    imports = [onnx.helper.make_opsetid(d, v) for d, v in opsets.items()]
    model = onnx.helper.make_model(graph, opset_imports=imports)
    return model, _result_types(b, model, node, known, names)


def _spell_defaults(proto: onnx.NodeProto, opset: int) -> None:
    """Attributes that are left out, as the operator declares them.

    Shape inference may take another default than the one that holds: STFT's is an example.
    """
    try:
        schema = onnx.defs.get_schema(proto.op_type, opset, proto.domain)
    except onnx.defs.SchemaError:
        return  # ONNX does not know the operator, nor its shapes
    given = {attribute.name for attribute in proto.attribute}
    for name, declared in schema.attributes.items():
        if name not in given and declared.default_value.type:
            proto.attribute.append(declared.default_value)


def _result_types(
    b: Builder,
    model: onnx.ModelProto,
    node: OnnxNode,
    known: Mapping[Value, str],
    names: SizeNames,
) -> list[TensorType]:
    """What ONNX's shape inference says of the results; constants are shown to it."""
    probe = onnx.ModelProto()
    probe.CopyFrom(model)
    _spell_defaults(probe.graph.node[0], node.opset)
    for value, name in known.items():
        held = b.contents(value)
        if held is not None and held.dtype != object and held.size <= 1024:
            probe.graph.initializer.append(numpy_helper.from_array(held, name))
    inferred = shape_inference.infer_shapes(probe, data_prop=True)
    results: list[TensorType] = []
    for own, found in zip(model.graph.output, inferred.graph.output, strict=True):
        try:
            kind = tensor_type(found.type, names, lambda: tir.Var(f"u{next(_fresh_numbers)}"))
        except Declined as problem:
            raise Unknown(str(problem)) from None
        if kind is None:
            raise Unknown(f"the rank of a result of {shown(node.op)} is not known")
        own.CopyFrom(found)
        results.append(kind)
    return results
