"""Mutants that are well-formed messages: somebody who knows the format made them wrong."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Final

import onnx
from google.protobuf.message import DecodeError
from onnx import AttributeProto, TensorProto, helper

from fuzz.hostile.malice import MALICE
from fuzz.hostile.parts import EXTREMES, NUMBERS, attributes, graphs, infos, nodes, tensors

__all__ = ["CHANGES", "mutated"]

Change = Callable[[random.Random, onnx.ModelProto], None]

NAMES: Final = ("", "x", "y", "w", "x" * 5000, "\x1b[31mred", "two\nlines", "{0}{model}", "%s%n")
NAMES_MORE: Final = ("\u202eright", "a/../b", 'quote"\\', "\0", "é", "true", "i64", "%0", "@main")
REALS: Final = (0.0, -1.0, 1e-45, 1e38, float("nan"), float("inf"), -float("inf"), 2.5, 1e9)
OPERATORS: Final = tuple(sorted({s.name for s in onnx.defs.get_all_schemas() if not s.domain}))


def _number(rng: random.Random) -> int:
    return rng.choice(NUMBERS if rng.random() < 0.6 else EXTREMES)


def _dims_of_tensor(rng: random.Random, model: onnx.ModelProto) -> None:
    dims = rng.choice(tensors(model)).dims
    if dims and rng.random() < 0.6:
        dims[rng.randrange(len(dims))] = _number(rng)
    else:
        dims.extend(_number(rng) for _ in range(rng.choice((1, 2, 40))))


def _dims_of_value(rng: random.Random, model: onnx.ModelProto) -> None:
    shape = rng.choice(infos(model)).type.tensor_type.shape
    dim = rng.choice(shape.dim) if shape.dim and rng.random() < 0.7 else shape.dim.add()
    if rng.random() < 0.7:
        dim.dim_value = _number(rng)
    else:
        dim.dim_param = rng.choice(NAMES + NAMES_MORE)


def _type(rng: random.Random, model: onnx.ModelProto) -> None:
    if rng.random() < 0.5 and tensors(model):
        rng.choice(tensors(model)).data_type = rng.randrange(30)
    else:
        rng.choice(infos(model)).type.tensor_type.elem_type = rng.randrange(30)


def _content(rng: random.Random, model: onnx.ModelProto) -> None:
    tensor = rng.choice(tensors(model))
    match rng.randrange(5):
        case 0:
            tensor.raw_data = tensor.raw_data[: rng.randrange(len(tensor.raw_data) + 1)]
        case 1:
            tensor.raw_data += rng.randbytes(rng.choice((1, 4, 100)))
        case 2:
            tensor.raw_data = rng.randbytes(len(tensor.raw_data))
        case 3:
            tensor.float_data.extend(rng.choice(REALS) for _ in range(rng.choice((1, 4))))
        case _:
            count = len(tensor.raw_data) // 8
            values = [_number(rng) for _ in range(count)]
            tensor.raw_data = b"".join(v.to_bytes(8, "little", signed=True) for v in values)


def _name(rng: random.Random, model: onnx.ModelProto) -> None:
    """Another name at a place: a wrong edge, a cycle, a name twice, a name that is none."""
    node = rng.choice(nodes(model))
    places = [p for p in (node.input, node.output) if p]
    taken = [name for other in nodes(model) for name in (*other.input, *other.output)]
    new = rng.choice(taken) if rng.random() < 0.7 else rng.choice(NAMES + NAMES_MORE)
    if places and rng.random() < 0.8:
        names = rng.choice(places)
        names[rng.randrange(len(names))] = new
    else:
        holder = rng.choice([node, rng.choice(infos(model)), model.graph])
        holder.name = new


def _edges(rng: random.Random, model: onnx.ModelProto) -> None:
    node = rng.choice(nodes(model))
    match rng.randrange(4):
        case 0:
            node.input.extend(rng.choice(NAMES) for _ in range(rng.choice((1, 3, 300))))
        case 1:
            del node.input[rng.randrange(len(node.input) + 1) :]
        case 2:
            node.output.extend(f"extra{k}" for k in range(rng.choice((1, 3, 300))))
        case _:
            del node.output[rng.randrange(len(node.output) + 1) :]


def _arrange(rng: random.Random, model: onnx.ModelProto) -> None:
    """Nodes that are missing, twice there, or in another order."""
    graph = rng.choice(graphs(model))
    if not graph.node:
        return
    k = rng.randrange(len(graph.node))
    match rng.randrange(4):
        case 0:
            del graph.node[k]
        case 1:
            graph.node.add().CopyFrom(graph.node[k])
        case 2:
            nodes = list(graph.node)
            rng.shuffle(nodes)
            del graph.node[:]
            graph.node.extend(nodes)
        case _:
            copy = graph.node.add()
            copy.CopyFrom(graph.node[k])
            for position, name in enumerate(copy.output):
                copy.output[position] = f"{name}_again"


def _operator(rng: random.Random, model: onnx.ModelProto) -> None:
    node = rng.choice(nodes(model))
    if rng.random() < 0.85:
        node.op_type = rng.choice(OPERATORS)
    else:
        node.domain = rng.choice(("", "own", "com.microsoft", "ai.onnx.ml", "ai.onnx.training"))


def _attribute(rng: random.Random, model: onnx.ModelProto) -> None:
    found = attributes(model)
    if not found or rng.random() < 0.2:
        names = (
            "axis",
            "axes",
            "to",
            "pads",
            "strides",
            "group",
            "dilations",
            "value",
            "kernel_shape",
        )
        node = rng.choice(nodes(model))
        value = _number(rng) if rng.random() < 0.5 else [_number(rng) for _ in range(4)]
        node.attribute.append(helper.make_attribute(rng.choice(names), value))
        return
    attribute = rng.choice(found)
    match rng.randrange(8):
        case 0 | 1:
            attribute.i = _number(rng)
        case 2 | 3:
            if attribute.ints and rng.random() < 0.7:
                attribute.ints[rng.randrange(len(attribute.ints))] = _number(rng)
            else:
                attribute.ints.extend(_number(rng) for _ in range(rng.choice((1, 2, 1000))))
        case 4:
            attribute.f = rng.choice(REALS)
        case 5:
            attribute.s = rng.choice((*NAMES, "i,j->ji", "...ij->...", "i" * 100)).encode()
        case 6:
            attribute.type = rng.randrange(15)
        case _:
            attribute.name = rng.choice(("axis", "to", "body", "\x1b[2J", "then_branch"))


def _nest(rng: random.Random, model: onnx.ModelProto) -> None:
    """A graph inside of itself, again and again; it keeps reading names from around it."""
    graph = rng.choice(graphs(model))
    condition = helper.make_tensor("nested_condition", TensorProto.BOOL, [], [rng.random() < 0.5])
    for _ in range(rng.choice((1, 2, 3, 8, 20))):
        copy = onnx.GraphProto()
        copy.CopyFrom(graph)
        del copy.input[:]
        try:
            node = helper.make_node("If", ["nested_condition"], [o.name for o in copy.output])
            node.attribute.add(name="then_branch", type=AttributeProto.GRAPH).g.CopyFrom(copy)
            node.attribute.add(name="else_branch", type=AttributeProto.GRAPH).g.CopyFrom(copy)
        except Exception:  # noqa: BLE001  (deeper than protobuf itself allows)
            return
        if node.ByteSize() > 200_000:
            return
        del graph.node[:]
        graph.node.append(node)
    if not any(t.name == condition.name for t in model.graph.initializer):
        model.graph.initializer.append(condition)


def _function(rng: random.Random, model: onnx.ModelProto) -> None:
    """Functions that lead to each other, or shadow operators."""
    called = rng.choice(nodes(model))
    name, domain = called.op_type, called.domain
    inputs = [f"i{k}" for k in range(len(called.input))]
    outputs = [f"o{k}" for k in range(len(called.output))]
    body = [
        helper.make_node(rng.choice((name, "Identity", "Relu")), inputs, outputs, domain=domain)
    ]
    imports = [helper.make_opsetid("", 20)] + [helper.make_opsetid(domain, 1)] * bool(domain)
    try:
        made = helper.make_function(domain or "own", name, inputs, outputs, body, imports)
    except Exception:  # noqa: BLE001  (names that are no names)
        return
    model.functions.append(made)
    if not domain:
        called.domain = "own"


def _opset(rng: random.Random, model: onnx.ModelProto) -> None:
    entry = rng.choice(model.opset_import)
    if rng.random() < 0.8:
        entry.version = rng.choice((0, 1, 6, 9, 11, 13, 17, 21, 24, 999, -1, 2**62))
    else:
        entry.domain = rng.choice(("", "own", "ai.onnx", "elsewhere"))


def _external(rng: random.Random, model: onnx.ModelProto) -> None:
    """Data that lie somewhere else than they should."""
    tensor = rng.choice(tensors(model))
    tensor.data_location = TensorProto.EXTERNAL
    if rng.random() < 0.5:
        tensor.ClearField("raw_data")
    known = {entry.key: entry for entry in tensor.external_data}
    places = ("../canary.bin", "/etc/passwd", "weights.bin", "link.bin", "pipe", "/dev/zero", ".")
    more = ("folder/../../canary.bin", "", "folder", "nowhere.bin", "..\\canary.bin", "round")
    links = ("weights.bin\0", "up/canary.bin", "zero", "/proc/self/mem", "./weights.bin", "w" * 300)
    texts = ("model.onnx", "/" * 4000, "folder/" * 500, "C:canary.bin", "file:///etc/passwd")
    key = rng.choice(("location", "location", "offset", "length", "basepath", "__class__"))
    entry = known.get(key) or tensor.external_data.add(key=key)
    entry.value = (
        rng.choice(places + more + links + texts)
        if key in ("location", "basepath")
        else str(_number(rng))
    )


CHANGES: Final[dict[str, Change]] = {
    "dims of a tensor": _dims_of_tensor,
    "dims of a value": _dims_of_value,
    "type": _type,
    "content": _content,
    "name": _name,
    "edges": _edges,
    "order": _arrange,
    "operator": _operator,
    "attribute": _attribute,
    "nesting": _nest,
    "function": _function,
    "opset": _opset,
    "external data": _external,
    **MALICE,
}


def _several(rng: random.Random) -> Iterator[str]:
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        yield rng.choice(list(CHANGES))


def mutated(rng: random.Random, model: onnx.ModelProto) -> tuple[str, bytes]:
    """The first kind of change, and a model after one to three of them."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    kinds = list(_several(rng))
    for kind in kinds:
        try:
            CHANGES[kind](rng, copy)
        except (IndexError, TypeError, ValueError, DecodeError):
            continue  # nothing there to change in this way, or protobuf itself refuses
    return kinds[0], copy.SerializeToString()
