"""Symbolic dimensions that become numbers before a model is imported.

A module serves every size from one compilation, so that is rarely needed: for a file that is to run
with a size on which the rank of a value depends, or to let a version be made for one size alone.
"""

from __future__ import annotations

from collections.abc import Mapping

import onnx

from tilewright.frontend.onnx.named_sizes import dims_of

__all__ = ["fix_dims", "symbolic_dims"]


def symbolic_dims(model: onnx.ModelProto) -> list[str]:
    """Names of the dimensions of inputs that are no numbers, as `module.inputs` shows them."""
    weights = {weight.name for weight in model.graph.initializer}
    inputs = (info for info in model.graph.input if info.name not in weights)
    found = (name for info in inputs for name in dims_of(info) if isinstance(name, str))
    return list(dict.fromkeys(found))


def fix_dims(
    model: onnx.ModelProto, sizes: Mapping[str, int], denoted: Mapping[str, int] | None = None
) -> onnx.ModelProto:
    """A copy with numbers for dimensions of these names, or with these denotations."""
    copy = type(model)()
    copy.CopyFrom(model)
    for info in (*copy.graph.input, *copy.graph.output, *copy.graph.value_info):
        names = dims_of(info)
        for dim, name in zip(info.type.tensor_type.shape.dim, names, strict=True):
            size = sizes.get(str(name), (denoted or {}).get(dim.denotation))
            if isinstance(name, str) and size is not None:
                dim.dim_value = size
    return copy
