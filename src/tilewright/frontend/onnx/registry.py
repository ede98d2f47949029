"""Which function imports which ONNX operator.

    @onnx_op("Relu")
    def relu(b: Builder, node: OnnxNode, x: Value) -> Value:
        return b.map(lambda v: tir.maximum(v, 0), x)

A handler takes the builder, the node and one value for each input (None where an optional one is left
out, and for missing trailing ones), and returns a value for each output. It calls `node.decline(reason)`
for what it cannot express: the node then runs on the ONNX reference implementation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from tilewright.graph import Value

__all__ = ["HANDLERS", "Declined", "Handler", "onnx_op", "operators"]

Results = Value | Sequence[Value]
Handler = Callable[..., Results]

HANDLERS: dict[tuple[str, str], Handler] = {}
"""Handlers by (domain, operator); the domain of ONNX itself is empty."""


class Declined(Exception):  # noqa: N818  (a signal to the importer, not an error)
    """A handler cannot express this node; the text says why."""


def onnx_op(*names: str, domain: str = "") -> Callable[[Handler], Handler]:
    """Register a handler for one or several operators."""

    def register(handler: Handler) -> Handler:
        for name in names:
            key = (domain, name)
            if key in HANDLERS:
                raise ValueError(f"two handlers for {name}")
            HANDLERS[key] = handler
        return handler

    return register


def operators() -> Iterator[tuple[str, str]]:
    """All operators that have a handler, as (domain, name)."""
    yield from sorted(HANDLERS)


