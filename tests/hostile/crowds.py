"""Models of many small parts, each of which costs little: names, functions, branches, outputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

__all__ = ["CROWDS"]

Infos = Sequence[onnx.ValueInfoProto]
make_node = helper.make_node
STANDARD = helper.make_opsetid("", 20)
OWN = helper.make_opsetid("own", 1)
ML = helper.make_opsetid("ai.onnx.ml", 3)


def value(name: str, *dims: int | str, kind: int = TensorProto.FLOAT) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, dims)


def model(
    nodes: Sequence[onnx.NodeProto],
    inputs: Infos,
    outputs: Infos,
    functions: Sequence[onnx.FunctionProto] = (),
    weights: Sequence[onnx.TensorProto] = (),
) -> onnx.ModelProto:
    graph = helper.make_graph(nodes, "m", inputs, outputs, weights)
    sets = [STANDARD, OWN, ML]
    return helper.make_model(graph, opset_imports=sets, ir_version=9, functions=functions)


def function(
    name: str, nodes: Sequence[onnx.NodeProto], attributes: Sequence[str] = ()
) -> onnx.FunctionProto:
    """A function of `a` that gives `b`."""
    sets = [STANDARD, OWN]
    return helper.make_function("own", name, ["a"], ["b"], nodes, sets, attributes)


def referring(
    op: str, inputs: Sequence[str], output: str, **references: tuple[str, int]
) -> onnx.NodeProto:
    """A node whose attributes are those of a call."""
    node = make_node(op, inputs, [output])
    for name, (taken, kind) in references.items():
        node.attribute.add(name=name, ref_attr_name=taken, type=kind)
    return node


def unknown_operators() -> onnx.ModelProto:
    """A thousand operators that nobody knows."""
    nodes = [make_node(f"Op{k}", ["x"], [f"v{k}"]) for k in range(999)]
    return model(nodes, [value("x", 4)], [value("v0", 4)])


def functions_and_a_fault() -> onnx.ModelProto:
    """Four thousand functions, each called once, and a node that is wrong."""
    count = 4000
    functions = [function(f"f{k}", [make_node("Neg", ["a"], ["b"])]) for k in range(count)]
    names = ["x", *(f"v{k}" for k in range(count))]
    nodes = [make_node(f"f{k}", [names[k]], [names[k + 1]], domain="own") for k in range(count)]
    nodes.append(make_node("Sharpen", [names[-1]], ["y"]))
    return model(nodes, [value("x", 4)], [value("y", 4)], functions)


def a_large_attribute_everywhere() -> onnx.ModelProto:
    """A tensor of a megabyte that a function uses three thousand times."""
    tensor = onnx.AttributeProto.TENSOR
    nodes = [referring("Constant", [], f"c{k}", value=("v", tensor)) for k in range(3000)]
    body = function("f", [*nodes, make_node("Neg", ["a"], ["b"])], ["v"])
    held = numpy_helper.from_array(np.zeros(1 << 20, np.uint8))
    call = make_node("f", ["x"], ["y"], domain="own", v=held)
    return model([call], [value("x", 4)], [value("y", 4)], [body])


def a_large_function_again_and_again() -> onnx.ModelProto:
    """A function with a constant of a megabyte, called a thousand times."""
    held = numpy_helper.from_array(np.ones(1 << 18, np.float32))
    nodes = [make_node("Constant", [], ["c"], value=held), make_node("Add", ["a", "c"], ["b"])]
    names = ["x", *(f"v{k}" for k in range(1000))]
    calls = [make_node("f", [names[k]], [names[k + 1]], domain="own") for k in range(1000)]
    return model(calls, [value("x", 1)], [value(names[-1], "n")], [function("f", nodes)])


def a_graph_everywhere() -> onnx.ModelProto:
    """A graph of a thousand nodes for both branches of a thousand conditions."""
    names = ["a", *(f"v{k}" for k in range(1000))]
    inner = [make_node("Neg", [names[k]], [names[k + 1]]) for k in range(1000)]
    graph = helper.make_graph(inner, "g", [], [value(names[-1], 4)])
    kind = onnx.AttributeProto.GRAPH
    branches = {"then_branch": ("g", kind), "else_branch": ("g", kind)}
    nodes = [referring("If", ["c"], f"u{k}", **branches) for k in range(1000)]
    last = make_node("Neg", ["u999"], ["b"])
    body = function("f", [make_node("Cast", ["a"], ["c"], to=9), *nodes, last], ["g"])
    call = make_node("f", ["x"], ["y"], domain="own", g=graph)
    return model([call], [value("x", 4)], [value("y", 4)], [body])


def ranks_before_a_long_graph() -> onnx.ModelProto:
    """Twelve conditions whose branches differ in rank; what follows them is long."""

    def branch(op: str, inputs: Sequence[str], name: str, *dims: str) -> onnx.GraphProto:
        return helper.make_graph([make_node(op, inputs, [name])], "b", [], [value(name, *dims)])

    nodes = [
        make_node(
            "If",
            ["c"],
            [f"u{k + 1}"],
            then_branch=branch("Neg", [f"u{k}"], f"p{k}", "n"),
            else_branch=branch("Unsqueeze", [f"u{k}", "z"], f"q{k}", "n", "m"),
        )
        for k in range(12)
    ]
    nodes.append(make_node("Abs", ["u12"], ["t0"]))
    nodes += [make_node("Neg", [f"t{k}"], [f"t{k + 1}"]) for k in range(3000)]
    zero = helper.make_tensor("z", 7, [1], [0])
    inputs = [value("u0", "n"), value("c", kind=9)]
    return model(nodes, inputs, [value("t3000", "k")], weights=[zero])


def texts_of_many_outputs() -> onnx.ModelProto:
    """Ten thousand outputs that are chosen from ten thousand tables of texts, and a fault."""
    count, text = 10_000, TensorProto.STRING
    nodes = [
        make_node("ArrayFeatureExtractor", [f"t{k}", "i"], [f"y{k}"], domain="ai.onnx.ml")
        for k in range(count)
    ]
    nodes.append(make_node("Sharpen", ["x"], ["zz"]))
    tables = [helper.make_tensor(f"t{k}", text, [1], [b"a"]) for k in range(count)]
    outputs = [value(f"y{k}", 4, kind=text) for k in range(count)]
    return model(nodes, [value("x", 4)], outputs, weights=tables)


def texts_through_functions() -> onnx.ModelProto:
    """A chain of three hundred functions of texts, which runs by reference."""
    count, text = 300, TensorProto.STRING
    names = ["x", *(f"v{k}" for k in range(count - 1)), "y"]
    nodes = [make_node(f"f{k}", [names[k]], [names[k + 1]], domain="own") for k in range(count)]
    functions = [function(f"f{k}", [make_node("Identity", ["a"], ["b"])]) for k in range(count)]
    return model(nodes, [value("x", 4, kind=text)], [value("y", 4, kind=text)], functions)


def a_long_name_of_a_size() -> onnx.ModelProto:
    """As long as a name may be, and longer than LLVM looks at."""
    node = make_node("Add", ["x", "y"], ["z"])
    inputs = [value("x", "d" * 4096), value("y", "d" * 4095 + "e")]
    return model([node], inputs, [value("z", "n")])


def an_identity_of_nothing() -> onnx.ModelProto:
    """Behind an operator for whose results texts are looked for."""
    scaled = make_node("Scaler", ["x"], ["s"], domain="ai.onnx.ml", offset=[0.0], scale=[1.0])
    return model([scaled, make_node("Identity", [], ["y"])], [value("x", 4)], [value("y", 4)])


def a_cast_to_nothing() -> onnx.ModelProto:
    """Of labels that are texts."""
    labels = {"classlabels_strings": ["a", "b"]}
    tree = make_node("TreeEnsembleClassifier", ["x"], ["l", "p"], domain="ai.onnx.ml", **labels)
    return model([tree, make_node("Cast", ["l"], ["y"])], [value("x", 4)], [value("y", 4)])


CROWDS: dict[str, Callable[[], onnx.ModelProto]] = {
    made.__name__.replace("_", " "): made
    for made in (
        unknown_operators,
        functions_and_a_fault,
        a_large_attribute_everywhere,
        a_large_function_again_and_again,
        a_graph_everywhere,
        ranks_before_a_long_graph,
        texts_of_many_outputs,
        texts_through_functions,
        a_long_name_of_a_size,
        an_identity_of_nothing,
        a_cast_to_nothing,
    )
}
