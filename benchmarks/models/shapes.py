"""The shapes inside an ONNX graph for given inputs.

The inference of onnx gives up where a shape is computed by nodes (`Shape`, `Gather`, `Concat`, …).
Here it takes turns with folding: what is known becomes a constant, until nothing more is found out.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import numpy_helper
from onnx.reference import ReferenceEvaluator

__all__ = ["SMALL_ELEMENTS", "constants_of", "shapes_of", "with_shapes"]

SMALL_ELEMENTS: Final = 4096
"""Arrays up to this size may take part in the computation of shapes."""
TINY_ELEMENTS: Final = 16
"""The same for floating point, where more than a few numbers are weights: those stay apart."""
GROWING: Final = frozenset({"ConstantOfShape", "Expand", "Pad", "Resize", "Tile"})
"""Operators that make large arrays of small ones."""
MAX_ROUNDS: Final = 40

Arrays = Mapping[str, NDArray[Any]]


def with_shapes(model: Any, arrays: Arrays) -> Any:
    """A copy with inputs of these shapes and all that follows; scalar inputs become constants."""
    fixed = onnx.ModelProto()
    fixed.CopyFrom(model)
    for given in list(fixed.graph.input):
        array = arrays.get(given.name)
        if array is not None and array.ndim == 0:
            fixed.graph.input.remove(given)
            fixed.graph.initializer.append(numpy_helper.from_array(array, given.name))
        elif array is not None:
            given.CopyFrom(_described(given, array.shape))
    for _ in range(MAX_ROUNDS):
        _forget(fixed.graph)  # what was inferred with less knowledge would stand in the way
        fixed = onnx.shape_inference.infer_shapes(fixed, data_prop=True)
        if not _fold(fixed.graph, {}, {}, fixed):
            break
    return fixed


def _forget(graph: Any) -> None:
    """Remove every shape but those of the inputs."""
    del graph.value_info[:]
    for result in graph.output:
        result.type.tensor_type.ClearField("shape")
    for inner in _inner_graphs(graph):
        _forget(inner)


def _inner_graphs(graph: Any) -> Iterator[Any]:
    return (a.g for node in graph.node for a in node.attribute if a.HasField("g"))


def shapes_of(graph: Any) -> dict[str, tuple[int, ...]]:
    """The shapes that are known entirely."""
    found = {name: tuple(item.dims) for name, item in constants_of(graph)}
    for item in (*graph.input, *graph.value_info, *graph.output):
        tensor = item.type.tensor_type
        if tensor.HasField("shape") and all(d.HasField("dim_value") for d in tensor.shape.dim):
            found[item.name] = tuple(d.dim_value for d in tensor.shape.dim)
    return found


def constants_of(graph: Any) -> Iterator[tuple[str, Any]]:
    """Constants by name, as tensors of onnx: initializers, and results of `Constant` nodes."""
    yield from ((item.name, item) for item in graph.initializer)
    for node in graph.node:
        if node.op_type == "Constant":
            yield from ((node.output[0], a.t) for a in node.attribute if a.name == "value")


def _described(given: Any, shape: tuple[int, ...]) -> Any:
    return onnx.helper.make_tensor_value_info(
        given.name, given.type.tensor_type.elem_type, list(shape)
    )


def _fold(graph: Any, shapes: dict[str, Any], known: dict[str, Any], model: Any) -> int:
    """Make initializers of the nodes whose result is known; how many nodes there were.

    An `If` whose condition is known gives way to its branch. `shapes` and `known` are those of
    the graphs around this one.
    """
    shapes = {**shapes, **shapes_of(graph)}
    small = ((n, t) for n, t in constants_of(graph) if math.prod(t.dims) <= SMALL_ELEMENTS)
    arrays = {name: numpy_helper.to_array(tensor) for name, tensor in small}
    known = {
        **known,
        **{n: a for n, a in arrays.items() if a.dtype.kind != "f" or a.size <= TINY_ELEMENTS},
    }
    folded = []
    for node in graph.node:
        results = _evaluate(node, shapes, known, model)
        if results is not None:
            known |= results
            folded.append((node, results))
    for node, results in folded:
        graph.node.remove(node)
        graph.initializer.extend(numpy_helper.from_array(a, name) for name, a in results.items())
    decided = [n for n in graph.node if n.op_type == "If" and n.input[0] in known]
    for node in decided:
        _inline(graph, node, chosen="then_branch" if known[node.input[0]] else "else_branch")
    inner = sum(_fold(branch, shapes, known, model) for branch in _inner_graphs(graph))
    return len(folded) + len(decided) + inner


def _inline(graph: Any, node: Any, *, chosen: str) -> None:
    """Put the chosen branch in the place of an `If`; names differ between graphs of a model."""
    branch = next(a.g for a in node.attribute if a.name == chosen)
    place = list(graph.node).index(node)
    pairs = zip(branch.output, node.output, strict=True)
    ends = [onnx.helper.make_node("Identity", [inner.name], [outer]) for inner, outer in pairs]
    after = [*branch.node, *ends, *list(graph.node)[place + 1 :]]
    graph.initializer.extend(branch.initializer)
    del graph.node[place:]
    graph.node.extend(after)


def _evaluate(node: Any, shapes: dict[str, Any], known: dict[str, Any], model: Any) -> Any:
    """Results by name; None where an input is not known, or too much would have to be computed."""
    if node.op_type == "Constant" or any(a.HasField("g") for a in node.attribute):
        return None
    if node.op_type == "Shape" and node.input[0] in shapes:
        limits = {a.name: a.i for a in node.attribute}
        part = shapes[node.input[0]][limits.get("start", 0) : limits.get("end")]
        return {node.output[0]: np.array(part, "i8")}
    names = [name for name in node.input if name]
    unknown = SMALL_ELEMENTS + 1 if node.op_type in GROWING else 0
    sizes = [math.prod(shapes[name]) if name in shapes else unknown for name in node.output]
    if not names or any(name not in known for name in names) or max(sizes) > SMALL_ELEMENTS:
        return None
    alone = onnx.helper.make_graph(
        [node],
        "node",
        [],
        [onnx.ValueInfoProto(name=name) for name in node.output],
        [numpy_helper.from_array(known[name], name) for name in dict.fromkeys(names)],
    )
    evaluator = ReferenceEvaluator(
        onnx.helper.make_model(alone, opset_imports=model.opset_import), verbose=0
    )
    results = evaluator.run(None, {})
    return dict(zip(node.output, map(np.asarray, results), strict=True))
