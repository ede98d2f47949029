"""Models of one node beside onnxruntime: native code, symbolic sizes, no node by reference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import tilewright
from tilewright.graph.ir import Array

__all__ = ["assert_alike", "beside", "node_model", "onnxruntime_results"]

SYMBOLS = {11: "n", 13: "s", 17: "t"}
"""Dimensions of these sizes have names."""

IR_VERSION = 10


def node_model(
    op: str,
    inputs: Sequence[Any],
    outputs: Sequence[int],
    *,
    domain: str,
    version: int = 1,
    standard: int = 18,
    known: Sequence[int] = (),
    **attributes: Any,
) -> tuple[onnx.ModelProto, dict[str, Array]]:
    """A model of one node, and its feeds.

    `outputs` are element types, 0 for one left out; `standard` is the opset of the standard.
    """
    arrays = {f"x{k}": np.asarray(a) for k, a in enumerate(inputs) if a is not None}
    names = [f"x{k}" if a is not None else "" for k, a in enumerate(inputs)]
    results = [f"y{k}" if t else "" for k, t in enumerate(outputs)]
    node = helper.make_node(op, names, results, domain=domain, **attributes)
    held = {f"x{k}": arrays.pop(f"x{k}") for k in known}
    graph = helper.make_graph(
        [node],
        op,
        [_info(name, array) for name, array in arrays.items()],
        [helper.make_tensor_value_info(f"y{k}", t, None) for k, t in enumerate(outputs) if t],
        [numpy_helper.from_array(array, name) for name, array in held.items()],
    )
    imports = [helper.make_opsetid("", standard), helper.make_opsetid(domain, version)]
    return helper.make_model(graph, opset_imports=imports, ir_version=IR_VERSION), arrays


def _info(name: str, array: Array) -> onnx.ValueInfoProto:
    dims = [SYMBOLS.get(d, d) for d in array.shape]
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), dims)


def onnxruntime_results(model: onnx.ModelProto, feeds: Mapping[str, Array]) -> list[Any]:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    providers = ["CPUExecutionProvider"]
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers)
    return list(session.run(None, dict(feeds)))


def assert_alike(found: Array, wanted: Array, tolerance: float = 1e-4, steps: int = 0) -> None:
    """The same type and shape; integers may differ by `steps`, floats by a tolerance."""
    assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
    if wanted.dtype.kind in "iub":
        away = np.abs(found.astype(np.int64) - wanted.astype(np.int64))
        assert away.max(initial=0) <= steps, (found, wanted)
        return
    wide = found.astype(np.float64), wanted.astype(np.float64)
    np.testing.assert_allclose(*wide, rtol=tolerance, atol=tolerance, equal_nan=True)


def beside(
    op: str,
    inputs: Sequence[Any],
    outputs: Sequence[int] = (TensorProto.FLOAT,),
    *,
    domain: str = "com.microsoft",
    tolerance: float = 1e-4,
    steps: int = 0,
    wanted: Sequence[Array] | None = None,
    **options: Any,
) -> list[Array]:
    """Native results as onnxruntime has them (or as they are `wanted`)."""
    model, feeds = node_model(op, inputs, outputs, domain=domain, **options)
    module = tilewright.compile(model, cache=False, threads=1)
    assert not module.by_reference, module.by_reference
    found = module.run(feeds)
    expected = onnxruntime_results(model, feeds) if wanted is None else wanted
    for a, c in zip(found, expected, strict=True):
        assert_alike(a, c, tolerance, steps)
    return found
