"""Models of a few kilobytes whose sizes are long expressions, or depend on many others."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

Info = onnx.ValueInfoProto


def info(name: str, *dims: int | str, kind: int = TensorProto.FLOAT) -> Info:
    """An input or output."""
    return helper.make_tensor_value_info(name, kind, list(dims))


def model(
    nodes: Sequence[onnx.NodeProto],
    inputs: Sequence[Info],
    outputs: Sequence[Info],
    **weights: object,
) -> onnx.ModelProto:
    """Nodes as a model."""
    tensors = [numpy_helper.from_array(np.asarray(array), name) for name, array in weights.items()]
    graph = helper.make_graph(nodes, "m", inputs, outputs, tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


def repeated(times: int, elements: int = 1) -> onnx.ModelProto:
    """`d // 2 + d % 3` of a size, again and again: an expression twice as long with each step."""
    nodes = [helper.make_node("Shape", ["x"], ["s"]), helper.make_node("Add", ["s", "a"], ["d0"])]
    for k in range(times):
        nodes.append(helper.make_node("Div", [f"d{k}", "two"], [f"q{k}"]))
        nodes.append(helper.make_node("Mod", [f"d{k}", "three"], [f"r{k}"]))
        nodes.append(helper.make_node("Add", [f"q{k}", f"r{k}"], [f"d{k + 1}"]))
    if elements == 1:
        nodes.append(helper.make_node("ConstantOfShape", [f"d{times}"], ["y"]))
        output = info("y", "q")
    else:
        output = info(f"d{times}", elements, kind=TensorProto.INT64)
    return model(nodes, [info("x", "n")], [output], a=np.arange(elements), two=2, three=3)


def extremes(times: int, op: str) -> onnx.ModelProto:
    """The greater one, or the product, of a size and a third of it, again and again."""
    nodes = [helper.make_node("Shape", ["x"], ["d0"])]
    for k in range(times):
        nodes.append(helper.make_node("Div", [f"d{k}", "three"], [f"q{k}"]))
        nodes.append(helper.make_node(op, [f"d{k}", f"q{k}"], [f"d{k + 1}"]))
    nodes.append(helper.make_node("ConstantOfShape", [f"d{times}"], ["y"]))
    return model(nodes, [info("x", "n")], [info("y", "q")], three=3)


def halves_and_thirds(times: int) -> onnx.ModelProto:
    """Every second and every third element, joined, again and again: no data, but dimensions."""
    nodes: list[onnx.NodeProto] = []
    for k in range(times):
        for part, step in (("p", "two"), ("q", "three")):
            ends = ["zero", "end", "zero", step]
            nodes.append(helper.make_node("Slice", [f"x{k}", *ends], [f"{part}{k}"]))
        nodes.append(helper.make_node("Concat", [f"p{k}", f"q{k}"], [f"x{k + 1}"], axis=0))
    numbers = {"zero": [0], "end": [2**63 - 1], "two": [2], "three": [3]}
    return model(nodes, [info("x0", "n")], [info(f"x{times}", "q")], **numbers)


def joined_again(times: int) -> onnx.ModelProto:
    """A tensor that is joined with another one, again and again."""
    nodes = [
        helper.make_node("Concat", [f"c{k}", "x"], [f"c{k + 1}"], axis=0) for k in range(times)
    ]
    return model(nodes, [info("c0", 3, 2), info("x", 3, 2)], [info(f"c{times}", "q", 2)])


def joined_at_once(count: int, *outer: str) -> onnx.ModelProto:
    """Tensors of as many sizes, behind `outer` dimensions."""
    names = [f"x{k}" for k in range(count)]
    node = helper.make_node("Concat", names, ["y"], axis=len(outer))
    inputs = [info(name, *outer, f"n{k}") for k, name in enumerate(names)]
    return model([node], inputs, [info("y", *outer, "q")])


def joined_one_by_one(count: int) -> onnx.ModelProto:
    """Tensors of as many sizes, each joined to all before it."""
    nodes = [
        helper.make_node("Concat", [f"c{k - 1}" if k > 1 else "x0", f"x{k}"], [f"c{k}"], axis=0)
        for k in range(1, count)
    ]
    inputs = [info(f"x{k}", f"n{k}") for k in range(count)]
    return model(nodes, inputs, [info(f"c{count - 1}", "q")])


def joined_and_used(count: int, times: int) -> onnx.ModelProto:
    """Tensors of as many sizes, joined, and a chain of operators on the result."""
    names = [f"x{k}" for k in range(count)]
    nodes = [helper.make_node("Concat", names, ["c0"], axis=0)]
    nodes += [helper.make_node("Softmax", [f"c{k}"], [f"c{k + 1}"]) for k in range(times)]
    inputs = [info(name, f"n{k}") for k, name in enumerate(names)]
    return model(nodes, inputs, [info(f"c{times}", "q")])


def cut(count: int) -> onnx.ModelProto:
    """A tensor of a symbolic size in many parts."""
    names = [f"y{k}" for k in range(count)]
    node = helper.make_node("Split", ["x"], names, num_outputs=count)
    outputs = [info(name, f"q{k}") for k, name in enumerate(names)]
    return model([node], [info("x", "n")], outputs)


def of_rank(op: str, rank: int = 32) -> onnx.ModelProto:
    """An operator on a tensor whose dimensions are all symbolic."""
    dims = [f"n{k}" for k in range(rank)]
    return model([helper.make_node(op, ["x"], ["y"])], [info("x", *dims)], [info("y", *dims)])


def bordered(rank: int) -> onnx.ModelProto:
    """A border along each dimension: how many elements there are is a product of sums."""
    inputs = [info("x", *(f"n{k}" for k in range(rank)))]
    outputs = [info("y", *(f"m{k}" for k in range(rank)))]
    node = helper.make_node("Pad", ["x", "pads"], ["y"])
    return model([node], inputs, outputs, pads=np.ones(2 * rank, np.int64))


def enlarged(rank: int) -> onnx.ModelProto:
    """Every dimension twice as long, with means between its elements."""
    inputs = [info("x", *(f"n{k}" for k in range(rank)))]
    outputs = [info("y", *(f"m{k}" for k in range(rank)))]
    node = helper.make_node("Resize", ["x", "", "scales"], ["y"], mode="linear")
    return model([node], inputs, outputs, scales=np.full(rank, 2, np.float32))


def sorted_inside(rank: int) -> onnx.ModelProto:
    """The largest elements along a dimension with as many around it on both sides."""
    dims = [f"n{k}" for k in range(rank)]
    node = helper.make_node("TopK", ["x", "k"], ["y", "i"], axis=rank // 2)
    outputs = [info("y", *(f"m{k}" for k in range(rank)))]
    return model([node], [info("x", *dims)], outputs, k=[2])


def scattered(rank: int) -> onnx.ModelProto:
    """Elements that are written to places in a tensor of many dimensions."""
    dims = [f"n{k}" for k in range(rank)]
    node = helper.make_node("ScatterND", ["x", "i", "u"], ["y"])
    places = info("i", "j", rank, kind=TensorProto.INT64)
    return model([node], [info("x", *dims), places, info("u", "j")], [info("y", *dims)])


def stacked(rank: int) -> onnx.ModelProto:
    """Products of matrices along very many dimensions."""
    dims = [f"n{k}" for k in range(rank - 2)]
    inputs = [info("x", *dims, "a", "b"), info("w", *dims, "b", "c")]
    return model(
        [helper.make_node("MatMul", ["x", "w"], ["y"])], inputs, [info("y", *["q"] * rank)]
    )


LONG: dict[str, Callable[[], onnx.ModelProto]] = {
    "size of sizes, few": lambda: repeated(8),
    "size of sizes": lambda: repeated(20),
    "size of sizes, many": lambda: repeated(200),
    "sizes of sizes": lambda: repeated(6, elements=250),
    "sizes of sizes, many": lambda: repeated(6, elements=1000),
    "greater sizes": lambda: extremes(200, "Max"),
    "products of sizes": lambda: extremes(60, "Mul"),
    "dimensions of dimensions": lambda: halves_and_thirds(20),
    "joined again": lambda: joined_again(400),
    "joined at once": lambda: joined_at_once(200),
    "joined inside": lambda: joined_at_once(100, "m"),
    "joined inside, too many": lambda: joined_at_once(1000, "m"),
    "joined and used": lambda: joined_and_used(800, 200),
    "joined, very many": lambda: joined_at_once(800),
    "joined, too many": lambda: joined_at_once(5000),
    "joined one by one": lambda: joined_one_by_one(120),
    "joined one by one, many": lambda: joined_one_by_one(300),
    "joined one by one, too many": lambda: joined_one_by_one(600),
    "cut": lambda: cut(256),
    "softmax of many dimensions": lambda: of_rank("Softmax"),
    "places along many dimensions": lambda: of_rank("Hardmax"),
    "map of many dimensions": lambda: of_rank("Neg"),
    "border of many dimensions": lambda: bordered(10),
    "border of all dimensions": lambda: bordered(32),
    "enlarged along many dimensions": lambda: enlarged(20),
    "sorted inside of many dimensions": lambda: sorted_inside(32),
    "scattered in many dimensions": lambda: scattered(24),
    "products along many dimensions": lambda: stacked(32),
}
