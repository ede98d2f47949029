"""Mutants with a purpose: each is one of the ways in which somebody would try to do harm."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from typing import Final

import numpy as np
import onnx
from onnx import AttributeProto, TensorProto, helper, numpy_helper

from fuzz.hostile.parts import EXTREMES, NUMBERS, graphs, infos, nodes, tensors

__all__ = ["MALICE"]

Change = Callable[[random.Random, onnx.ModelProto], None]


def _number(rng: random.Random) -> int:
    return rng.choice(NUMBERS + EXTREMES)


def _ring(rng: random.Random, model: onnx.ModelProto) -> None:
    """Nodes that wait for each other: one for itself, two, or all of a graph."""
    members = [node for node in rng.choice(graphs(model)).node if node.input and node.output]
    chosen = rng.sample(members, min(len(members), rng.choice((1, 2, 2, 99))))
    for node, other in zip(chosen, chosen[1:] + chosen[:1], strict=True):
        node.input[rng.randrange(len(node.input))] = rng.choice(other.output)


def _twice(rng: random.Random, model: onnx.ModelProto) -> None:
    """The same name for two things that must differ, or the same thing twice."""
    graph = rng.choice(graphs(model))
    lists = [graph.input, graph.output, graph.initializer, graph.value_info, graph.node]
    lists += [model.functions, model.opset_import, model.metadata_props]
    lists += [node.attribute for node in graph.node]
    if rng.random() < 0.6:
        chosen = rng.choice([own for own in lists if own])
        chosen.add().CopyFrom(rng.choice(chosen))
        return
    outputs = [name for node in graph.node for name in node.output]
    names = outputs + [tensor.name for tensor in graph.initializer] + [i.name for i in graph.input]
    node = rng.choice(graph.node)
    node.output[rng.randrange(len(node.output))] = rng.choice(names)


def _other_type(rng: random.Random, model: onnx.ModelProto) -> None:
    """A value that is a sequence, an optional, a map or nothing; types inside of types."""
    info = rng.choice(infos(model))
    tensor = onnx.TypeProto()
    tensor.CopyFrom(info.type)
    match rng.randrange(5):
        case 0:
            info.type.sequence_type.elem_type.CopyFrom(tensor)
        case 1:
            info.type.optional_type.elem_type.CopyFrom(tensor)
        case 2:
            info.type.map_type.key_type = rng.randrange(20)
            info.type.map_type.value_type.CopyFrom(tensor)
        case 3:
            info.type.Clear()
        case _:
            nested = info.type
            for _ in range(rng.choice((2, 10, 40))):
                nested = rng.choice((nested.sequence_type, nested.optional_type)).elem_type
            nested.tensor_type.elem_type = 1


def _listed(rng: random.Random, model: onnx.ModelProto) -> None:
    """Elements in lists instead of bytes: too many, too few, of another type, beyond a type."""
    tensor = rng.choice(tensors(model))
    if rng.random() < 0.8:
        tensor.ClearField("raw_data")
    count = max(0, int(np.prod([float(d) for d in tensor.dims])) + rng.choice((0, 0, 0, -1, 1)))
    count = min(count, 10_000)
    match rng.randrange(6):
        case 0:
            tensor.float_data.extend([1.5] * count)
        case 1:
            tensor.int32_data.extend(rng.choice((0, 255, -1, 2**31 - 1)) for _ in range(count))
        case 2:
            tensor.int64_data.extend(_number(rng) for _ in range(count))
        case 3:
            tensor.uint64_data.extend(rng.choice((0, 2**64 - 1)) for _ in range(count))
        case 4:
            tensor.double_data.extend([1e300] * count)
        case _:
            texts = rng.choices((b"", b"\xff\xfe", b"text", b"x" * 100), k=count)
            tensor.string_data.extend(texts)
    if rng.random() < 0.6:
        tensor.data_type = rng.randrange(27)
    if rng.random() < 0.1:
        tensor.segment.begin, tensor.segment.end = _number(rng), _number(rng)


def _sparse(rng: random.Random, model: onnx.ModelProto) -> None:
    """A weight that is sparse, with places, sizes and forms from everywhere."""
    graph = rng.choice(graphs(model))
    if not graph.initializer:
        return
    at = rng.randrange(len(graph.initializer))
    dense = graph.initializer[at]
    count = rng.choice((0, 1, 3))
    values = numpy_helper.from_array(np.ones(count, np.float32), dense.name)
    form: tuple[int, ...] = rng.choice(((count,), (count, len(dense.dims)), (), (count, 1, 1)))
    places = rng.choices((0, 0, 1, _number(rng)), k=int(np.prod(form)))
    indices = numpy_helper.from_array(np.array(places, np.int64).reshape(form), "at")
    if rng.random() < 0.2:
        del values.dims[:]
    dims = [_number(rng) if rng.random() < 0.2 else d for d in dense.dims]
    made = onnx.SparseTensorProto(values=values, indices=indices, dims=dims)
    if rng.random() < 0.3:
        node = rng.choice(graph.node)
        node.attribute.add(
            name="sparse_value", type=AttributeProto.SPARSE_TENSOR
        ).sparse_tensor.CopyFrom(made)
        return
    del graph.initializer[at]
    graph.sparse_initializer.append(made)


def _bomb(rng: random.Random, model: onnx.ModelProto) -> None:
    """An attribute that holds very much, or many attributes."""
    node = rng.choice(nodes(model))
    name = rng.choice(("axes", "value_ints", "pads", "perm", "strings", "body", "bomb"))
    if node.attribute and rng.random() < 0.5:
        name = rng.choice(node.attribute).name
    kept = [attribute for attribute in node.attribute if attribute.name != name]
    del node.attribute[:]
    node.attribute.extend(kept)
    many = rng.choice((100, 10_000, 100_000))
    one = node.attribute.add(name=name)
    match rng.randrange(8):
        case 0:
            one.type = AttributeProto.INTS
            one.ints.extend([rng.choice((0, 1, -1, 2**63 - 1))] * many)
        case 1:
            one.type = AttributeProto.FLOATS
            one.floats.extend([float("nan")] * many)
        case 2:
            one.type = AttributeProto.STRINGS
            one.strings.extend([b""] * many)
        case 3:
            one.type, one.s = AttributeProto.STRING, b"i," * many
        case 4:
            one.type = AttributeProto.TENSORS
            one.tensors.extend([TensorProto(data_type=1, dims=[0])] * (many // 10))
        case 5:
            one.type = AttributeProto.GRAPHS
            one.graphs.extend([onnx.GraphProto(name="empty")] * (many // 10))
        case 6:
            one.type = AttributeProto.TYPE_PROTOS
            one.type_protos.extend([onnx.TypeProto()] * (many // 10))
        case _:
            one.type, one.i = AttributeProto.INT, 1
            for k in range(many // 10):
                node.attribute.add(name=f"extra{k}", type=AttributeProto.INT, i=k)


def _shape_bomb(rng: random.Random, model: onnx.ModelProto) -> None:
    """A constant that stands for very many elements, read by some node."""
    size = rng.choice((10**6, 10**8, 10**9, 2**31, 10**12, 2**62))
    shape = [size] if rng.random() < 0.5 else [size, rng.choice((1, 2, 10**6))]
    made = [numpy_helper.from_array(np.array(shape, np.int64), "bomb_shape")]
    made.append(numpy_helper.from_array(np.ones((1,) * len(shape), np.float32), "bomb_seed"))
    made += [helper.make_tensor(n, 7, [], [v]) for n, v in (("bomb_0", 0), ("bomb_n", size))]
    made.append(helper.make_tensor("bomb_1", 7, [], [1]))
    model.graph.initializer.extend(made)
    bombs = [
        helper.make_node("ConstantOfShape", ["bomb_shape"], ["bomb"]),
        helper.make_node("Expand", ["bomb_seed", "bomb_shape"], ["bomb"]),
        helper.make_node("Tile", ["bomb_seed", "bomb_shape"], ["bomb"]),
        helper.make_node("Range", ["bomb_0", "bomb_n", "bomb_1"], ["bomb"]),
        helper.make_node("RandomNormal", [], ["bomb"], shape=shape),
        helper.make_node("Resize", ["bomb_seed", "", "", "bomb_shape"], ["bomb"]),
    ]
    model.graph.node.insert(0, rng.choice(bombs))
    reader = rng.choice(nodes(model))
    if reader.input:
        reader.input[rng.randrange(len(reader.input))] = "bomb"


def _tower(rng: random.Random, model: onnx.ModelProto) -> None:
    """Functions on top of each other: a ring, a long line, or each calling the next ten times."""
    depth, calls = rng.choice(((3, 1), (30, 1), (40, 1), (300, 1), (6, 10), (9, 10), (20, 2)))
    closed = rng.random() < 0.3
    domain = rng.choice(("tower", "tower", "", "ai.onnx"))
    imports = [helper.make_opsetid("", 20), helper.make_opsetid("tower", 1)]
    for level in range(depth):
        following = f"Floor{level + 1}" if level + 1 < depth else "Floor0" if closed else "Abs"
        own = domain if following.startswith("Floor") else ""
        names = ["v", *(f"v{k}" for k in range(calls))]
        body = [
            helper.make_node(following, [p], [q], domain=own) for p, q in itertools.pairwise(names)
        ]
        floor = helper.make_function(domain, f"Floor{level}", ["v"], [names[-1]], body, imports)
        model.functions.append(floor)
    model.opset_import.extend([helper.make_opsetid("tower", 1)])
    reader = rng.choice([node for node in model.graph.node if node.input])
    entry = helper.make_node("Floor0", [reader.input[0]], ["tower_top"], domain=domain)
    reader.input[0] = "tower_top"
    model.graph.node.insert(0, entry)


def _inside_out(rng: random.Random, model: onnx.ModelProto) -> None:
    """Graphs that read what they make, or make what is read around them; bodies of other forms."""
    inner = [graph for graph in graphs(model) if graph is not model.graph]
    if not inner:
        raise ValueError("no graph inside of another")
    graph = rng.choice(inner)
    match rng.randrange(5):
        case 0:
            around = onnx.GraphProto()
            around.CopyFrom(model.graph)
            graph.CopyFrom(around)
        case 1:
            del graph.output[rng.randrange(len(graph.output) + 1) :]
        case 2:
            graph.input.add(name=rng.choice(model.graph.input).name)
        case 3:
            graph.output.add().CopyFrom(rng.choice(infos(model)))
        case _:
            names = [name for node in nodes(model) for name in node.output]
            rng.choice(graph.output).name = rng.choice(names)


def _header(rng: random.Random, model: onnx.ModelProto) -> None:
    """What stands around the graph: versions, metadata, training."""
    match rng.randrange(6):
        case 0:
            model.ir_version = _number(rng)
        case 1:
            model.metadata_props.add(key="\x1b]0;title\a", value="x" * rng.choice((1, 100_000)))
        case 2:
            model.training_info.add().algorithm.CopyFrom(model.graph)
        case 3:
            model.producer_name = model.domain = model.doc_string = "\x1b[2J" + "y" * 10_000
        case 4:
            del model.opset_import[:]
        case _:
            rng.choice(nodes(model)).overload = rng.choice(("", "other"))
            rng.choice(nodes(model)).doc_string = "\x1b[31m"


def _many(rng: random.Random, model: onnx.ModelProto) -> None:
    """Thousands of things that are right by themselves."""
    graph, count = model.graph, rng.choice((300, 3000))
    match rng.randrange(5):
        case 0:
            read = graph.input[0].name if graph.input else ""
            graph.node.extend(
                helper.make_node(rng.choice(("Identity", "Neg")), [read], [f"many{k}"])
                for k in range(count)
            )
        case 1:
            ones = np.ones(1, np.float32)
            graph.initializer.extend(
                numpy_helper.from_array(ones, f"many{k}") for k in range(count)
            )
        case 2:
            graph.value_info.extend(
                helper.make_tensor_value_info(f"many{k}", 1, [f"size{k}"]) for k in range(count)
            )
        case 3:
            graph.input.extend(
                helper.make_tensor_value_info(f"many{k}", 1, [f"size{k}"])
                for k in range(count // 10)
            )
        case _:
            copies = [onnx.OperatorSetIdProto(domain=f"d{k}", version=1) for k in range(count)]
            model.opset_import.extend(copies)


MALICE: Final[dict[str, Change]] = {
    "ring": _ring,
    "twice": _twice,
    "other type": _other_type,
    "listed": _listed,
    "sparse": _sparse,
    "attribute bomb": _bomb,
    "shape bomb": _shape_bomb,
    "tower": _tower,
    "inside out": _inside_out,
    "header": _header,
    "many": _many,
}
