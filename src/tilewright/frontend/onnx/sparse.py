"""Sparse tensors of a model file, which become dense ones: no operator knows anything else.

A few bytes may stand for any number of zeros, so whoever imports them pays for these first.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import onnx
from onnx import helper, numpy_helper

from tilewright.frontend.onnx.check import graphs_of
from tilewright.frontend.onnx.tensors import array_of
from tilewright.graph.folding import Purse
from tilewright.graph.ir import Array

__all__ = ["dense_of", "paid_dense", "with_dense"]


def dense_of(tensor: onnx.SparseTensorProto) -> Array:
    """All elements; places are numbers of elements, or have an index for each dimension."""
    values, places = array_of(tensor.values), array_of(tensor.indices)
    result = np.zeros(tuple(tensor.dims), values.dtype)
    if places.ndim == 1:
        result.reshape(-1)[places] = values
    else:
        result[tuple(places.T)] = values
    return result


def paid_dense(tensor: onnx.SparseTensorProto, purse: Purse) -> Array | None:
    """The same, if its elements can be paid for; what it holds itself adds to the purse."""
    purse.fill(math.prod(tensor.values.dims) + math.prod(tensor.indices.dims))
    return dense_of(tensor) if purse.spends(math.prod(tensor.dims)) else None


def with_dense(model: onnx.ModelProto) -> onnx.ModelProto:
    """A model for whoever runs it by reference; the model itself if it has no sparse tensors."""
    if not any(_is_sparse(graph) for graph in _graphs(model.graph)):
        return model
    own = onnx.ModelProto()
    own.CopyFrom(model)
    for graph in _graphs(own.graph):
        for tensor in graph.sparse_initializer:
            graph.initializer.append(numpy_helper.from_array(dense_of(tensor), tensor.values.name))
        del graph.sparse_initializer[:]
        for node in graph.node:
            for attribute in node.attribute:
                if attribute.name == "sparse_value" and attribute.HasField("sparse_tensor"):
                    dense = numpy_helper.from_array(dense_of(attribute.sparse_tensor))
                    attribute.CopyFrom(helper.make_attribute("value", dense))
    return own


def _is_sparse(graph: onnx.GraphProto) -> bool:
    if graph.sparse_initializer:
        return True
    return any(a.HasField("sparse_tensor") for node in graph.node for a in node.attribute)


def _graphs(graph: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    yield graph
    for node in graph.node:
        for _, inner in graphs_of(node):
            yield from _graphs(inner)
