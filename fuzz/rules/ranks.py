"""Operators whose rank, or the meaning of whose axes, depends on whether sizes are one.

Ordinary graphs have none: only those with runs for sizes of one do (`fuzz/ones.py`).
"""

from __future__ import annotations

import numpy as np
import onnx
from onnx import helper

from fuzz.grow import Growth, Value, require

__all__ = ["squeeze_all", "squeeze_if_one", "squeezed", "view_by_sizes"]


def _has_ones(value: Value) -> bool:
    """Whether a dimension is one in some runs, and another number in others."""
    if len({a.ndim for a in value.arrays}) > 1:
        return True
    extents = ({a.shape[k] for a in value.arrays} for k in range(value.rank))
    return any(1 in found and len(found) > 1 for found in extents)


def squeeze_all(g: Growth, op: str) -> None:
    """Without axes: all dimensions of one go."""
    x = g.pick(g.types(op), low=1, where=_has_ones)
    g.add(op, [x])


def squeeze_if_one(g: Growth, op: str) -> None:
    """What exporters write for `x.squeeze(axis)`: a branch without the axis if it is one."""
    x = g.pick(g.types("Squeeze"), low=1, where=_has_ones)
    least = min(a.ndim for a in x.arrays)
    require(least)
    at = g.draw.randrange(least)
    shape = g.add_hidden("Shape", [x])
    size = g.add_hidden("Gather", [shape, g._constant(np.array(at))])
    is_one = g.add_hidden("Equal", [size, g._constant(np.array(1))])
    branches = {
        "then_branch": _graph(x, [_squeeze_at(g, x, at)]),
        "else_branch": _graph(x, [helper.make_node("Identity", [x.name], [g.name("b")])]),
    }
    g.add(op, [is_one], **branches)


def _squeeze_at(g: Growth, x: Value, at: int) -> onnx.NodeProto:
    made = g.name("b")
    if g.opset < 13:
        return helper.make_node("Squeeze", [x.name], [made], axes=[at])
    axes = g._constant(np.array([at]))
    return helper.make_node("Squeeze", [x.name, axes.name], [made])


def _graph(like: Value, nodes: list[onnx.NodeProto]) -> onnx.GraphProto:
    made = helper.make_tensor_value_info(nodes[-1].output[0], like.type, None)
    return helper.make_graph(nodes, "branch", [], [made])


def squeezed(g: Growth, last: str) -> tuple[list[onnx.NodeProto], str]:
    """A node for the body of a loop."""
    seen = g.name("b")
    return [helper.make_node("Squeeze", [last], [seen])], seen


def view_by_sizes(g: Growth, op: str) -> None:
    """Reshaped to sizes of the value itself in another order; -1 stands for one of them."""
    x = g.pick(g.types(op), low=1)
    require(len({a.ndim for a in x.arrays}) == 1)
    order = g.draw.sample(range(x.rank), x.rank)
    shape = g.add_hidden("Shape", [x])
    parts = [g.add_hidden("Gather", [shape, g._constant(np.array([k]))]) for k in order]
    if g.draw.random() < 0.7:
        parts[g.draw.randrange(x.rank)] = g._constant(np.array([-1]))
    wanted = g.add_hidden("Concat", parts, axis=0)
    allows = {"allowzero": 1} if g.opset >= 14 and g.draw.random() < 0.2 else {}
    require(not allows or all(-1 not in v.arrays[0] for v in parts) or x.all(lambda a: a.size))
    g.add(op, [x, wanted], **allows)
