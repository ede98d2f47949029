"""Nodes that native code cannot run: they go to the reference implementation, or nothing runs them.

A node falls back by itself if it reads and gives tensors of known rank, else as a part of a segment
(`segments.py`). What the reference implementation does not know either is noted as broken.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.frontend.onnx.budget import Budget
from tilewright.frontend.onnx.check import Found, captured_names, nested
from tilewright.frontend.onnx.notes import Notes, Stuck, reference_refuses
from tilewright.frontend.onnx.reference.nodes import reference_node
from tilewright.frontend.onnx.registry import Unknown
from tilewright.frontend.onnx.scope import Item, Lost, Opaque, Scope, seen
from tilewright.frontend.onnx.settled import parameters
from tilewright.graph import Builder, Value

__all__ = ["fall_back", "reads_opaque", "require_forms", "waits"]


def reads_opaque(found: Found, inputs: Sequence[Item], scope: Scope) -> bool:
    """Whether a node, or a graph inside of it, reads what has no form before a run."""
    if any(isinstance(item, Opaque) for item in inputs):
        return True
    return any(isinstance(seen(name, scope), Opaque) for name in captured_names(found.proto))


def fall_back(
    b: Builder,
    notes: Notes,
    budget: Budget,
    found: Found,
    inputs: Sequence[Item],
    scope: Scope,
    why: str,
) -> Sequence[Item]:
    """The results of a node on the reference implementation; opaque if they have no form."""
    _require_reference(b, notes, found, scope, why)
    around = {name: scope[name] for name in captured_names(found.proto) if name in scope}
    captured = {name: item for name, item in around.items() if not isinstance(item, Lost)}
    declared = {} if found.inside else notes.declared
    note = notes.describe(found, scope, why)
    made = reference_node(b, found.proto, inputs, found.opsets, captured, declared, note)
    if any(isinstance(item, Opaque) for item in made.results) and not budget.allows_opaque():
        raise Unknown(why)
    budget.copy(made.copied_bytes, "nodes that run in several places")
    notes.by_reference.update(made.ran)
    return made.results


def _require_reference(b: Builder, notes: Notes, found: Found, scope: Scope, why: str) -> None:
    """Refuse a node that the reference implementation cannot run, with all inside of it."""
    refused = [
        (f, reference_refuses(f.proto, f.opsets, declined=f.proto is found.proto))
        for f in nested(found, {})
    ]
    if any(reason for _, reason in refused) and waits(b, found, scope):
        raise Unknown(why)
    for inner, reason in refused:
        if reason:
            notes.add_broken(*notes.describe(inner, scope, f"{why}, and {reason}"))
    if any(reason for _, reason in refused):
        raise Stuck(found.name)


def waits(b: Builder, found: Found, scope: Scope) -> bool:
    """Whether something must be known of a node that only a run tells."""
    items = [scope[name] for name in parameters(found.proto)]
    return any(isinstance(v, Value) and b.contents(v) is None for v in items)


def require_forms(notes: Notes, outputs: Sequence[Item]) -> None:
    """Note what keeps a model from being a graph: outputs of which not even the rank is known."""
    opaque = [item for item in outputs if isinstance(item, Opaque)]
    for item in opaque:
        notes.formless.update(item.segment.collected().notes)
    if opaque and not notes.formless:
        raise Unknown("an output is a constant that is no tensor of numbers")
    if opaque:
        raise Stuck("an output")
