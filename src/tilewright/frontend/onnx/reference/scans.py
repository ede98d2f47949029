"""`Scan` for the ONNX reference implementation, in the place of its own.

That one walks along first axes only, forwards, and fails if there is nothing to walk along. In its
first form, of opset 8, the operator has a batch around it, and a length for each part of that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from onnx.reference.op_run import OpRun
from onnx.reference.ops.op_scan import Scan as IncompleteScan

from tilewright.frontend.onnx.reference.loops import nothing

__all__ = ["Scan"]


class Scan(IncompleteScan):  # type: ignore[misc]
    """A body for each element of tensors along an axis, forwards or backwards (since opset 9)."""

    def __init__(self, onnx_node: Any, run_params: dict[str, Any]) -> None:
        OpRun.__init__(self, onnx_node, run_params)  # its own refuses what this one knows

    def _run(
        self,
        *inputs: Any,
        context: dict[str, Any] | None = None,
        attributes: Any = None,
        bindings: Any = None,
        **_declared: Any,
    ) -> tuple[Any, ...]:
        around = {"context": context, "attributes": attributes, "bindings": bindings}
        found = self._batch(inputs, around) if self._is_first_form else self._walk(inputs, around)
        return tuple(self._check_and_fix_outputs(tuple(found)))

    @property
    def _is_first_form(self) -> bool:
        return bool(self.run_params["opsets"][""] < 9)

    def _batch(self, inputs: Sequence[Any], around: Mapping[str, Any]) -> Sequence[Any]:
        """Each part of the batch by itself; what is beyond its length is zero."""
        lengths, *rest = inputs
        states = len(rest) - self.num_scan_inputs
        steps = rest[-1].shape[1]
        rows = []
        for place in range(rest[0].shape[0]):
            length = steps if lengths is None else int(lengths[place])
            scanned = [x[place][:length] for x in rest[states:]]
            found = self._walk([*(x[place] for x in rest[:states]), *scanned], around)
            borders = ([(0, steps - length), *[(0, 0)] * (x.ndim - 1)] for x in found[states:])
            padded = map(np.pad, found[states:], borders)
            rows.append([*found[:states], *padded])
        return [np.stack(column) for column in zip(*rows, strict=True)]

    def _walk(self, inputs: Sequence[Any], around: Mapping[str, Any]) -> Sequence[Any]:
        """The body for one element after another."""
        context, attributes, bindings = around.values()
        count = self.num_scan_inputs
        states, scanned = list(inputs[:-count]), inputs[-count:]
        axes, backward = self._along()
        sides = zip(scanned, _filled(axes, count), _filled(backward, count), strict=True)
        rows = [np.moveaxis(x, axis, 0)[:: -1 if back else 1] for x, axis, back in sides]
        values = dict(context or {})
        found: list[Sequence[Any]] = []
        for parts in zip(*rows, strict=True):
            values.update(zip(self.body.input_names, (*states, *parts), strict=True))
            turn = self._run_body(values, attributes=attributes, bindings=bindings)
            states, collected = turn[: len(states)], turn[len(states) :]
            found.append(collected)
        stacked = [np.stack(column) for column in zip(*found, strict=True)]
        if not found:
            empty = (np.zeros(row.shape[1:], row.dtype) for row in rows)
            values.update(zip(self.body.input_names, (*states, *empty), strict=True))
            stacked = nothing(self.body, values, len(states))
        return *states, *self._arranged(stacked)

    def _along(self) -> tuple[Sequence[int], Sequence[int]]:
        """Axes and directions of what is walked along, as far as they are given."""
        if self._is_first_form:
            return (), getattr(self, "directions", None) or ()
        return self.scan_input_axes or (), self.scan_input_directions or ()

    def _arranged(self, stacked: Sequence[Any]) -> list[Any]:
        """Stacked elements along their axes, in order."""
        if self._is_first_form:
            return list(stacked)
        axes = _filled(self.scan_output_axes or (), len(stacked))
        backward = _filled(self.scan_output_directions or (), len(stacked))
        return [
            np.moveaxis(x[:: -1 if back else 1], 0, axis)
            for x, axis, back in zip(stacked, axes, backward, strict=True)
        ]


def _filled(given: Sequence[int], count: int) -> list[int]:
    """Numbers that are left out are zero."""
    return [*given, *[0] * (count - len(given))]
