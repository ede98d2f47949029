"""Recurrent layers, loops, scans and branches."""

from __future__ import annotations

from typing import Final

import numpy as np
import onnx
from onnx import TensorProto, helper

from replay.models.net import Net

__all__ = ["MODELS"]


def lstm() -> onnx.ModelProto:
    """A layer of an LSTM in both directions, for any length."""
    net = Net("lstm")
    x = net.input("x", ["length", 1, 32])
    w, r, b = net.weight(2, 4 * 48, 32), net.weight(2, 4 * 48, 48), net.weight(2, 8 * 48)
    results = net.add_many("LSTM", x, w, r, b, outputs=3, hidden_size=48, direction="bidirectional")
    return net.model(*results)


def gru() -> onnx.ModelProto:
    """A layer of a GRU, twelve steps of a batch of four."""
    net = Net("gru")
    x = net.input("x", [12, 4, 32])
    w, r, b = net.weight(1, 3 * 64, 32), net.weight(1, 3 * 64, 64), net.weight(1, 6 * 64)
    return net.model(*net.add_many("GRU", x, w, r, b, outputs=2, hidden_size=64))


def scanned() -> onnx.ModelProto:
    """A `Scan` that carries a state and stacks what it gives."""
    net = Net("scanned")
    state, steps = net.input("state", [4, 32]), net.input("steps", ["length", 4, 32])
    body = helper.make_graph(
        [
            helper.make_node("MatMul", ["old", net.weight(32, 32)], ["moved"]),
            helper.make_node("Add", ["moved", "step"], ["sum"]),
            helper.make_node("Tanh", ["sum"], ["new"]),
            helper.make_node("Identity", ["new"], ["row"]),
        ],
        "body",
        [_floats("old", [4, 32]), _floats("step", [4, 32])],
        [_floats("new", [4, 32]), _floats("row", [4, 32])],
    )
    results = net.add_many("Scan", state, steps, outputs=2, body=body, num_scan_inputs=1)
    return net.model(*results)


def looped() -> onnx.ModelProto:
    """A `Loop` that ends when a sum is large enough."""
    net = Net("looped")
    count = net.input("count", [], TensorProto.INT64)
    start = net.input("start", ["n", 16])
    body = helper.make_graph(
        [
            helper.make_node("MatMul", ["old", net.weight(16, 16)], ["moved"]),
            helper.make_node("Relu", ["moved"], ["new"]),
            helper.make_node("ReduceSum", ["new"], ["total"], keepdims=0),
            helper.make_node("Less", ["total", net.constant(_scalar(100))], ["again"]),
        ],
        "body",
        [
            helper.make_tensor_value_info("turn", TensorProto.INT64, []),
            helper.make_tensor_value_info("go", TensorProto.BOOL, []),
            _floats("old", ["n", 16]),
        ],
        [helper.make_tensor_value_info("again", TensorProto.BOOL, []), _floats("new", ["n", 16])],
    )
    return net.model(net.add("Loop", count, "", start, body=body), shape=["n", 16])


def branched() -> onnx.ModelProto:
    """An `If` with a product on one side and a map on the other."""
    net = Net("branched")
    x, flag = net.input("x", [64, 32]), net.input("flag", [], TensorProto.BOOL)
    product = helper.make_node("MatMul", [x, net.weight(32, 32)], ["left"])
    other = helper.make_node("Exp", [x], ["right"])
    sides = (product, "left"), (other, "right")
    then, otherwise = (
        helper.make_graph([node], name, [], [_floats(name, [64, 32])]) for node, name in sides
    )
    y = net.add("If", flag, then_branch=then, else_branch=otherwise)
    return net.model(net.add("Relu", y))


def _floats(name: str, shape: list[int | str]) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)


def _scalar(value: float) -> np.ndarray[tuple[()], np.dtype[np.float32]]:
    return np.array(value, np.float32)


MODELS: Final = (lstm, gru, scanned, looped, branched)
