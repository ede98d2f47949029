"""Operators around layers: reductions, places that data says, sorting, sizes that data tells."""

from __future__ import annotations

from typing import Final

import numpy as np
import onnx
from onnx import TensorProto

from replay.models.net import Net

__all__ = ["MODELS"]


def reductions() -> onnx.ModelProto:
    """All the ways to fold an axis."""
    net = Net("reductions")
    x = net.input("x", [8, "n", 48])
    last, middle = net.constant(np.array([-1])), net.constant(np.array([1]))
    kinds = ("ReduceSum", "ReduceMax", "ReduceProd", "ReduceL2", "ReduceLogSumExp")
    results = [net.add(kind, x, last, keepdims=0) for kind in kinds]
    results.append(net.add("ReduceMin", x, middle, keepdims=1))
    results.append(net.add("ArgMax", x, axis=1, keepdims=0))
    return net.model(*results)


def places() -> onnx.ModelProto:
    """Gathered and scattered elements."""
    net = Net("places")
    x = net.input("x", [32, 24])
    rows = net.input("rows", ["n"], TensorProto.INT64)
    at = net.input("at", ["n", 2], TensorProto.INT64)
    taken = net.add("Gather", x, rows, axis=0)
    points = net.add("GatherND", x, at)
    spread = net.add("ScatterND", x, at, net.add("Exp", points), reduction="add")
    return net.model(taken, points, spread)


def greatest() -> onnx.ModelProto:
    """The few greatest elements of rows, and their softmax."""
    net = Net("greatest")
    x = net.input("x", ["rows", 64])
    values, numbers = net.add_many("TopK", x, net.constant(np.array([5])), outputs=2, axis=-1)
    return net.model(net.add("Softmax", values, axis=-1), numbers)


def found() -> onnx.ModelProto:
    """`NonZero`: a size that only data tells, and a product over what is found."""
    net = Net("found")
    x = net.input("x", [64, 16])
    first = net.add("ReduceMax", x, net.constant(np.array([1])), keepdims=0)
    above = net.add("Greater", first, net.constant(np.array(0.5, np.float32)))
    at = net.add("Squeeze", net.add("NonZero", above), net.constant(np.array([0])))
    return net.model(net.dense(net.add("Gather", x, at), 16, 32))


def moved() -> onnx.ModelProto:
    """Slices, borders, repeats and turns between two maps."""
    net = Net("moved")
    x = net.add("Relu", net.input("x", [1, 12, 20, 28]))
    ends = [np.array(v) for v in ([2, 4], [18, 24], [2, 3], [1, 2])]
    x = net.add("Slice", x, *map(net.constant, ends))
    x = net.add("Pad", x, net.constant(np.array([0, 0, 1, 1, 0, 0, 1, 1])), mode="reflect")
    x = net.add("Transpose", x, perm=[0, 2, 3, 1])
    x = net.add("Tile", x, net.constant(np.array([2, 1, 1, 1])))
    sums = net.add("CumSum", x, net.constant(np.array(1)))
    x = net.add("Transpose", x, perm=[0, 3, 1, 2])
    return net.model(net.add("DepthToSpace", x, blocksize=2), sums)


MODELS: Final = (reductions, places, greatest, found, moved)
