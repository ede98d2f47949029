"""Which function imports which ONNX operator.

    @onnx_op("Relu")
    def relu(b: Builder, node: OnnxNode, x: Value) -> Value:
        return b.map(lambda v: tir.maximum(v, 0), x)

A handler takes the builder, the node and one value for each input (None where an optional one is
left out, and for missing trailing ones), and returns a value for each output. It calls
`node.decline(reason)` for what it cannot express: the node then runs on the ONNX reference
implementation.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from tilewright.frontend.onnx.scope import Item
from tilewright.unsupported import Unsupported

__all__ = ["HANDLERS", "MODEL_PROBLEMS", "TAKE_SEQUENCES", "Declined", "Handler", "Unknown"]
__all__ += ["called", "onnx_op", "operators"]

Results = Item | Sequence[Item]
Handler = Callable[..., Results]

HANDLERS: dict[tuple[str, str], Handler] = {}
"""Handlers by (domain, operator); the domain of ONNX itself is empty."""

TAKE_SEQUENCES: set[str] = set()
"""Operators whose handlers understand sequences."""

_VALUES: Final = ("Value", "Value | Tensors")
"""What the annotations of inputs are that cannot be left out."""

MODEL_PROBLEMS = (ValueError, TypeError, LookupError, ArithmeticError)
"""What handlers may run into when a model contradicts itself; anything else is a bug of theirs."""


class Unknown(Exception):  # noqa: N818  (a signal: the whole model must run on the reference)
    """A part of the model has no form that is known before it runs; `nodes` says which."""

    def __init__(self, reason: str, nodes: Sequence[Unsupported] = ()) -> None:
        super().__init__(reason)
        self.nodes = tuple(nodes)


class Declined(Exception):  # noqa: N818  (a signal to the importer, not an error)
    """A handler cannot express this node; the text says why."""


def onnx_op(*names: str, domain: str = "", sequences: bool = False) -> Callable[[Handler], Handler]:
    """Register a handler for one or several operators; may inputs be `sequences`?"""

    def register(handler: Handler) -> Handler:
        for name in names:
            key = (domain, name)
            if key in HANDLERS:
                raise ValueError(f"two handlers for {name}")
            HANDLERS[key] = handler
            if sequences:
                TAKE_SEQUENCES.add(name)
        return handler

    return register


def called(
    handler: Handler, builder: object, node: object, inputs: Sequence[Item]
) -> Sequence[Item]:
    """What a handler makes of a node; a ValueError if an input that it needs is left out."""
    if missing := _missing_input(handler, inputs):
        raise ValueError(f"the input `{missing}` is left out")
    made = handler(builder, node, *inputs)
    return made if isinstance(made, list | tuple) else (made,)


def _missing_input(handler: Handler, inputs: Sequence[Item]) -> str:
    """The name of an input that a handler needs, as its signature says, and that is left out.

    The definitions of ONNX say so, too, but not all operators have one.
    """
    needs, repeated = _needs(handler)
    for position, value in enumerate(inputs):
        name = needs[position] if position < len(needs) else repeated
        if value is None and name:
            return name
    return ""


@functools.cache
def _needs(handler: Handler) -> tuple[tuple[str, ...], str]:
    """Names of the inputs that cannot be left out, empty for others; and of those that repeat."""
    parameters = list(inspect.signature(handler).parameters.values())[2:]
    names = [(p, p.name if p.annotation in _VALUES else "") for p in parameters]
    repeated = [name for p, name in names if p.kind is p.VAR_POSITIONAL]
    return tuple(name for p, name in names if p.kind is not p.VAR_POSITIONAL), "".join(repeated)


def operators() -> Iterator[tuple[str, str]]:
    """All operators that have a handler, as (domain, name)."""
    yield from sorted(HANDLERS)
