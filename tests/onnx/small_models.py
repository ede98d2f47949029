"""Small models that are imported, interpreted, and compiled operator by operator.

`check` compares the meaning of a model's graph with the ONNX reference implementation, or with
arrays that are given, and native code with the meaning of each node. Dimensions of size `BATCH` are
symbolic.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

import tilewright
from tests.onnx.lowered import lowered
from tilewright.frontend.onnx import import_model
from tilewright.graph import Graph, Node, Value, interpret, verify_graph
from tilewright.graph.ir import Array
from tilewright.graph.ops import Sizes, Tabulate, axis
from tilewright.graph.sizes import variables
from tilewright.tensor import ir as tir
from tilewright.testing.accuracy import REFERENCE

__all__ = [
    "BATCH",
    "check",
    "check_kernels",
    "check_node",
    "close",
    "make_model",
    "one_node",
    "run",
]

BATCH = 7
"""Dimensions of this size have a name instead of a number."""

OPSET = 22

Feeds = Mapping[str, Array]


def make_model(
    nodes: Sequence[onnx.NodeProto],
    inputs: Feeds,
    constants: Feeds | None = None,
    *,
    opset: int = OPSET,
) -> onnx.ModelProto:
    """A model whose outputs are all results of its nodes."""
    graph = helper.make_graph(
        list(nodes),
        "small",
        [_info(name, np.asarray(array)) for name, array in inputs.items()],
        [onnx.ValueInfoProto(name=name) for node in nodes for name in node.output],
        [numpy_helper.from_array(np.asarray(a), name) for name, a in (constants or {}).items()],
    )
    domains = sorted({node.domain for node in nodes} - {""})
    imports = [helper.make_opsetid("", opset), *(helper.make_opsetid(d, 1) for d in domains)]
    return helper.make_model(graph, opset_imports=imports)


def _info(name: str, array: Array) -> onnx.ValueInfoProto:
    dims = ["n" if d == BATCH else d for d in array.shape]
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), dims)


def one_node(
    op: str,
    inputs: Sequence[object],
    *,
    known: Sequence[int] = (),
    outputs: int = 1,
    domain: str = "",
    opset: int = OPSET,
    attributes: Mapping[str, Any] | None = None,
) -> tuple[onnx.ModelProto, dict[str, Array]]:
    """A model of one node and its inputs; those whose numbers are `known` are constants."""
    names = ["" if array is None else f"in{k}" for k, array in enumerate(inputs)]
    arrays = {f"in{k}": np.asarray(array) for k, array in enumerate(inputs) if array is not None}
    constants = {f"in{k}": arrays.pop(f"in{k}") for k in known}
    results = [f"out{k}" for k in range(outputs)]
    node = helper.make_node(op, names, results, domain=domain, **(attributes or {}))
    return make_model([node], arrays, constants, opset=opset), arrays


def run(model: onnx.ModelProto, feeds: Feeds) -> list[Array]:
    """What the graph of a model means; nothing in it may need the reference implementation."""
    made = import_model(model)
    verify_graph(made.graph)
    assert not made.by_reference, made.by_reference
    return interpret(made.graph, feeds)


def check_node(op: str, inputs: Sequence[object], **options: Any) -> None:
    """`check` a model of one node."""
    expected, compiled = options.pop("expected", None), options.pop("compiled", False)
    model, feeds = one_node(op, inputs, **options)
    check(model, feeds, expected, compiled=compiled)


def check(
    model: onnx.ModelProto,
    feeds: Feeds,
    expected: Sequence[Array] | None = None,
    *,
    compiled: bool = False,
) -> None:
    """The meaning is as the reference says; with `compiled` native code keeps it."""
    found = run(model, feeds)
    names = [output.name for output in model.graph.output]
    wanted = _reference(model, feeds) if expected is None else expected
    for name, a, b in zip(names, found, wanted, strict=True):
        close(a, b, name)
    if compiled:
        check_kernels(import_model(model).graph, feeds)


def close(found: Array, wanted: Array, name: str = "") -> None:
    """The same type and shape, and values within the tolerance of the type."""
    assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape), name
    if wanted.dtype.kind in "iub":
        np.testing.assert_array_equal(found, wanted, err_msg=name)
        return
    if wanted.dtype.itemsize == 1:  # small types: there is but one right answer, and NaN
        np.testing.assert_array_equal(*(a.astype(np.float64) for a in (found, wanted)), name)
        return
    relative, absolute = REFERENCE[wanted.dtype.itemsize]
    wide = found.astype(np.float64), wanted.astype(np.float64)
    np.testing.assert_allclose(*wide, rtol=relative, atol=absolute, err_msg=name)


def check_kernels(graph: Graph, feeds: Feeds) -> None:
    """Each node, compiled by itself, gives what its operator means."""
    arrays: dict[Value, Array] = {v: np.asarray(feeds[v.name]) for v in graph.inputs}
    arrays.update(graph.constants)
    interpret(graph, feeds, watch=lambda value, array: arrays.update({value: array}))
    for node in graph.nodes:
        if not (_tells_sizes(node) and all(map(_is_plain, (*node.inputs, *node.outputs)))):
            continue
        results = [np.zeros(arrays[v].shape, arrays[v].dtype) for v in node.outputs]
        program = lowered(node.op, [v.type for v in node.inputs])
        tilewright.build(program, threads=1)(*(arrays[v] for v in node.inputs), *results)
        for result, value in zip(results, node.outputs, strict=True):
            close(result, arrays[value], f"{node.label}, {node.op}")


def _tells_sizes(node: Node) -> bool:
    """Whether the arrays of a kernel by itself tell all sizes that it uses."""
    match node.op:
        case Sizes(values=values):
            return not variables(values)
        case Tabulate(shape=shape, value=value):
            return set(variables([value])) <= {*variables(shape), *map(axis, range(len(shape)))}
    return True


def _is_plain(value: Value) -> bool:
    """Whether a kernel by itself can take it: dimensions are numbers and names, no sums of them."""
    return all(isinstance(dim, tir.Const | tir.Var) for dim in value.shape)


def _reference(model: onnx.ModelProto, feeds: Feeds) -> list[Array]:
    from onnx.reference import ReferenceEvaluator

    with np.errstate(all="ignore"):
        return [np.asarray(a) for a in ReferenceEvaluator(model).run(None, dict(feeds))]
