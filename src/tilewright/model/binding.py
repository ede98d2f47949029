"""`IOBinding`: inputs and outputs of a session that are named once and used by every run.

An output with memory of its own is written in place. If all bound outputs have some, a run copies
and allocates nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tilewright.model.into import leave
from tilewright.model.values import OrtValue, array_at, require_cpu

if TYPE_CHECKING:
    from tilewright.model.session import InferenceSession

__all__ = ["IOBinding"]

Array = NDArray[Any]


class IOBinding:
    """Made by `session.io_binding()`, used by `session.run_with_iobinding`."""

    def __init__(self, session: InferenceSession) -> None:
        self._session = session
        self._feeds: dict[str, Any] = {}
        self._targets: dict[str, Array | None] = {}
        self._results: list[Any] = []

    def bind_cpu_input(self, name: str, array: Array) -> None:
        """Use this array, as it is when the session runs."""
        self._session.require_input(name)
        self._feeds[name] = array

    def bind_input(
        self,
        name: str,
        device_type: str,
        device_id: int,  # noqa: ARG002
        element_type: object,
        shape: Sequence[int],
        buffer_ptr: int,
    ) -> None:
        """Use the memory at an address."""
        require_cpu(device_type)
        self.bind_cpu_input(name, array_at(buffer_ptr, shape, element_type))

    def bind_ortvalue_input(self, name: str, ortvalue: OrtValue) -> None:
        """Use this value."""
        self.bind_cpu_input(name, ortvalue.numpy())

    def bind_output(
        self,
        name: str,
        device_type: str = "cpu",
        device_id: int = 0,  # noqa: ARG002
        element_type: object = None,
        shape: Sequence[int] | None = None,
        buffer_ptr: int | None = None,
    ) -> None:
        """Keep this output: in the memory at an address, or in an array that is made."""
        require_cpu(device_type)
        self._session.require_output(name)
        target = None
        if buffer_ptr is not None and shape is not None:
            target = array_at(buffer_ptr, shape, element_type)
        self._targets[name] = target

    def bind_ortvalue_output(self, name: str, ortvalue: OrtValue) -> None:
        """Write this output into a value."""
        self._session.require_output(name)
        self._targets[name] = ortvalue.numpy()

    def synchronize_inputs(self) -> None:
        """Nothing to wait for: there is one memory."""

    def synchronize_outputs(self) -> None:
        """Nothing to wait for: there is one memory."""

    def clear_binding_inputs(self) -> None:
        """Forget all inputs."""
        self._feeds.clear()

    def clear_binding_outputs(self) -> None:
        """Forget all outputs, and their last results."""
        self._targets.clear()
        self._results = []

    def get_outputs(self) -> list[OrtValue]:
        """The results of the last run, in the order in which they were bound."""
        return [OrtValue(result) for result in self._results]

    def copy_outputs_to_cpu(self) -> list[Any]:
        """The results of the last run as arrays of their own."""
        return [np.copy(r) if isinstance(r, np.ndarray) else r for r in self._results]

    def run(self) -> None:
        """Run the session with what is bound."""
        session = self._session
        targets = {name: array for name, array in self._targets.items() if array is not None}
        if targets and len(targets) == len(self._targets):
            session.run_into(self._feeds, targets)
            self._results = list(targets.values())
            return
        results = session.run(list(self._targets), self._feeds)
        if targets:
            by_name = dict(zip(self._targets, results, strict=True))
            leave(session.module.name, by_name, targets)
            results = list({**by_name, **targets}.values())
        self._results = results
