"""Nodes of a model that no kernel computes: which they are, what they read, and why.

The importer notes them, the warning and the error about them carry them, and a file with a compiled
model keeps them. A text about many of them groups those of one operator and one reason and says how
many it leaves out; the values themselves are always complete.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from tilewright.shown import shown

__all__ = ["Operand", "Unsupported", "listing"]

GROUPS: Final = 8
"""Groups of nodes that a text shows."""
EACH: Final = 3
"""Nodes of a group that a text shows."""
MOST: Final = 16
"""Inputs of a node that a text shows."""
LONGEST: Final = 1000
"""Characters of a reason that a text shows; it may hold names."""


@dataclass(frozen=True, slots=True)
class Operand:
    """What a node reads: symbolic dimensions are names; `shape` is None where it is not known.

    `dtype` is empty where nothing is known. An optional input that was left out has no name.
    """

    name: str
    dtype: str = ""
    shape: tuple[int | str, ...] | None = None

    def __str__(self) -> str:
        if not self.name:
            return "none"
        dims = "[?]" if self.shape is None else f"[{', '.join(map(shown, self.shape))}]"
        name = shown(self.name)
        return f"{name}: {self.dtype}{dims}" if self.dtype else f"{name}: ?"


@dataclass(frozen=True, slots=True)
class Unsupported:
    """One node. `inside` says in which graph of which node it stands, empty for the model's own.

    `op` is empty if the reason concerns the model and none of its nodes.
    """

    node: str
    op: str
    domain: str
    opset: int
    inputs: tuple[Operand, ...]
    reason: str
    inside: str = ""

    @property
    def operator(self) -> str:
        """The operator with its domain, unless that is the one of ONNX itself."""
        return shown(f"{self.domain}::{self.op}" if self.domain else self.op)

    @property
    def group(self) -> str:
        """What it shares with others: the operator and the reason."""
        return f"{self.operator} (opset {self.opset})" if self.op else "the model"

    def where(self) -> str:
        """The node and what it reads."""
        node, inside = shown(self.node), shown(self.inside)
        place = f"`{node}` in `{inside}`" if inside else f"`{node}`"
        if not self.inputs:
            return place
        more = [f"{len(self.inputs) - MOST} more"] if len(self.inputs) > MOST else []
        return f"{place} of {', '.join([*map(str, self.inputs[:MOST]), *more])}"

    def __str__(self) -> str:
        reason = shown(self.reason, LONGEST)
        return f"{self.where()}, {self.group}: {reason}" if self.op else reason

    def to_dict(self) -> dict[str, Any]:
        """As data of JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Unsupported:
        inputs = (
            Operand(**{**i, "shape": None if i["shape"] is None else tuple(i["shape"])})
            for i in data["inputs"]
        )
        return cls(**{**data, "inputs": tuple(inputs)})


def listing(nodes: Iterable[Unsupported], groups: int = GROUPS, each: int = EACH) -> list[str]:
    """Lines that name nodes by groups, the largest first, with a count of what is left out."""
    found: dict[tuple[str, str], list[Unsupported]] = {}
    for node in nodes:
        found.setdefault((node.group, node.reason), []).append(node)
    ranked = sorted(found.items(), key=lambda item: -len(item[1]))
    lines = [
        line
        for (group, reason), members in ranked[:groups]
        for line in _group_lines(group, reason, members, each)
    ]
    left = ranked[groups:]
    if left:
        count = sum(len(members) for _, members in left)
        names = ", ".join(dict.fromkeys(members[0].operator for _, members in left))
        lines.append(f"and {_nodes(count)} more: {names}")
    return lines


def _group_lines(
    group: str, reason: str, members: Sequence[Unsupported], each: int
) -> Iterable[str]:
    many = f", {_nodes(len(members))}" if len(members) > 1 else ""
    yield f"{group}{many}: {shown(reason, LONGEST)}"
    named = [member for member in members if member.op][:each]
    yield from (f"  {member.where()}" for member in named)
    if named and len(members) > len(named):
        yield f"  and {len(members) - len(named)} more"


def _nodes(count: int) -> str:
    return f"{count} {'node' if count == 1 else 'nodes'}"
