"""A node by the meaning of its graph: an operator that has a handler, on tensors that are there.

A model without a graph has nodes that have one. They mean here what they mean in native code, and
what the ONNX reference implementation lacks (operators of `com.microsoft`, forms of others) is no
reason to refuse a model for the texts that stand beside them.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import onnx
from onnx import helper

from tilewright.dtypes import dtype_of
from tilewright.errors import InternalError, TilewrightError
from tilewright.frontend.onnx.check import domain_of, graphs_of
from tilewright.frontend.onnx.registry import HANDLERS, Unknown
from tilewright.frontend.onnx.settled import Settled, parameters
from tilewright.graph import Graph
from tilewright.graph.interpret import interpret
from tilewright.graph.ir import Array

__all__ = ["Understood", "is_understood"]

KEPT: Final = 16
"""Graphs of a node, for as many shapes of its inputs."""


def is_understood(proto: onnx.NodeProto) -> bool:
    """Whether there is a handler; what has graphs inside is walked through instead."""
    return (domain_of(proto), proto.op_type) in HANDLERS and not any(graphs_of(proto))


class Understood:
    """A node with the graphs that it has for shapes and parameters."""

    def __init__(self, proto: onnx.NodeProto, opsets: Mapping[str, int]) -> None:
        self.proto, self.opsets = proto, opsets
        self.settled = frozenset(parameters(proto))
        self.problem: BaseException | None = None
        """Why it has no graph, if it had none the last time."""
        self._graphs: OrderedDict[object, Graph | None] = OrderedDict()

    def results(self, given: Sequence[Any]) -> list[Array | None] | None:
        """What the node gives; None if it has no graph for such inputs."""
        arrays = self._arrays(given)
        if arrays is None:
            return None
        graph = self._known(arrays)
        if graph is None:
            return None
        feeds = {v.name: arrays[v.name] for v in graph.inputs}
        with np.errstate(all="ignore"):  # infinities and NaN are values like others
            found = iter(interpret(graph, feeds))
        return [np.asarray(next(found)) if name else None for name in self.proto.output]

    def _arrays(self, given: Sequence[Any]) -> dict[str, Array] | None:
        """The inputs by name; None if one of them is no tensor of numbers."""
        arrays: dict[str, Array] = {}
        for name, value in zip(self.proto.input, given, strict=True):
            if value is None and name:
                return None  # an optional that holds nothing
            if value is None:
                continue
            if not isinstance(value, np.ndarray | np.generic):
                return None
            try:
                dtype_of(value.dtype)
            except (TypeError, KeyError, ValueError, TilewrightError):
                return None
            arrays[name] = np.asarray(value)
        return arrays

    def _known(self, arrays: Mapping[str, Array]) -> Graph | None:
        """The graph for these inputs, which is made once for equal shapes and parameters."""
        key = tuple(
            (a.dtype, a.shape, a.tobytes() if name in self.settled else None)
            for name, a in arrays.items()
        )
        if key in self._graphs:
            return self._graphs[key]
        few = {name: a for name, a in arrays.items() if name in self.settled}
        graph = self._made(arrays, few)
        if graph is None and len(few) < len(arrays):
            # More of the inputs may have to be known than those that are mostly constants. Such
            # a graph holds for these values only.
            other = self._made(arrays, arrays)
            if other is not None:
                return other
        self._graphs[key] = graph
        while len(self._graphs) > KEPT:
            self._graphs.popitem(last=False)
        return graph

    def _made(self, arrays: Mapping[str, Array], settled: Mapping[str, Array]) -> Graph | None:
        from tilewright.frontend.onnx.model import import_model

        try:
            made = import_model(self._model(arrays), Settled(dict(settled)))
        except InternalError:
            raise
        except (Unknown, TilewrightError) as problem:
            self.problem = problem
            return None
        plain = all(length is None for length in made.lengths)
        return made.graph if plain and not made.by_reference else None

    def _model(self, arrays: Mapping[str, Array]) -> onnx.ModelProto:
        inputs = [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
            for name, a in arrays.items()
        ]
        outputs = [onnx.ValueInfoProto(name=name) for name in self.proto.output if name]
        imports = [helper.make_opsetid(*pair) for pair in self.opsets.items()]
        graph = helper.make_graph([self.proto], "node", inputs, outputs)
        return helper.make_model(graph, opset_imports=imports)
