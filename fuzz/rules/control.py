"""`If`, `Loop` and `Scan` with small bodies that also read values from outside."""

from __future__ import annotations

from typing import Final

import numpy as np
import onnx
from onnx import TensorProto, helper

from fuzz.grow import Growth, Value, require
from fuzz.rules.ranks import squeeze_if_one, squeezed

__all__ = ["RULES"]

KINDS: Final = (TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.INT32, TensorProto.INT64)
UNARY: Final = ("Abs", "Neg", "Identity")
FLOAT_UNARY: Final = ("Tanh", "Sigmoid", "Relu", "Sqrt", "Floor")
BINARY: Final = ("Add", "Sub", "Mul", "Max", "Min")
MAX_TURNS: Final = 4
MANY_TURNS: Final = (1, 3, 20, 40)
"""Turns of a loop without a limit: rows that fit at first, and ones that must move."""


def _chain(
    g: Growth, start: str, kind: int, outside: list[str]
) -> tuple[list[onnx.NodeProto], str]:
    """One to three nodes that keep shape and type; some read values from outside."""
    nodes, current = [], start
    floats = kind in {TensorProto.FLOAT, TensorProto.DOUBLE}
    for _ in range(g.draw.randint(1, 3)):
        made = g.name("b")
        if outside and g.draw.random() < 0.5:
            op = g.draw.choice(BINARY[:3] if g.opset < 12 else BINARY)
            nodes.append(helper.make_node(op, [current, g.draw.choice(outside)], [made]))
        else:
            op = g.draw.choice(UNARY + FLOAT_UNARY if floats else UNARY)
            nodes.append(helper.make_node(op, [current], [made]))
        current = made
    return nodes, current


def _body(
    nodes: list[onnx.NodeProto], inputs: dict[str, int], outputs: dict[str, int]
) -> onnx.GraphProto:
    infos = [
        [helper.make_tensor_value_info(n, t, None) for n, t in side.items()]
        for side in (inputs, outputs)
    ]
    return helper.make_graph(nodes, "body", *infos)


def _resized(
    g: Growth, value: Value, turn: str | None, last: str
) -> tuple[list[onnx.NodeProto], str]:
    """What a turn collects, made of `last`, which is like `value`: its size may be known late.

    A window moves with the number of a turn, and stays inside: onnxruntime stacks what differs in
    size if it has no elements. A mask selects as many as it says, as often as it is asked.
    """
    if g.ones and g.draw.random() < 0.4:
        return squeezed(g, last)
    seen, sized = g.name("b"), [] if value.rank == 0 else ["mask", "window", "places"]
    match g.draw.choice(["same", "same", *sized]):
        case "mask":
            mask = g.new(TensorProto.BOOL, g.dims_of(value)[:1])
            return [helper.make_node("Compress", [last, mask.name], [seen], axis=0)], seen
        case "window" if turn is not None:
            one, zero = g._constant(np.array([1])), g._constant(np.array([0]))
            width = g.draw.randint(1, 3)
            require(value.all(lambda a: a.size and a.shape[0] >= width + MAX_TURNS))
            wide = g._constant(np.array([width]))
            begin, end = g.name("b"), g.name("b")
            nodes = [
                helper.make_node("Reshape", [turn, one.name], [begin]),
                helper.make_node("Add", [begin, wide.name], [end]),
                helper.make_node("Slice", [last, begin, end, zero.name], [seen]),
            ]
            return nodes, seen
        case "places":
            return [helper.make_node("NonZero", [value.name], [seen])], seen
    return [helper.make_node("Identity", [last], [seen])], seen


def _count(g: Growth) -> Value:
    """How often: mostly a number in the model, which becomes copies of the body, or an input."""
    array = np.array(g.draw.randint(1, MAX_TURNS), np.int64)
    if g.draw.random() < 0.5:
        return g.parameter(array)
    count = Value(g.name("p"), [array] * g.runs)
    g.inputs.append((count, []))
    return count


def _type(nodes: list[onnx.NodeProto], value: Value) -> int:
    """The element type of what `_resized` gives."""
    return TensorProto.INT64 if nodes[-1].op_type in {"NonZero", "Size"} else value.type


def if_(g: Growth, op: str) -> None:
    if g.ones and g.draw.random() < 0.5:
        squeeze_if_one(g, op)
        return
    x = g.pick(KINDS)
    outside = [x.name, g.broadcast(x, one_way=True).name]
    condition = Value(g.name("x"), [np.array(g.draw.random() < 0.5) for _ in range(g.runs)])
    g.inputs.append((condition, []))
    branches = {}
    for branch in ("then_branch", "else_branch"):
        nodes, last = _chain(g, x.name, x.type, outside)
        branches[branch] = _body(nodes, {}, {last: x.type})
    g.add(op, [condition], **branches)


def loop(g: Growth, op: str) -> None:
    """A carried value, which may grow, and what it is in each turn; a condition may end the loop.

    One without a limit goes on until then. A second value is handed on as it came, if there is one.
    A placeholder without dimensions may stand for the carried value until the first turn.
    """
    x = g.pick(KINDS, high=3)
    endless = g.draw.random() < 0.3
    count = None if endless else _count(g)
    require(g.opset >= 11)
    turn, going, carried = (g.name("b") for _ in range(3))
    other = g.like(x)
    handed = [g.name("b")] if g.draw.random() < 0.4 else []
    grows = x.rank > 0 and g.draw.random() < 0.25
    nodes, last = _chain(g, carried, x.type, [] if grows else handed or [other.name])
    begin = x
    if x.rank > 0 and not grows and g.draw.random() < 0.25:
        begin, wide = g.new(x.type, []), g.name("b")
        nodes.append(helper.make_node("Add", [last, other.name], [wide]))
        last = wide
    more = g.name("b")
    if not endless and g.draw.random() < 0.5:
        nodes.append(helper.make_node("Identity", [going], [more]))
    else:
        turns = g.draw.choice(MANY_TURNS) if endless else g.draw.randint(0, 3)
        nodes.append(_before(g, turn, turns, more))
    if grows:
        nodes, last, collecting = _longer(g, nodes, last, other)
    else:
        collecting, _ = _resized(g, x, None if endless else turn, last)
    seen = collecting[-1].output[0]
    given_back = [g.name("b") for _ in handed]
    nodes += [
        helper.make_node("Identity", [a], [b]) for a, b in zip(handed, given_back, strict=True)
    ]
    kinds = {turn: TensorProto.INT64, going: TensorProto.BOOL, carried: x.type}
    inputs = {**kinds, **dict.fromkeys(handed, x.type)}
    states = {last: x.type, **dict.fromkeys(given_back, x.type)}
    outputs = {more: TensorProto.BOOL, **states, seen: _type(collecting, x)}
    body = _body([*nodes, *collecting], inputs, outputs)
    for info in (*body.input[:2], body.output[0]):  # onnxruntime wants to know
        info.type.tensor_type.shape.SetInParent()
    start = g.parameter(np.array(1, np.bool_)) if g.draw.random() < 0.7 else None
    g.add(op, [count, start, begin, *([other] * len(handed))], 2 + len(handed), body=body)


def _before(g: Growth, turn: str, turns: int, result: str) -> onnx.NodeProto:
    limit = g._constant(np.array(turns, np.int64))
    return helper.make_node("Less", [turn, limit.name], [result])


def _longer(
    g: Growth, nodes: list[onnx.NodeProto], last: str, other: Value
) -> tuple[list[onnx.NodeProto], str, list[onnx.NodeProto]]:
    """A state that grows in each turn, which collects how many elements it has."""
    longer, size = g.name("b"), g.name("b")
    joined = helper.make_node("Concat", [last, other.name], [longer], axis=0)
    return [*nodes, joined], longer, [helper.make_node("Size", [longer], [size])]


def scan(g: Growth, op: str) -> None:
    """A state that takes in slices of an input, forwards or backwards."""
    require(g.opset >= 11)
    x = g.pick(KINDS, low=1, high=4, where=lambda v: v.all(lambda a: a.shape[0] > 0))
    dims = g.dims_of(x)
    state = g.new(x.type, dims[1:])
    held, part, kept = (g.name("b") for _ in range(3))
    first = g.draw.choice(BINARY if g.opset >= 12 else BINARY[:3])
    nodes = [helper.make_node(first, [held, part], [kept])]
    inner, last = _chain(g, kept, x.type, [state.name])
    collecting, seen = _resized(g, state, None, last)
    outputs = {kept: x.type, seen: _type(collecting, x)}
    body = _body([*nodes, *inner, *collecting], {held: x.type, part: x.type}, outputs)
    backwards = {"scan_input_directions": [1]} if g.draw.random() < 0.3 else {}
    g.add(op, [state, x], 2, body=body, num_scan_inputs=1, **backwards)


RULES: Final = {"If": if_, "Loop": loop, "Scan": scan}
