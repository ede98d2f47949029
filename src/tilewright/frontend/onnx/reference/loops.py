"""`Loop` for the ONNX reference implementation, in the place of its own.

That one joins what iterations collect along the first dimension instead of stacking it, takes a
condition that is left out as one that does not hold, and fails if there is no iteration.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper
from onnx.reference.ops.op_loop import Loop as IncompleteLoop
from onnx.shape_inference import infer_shapes

__all__ = ["Loop", "nothing"]


class Loop(IncompleteLoop):  # type: ignore[misc]
    """A body again and again; what it collects is stacked along a new first dimension."""

    def _run(
        self,
        limit: Any,
        condition: Any,
        *carried: Any,
        context: dict[str, Any] | None = None,
        body: Any = None,  # noqa: ARG002  (the evaluator of it is an attribute)
        attributes: Any = None,
        bindings: Any = None,
    ) -> tuple[Any, ...]:
        step, going, *states = self.body.input_names
        values = {**(context or {}), **dict(zip(states, carried, strict=False))}
        goes_on = condition is None or bool(np.asarray(condition).item())
        rows: list[Sequence[Any]] = []
        while goes_on and (limit is None or len(rows) < int(np.asarray(limit).item())):
            values[step] = np.array(len(rows), np.int64)
            values[going] = np.bool_(1)
            found = self._run_body(values, attributes=attributes, bindings=bindings)
            goes_on = bool(np.asarray(found[0]).item())
            values.update(zip(states, found[1 : 1 + len(states)], strict=True))
            rows.append(found[1 + len(states) :])
        stacked = [np.stack(column) for column in zip(*rows, strict=True)]
        if not rows:
            values |= {step: np.int64(0), going: np.bool_(1)}
            stacked = nothing(self.body, values, 1 + len(states))
        return (*(values[name] for name in states), *stacked)

    def _check_and_fix_outputs(self, results: tuple[Any, ...]) -> tuple[Any, ...]:
        """An optional that holds nothing is a result as well."""
        return tuple(np.asarray(v) if np.isscalar(v) else v for v in results)


def nothing(body: Any, values: dict[str, Any], first: int) -> list[Any]:
    """What no iteration has collected, in the outputs of a body from `first` on.

    Dimensions that only an iteration would tell are zero. `values` are all that the body may read.
    """
    graph = onnx.GraphProto()
    graph.CopyFrom(body.proto_)
    del graph.input[:]
    graph.input.extend(
        helper.make_tensor_value_info(name, _number(value), np.shape(value))
        for name, value in values.items()
        if isinstance(value, np.ndarray | np.generic)
    )
    opsets = [helper.make_opsetid(domain, number) for domain, number in body.opsets.items()]
    inferred = infer_shapes(helper.make_model(graph, opset_imports=opsets), data_prop=True)
    infos = inferred.graph.output[first:]
    return [_empty(info.type.tensor_type) for info in infos]


def _number(value: Any) -> int:
    dtype = np.asarray(value).dtype
    text = dtype.kind in "OSUT"
    return onnx.TensorProto.STRING if text else int(helper.np_dtype_to_tensor_dtype(dtype))


def _empty(kind: onnx.TypeProto.Tensor) -> Any:
    dims = [d.dim_value for d in kind.shape.dim]
    return np.zeros((0, *dims), helper.tensor_dtype_to_np_dtype(kind.elem_type))
