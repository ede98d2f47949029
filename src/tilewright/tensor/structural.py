"""Equality and hash of programs that ignore names: the key of the tuning database.

Both go through one canonical text in which variables and buffers are numbered by first appearance,
so that two programs are equal exactly if some renaming makes them the same. The hash does not
depend on the process or on the seed of Python's own hashes.
"""

from __future__ import annotations

import enum
import math
from hashlib import blake2b

from tilewright.dtypes import DType
from tilewright.tensor import ir as tir
from tilewright.tensor.node import Node

__all__ = ["canonical_text", "structural_equal", "structural_hash"]

# Names, and dtypes that follow from the children.
_IGNORED = {(tir.Func, "name"), (tir.Block, "name"), (tir.Load, "dtype")}


def structural_equal(a: Node, b: Node) -> bool:
    """Are the programs (or parts of programs) the same up to names of variables and buffers?"""
    return a is b or canonical_text(a) == canonical_text(b)


def structural_hash(node: Node) -> str:
    """32 hexadecimal digits; equal for structurally equal programs, in every process."""
    return blake2b(canonical_text(node).encode(), digest_size=16).hexdigest()


def canonical_text(node: Node) -> str:
    """The program without names, in a form that only needs to be unique."""
    writer = _Writer()
    writer.node(node)
    return " ".join(writer.out)


class _Plans(dict[type[Node], tuple[str, tuple[str, ...]]]):
    """The word for each class, and its fields that matter."""

    def __missing__(self, kind: type[Node]) -> tuple[str, tuple[str, ...]]:
        skipped = {field for owner, field in _IGNORED if owner is kind}
        if issubclass(kind, tir.Binary):
            skipped.add("dtype")
        plan = self[kind] = (kind.__name__, tuple([f for f in kind.fields if f not in skipped]))
        return plan


_PLANS = _Plans()


class _Writer:
    def __init__(self) -> None:
        self.out: list[str] = []
        self.numbers: dict[Node, int] = {}

    def node(self, node: Node) -> None:
        kind = type(node)
        if kind is tir.Const:
            self.literal(node)  # type: ignore[arg-type]
        elif isinstance(node, tir.Var):
            number = self.numbers.get(node)
            if number is None:
                number = self.numbers[node] = len(self.numbers)
                self.out.append(node.dtype.name)
            self.out.append(f"v{number}")
        elif kind is tir.Buffer:
            self.buffer(node)  # type: ignore[arg-type]
        else:
            word, fields = _PLANS[kind]
            self.out.append(word)
            for field in fields:
                self.value(getattr(node, field))

    def literal(self, const: tir.Const) -> None:
        value = const.value
        if const.dtype.is_float:
            text = "nan" if math.isnan(value) else float(value).hex()
        else:
            text = str(int(value))
        self.out.append(f"{const.dtype.name}:{text}")

    def buffer(self, buffer: tir.Buffer) -> None:
        number = self.numbers.get(buffer)
        if number is not None:
            self.out.append(f"b{number}")
            return
        number = self.numbers[buffer] = len(self.numbers)
        self.out.append(f"B{number}")
        for value in (buffer.shape, buffer.dtype, buffer.scope, buffer.layout):
            self.value(value)

    def value(self, value: object) -> None:
        if isinstance(value, Node):
            self.node(value)
        elif type(value) is tuple:
            self.out.append(f"({len(value)}")
            for part in value:
                self.value(part)
        elif isinstance(value, enum.Enum):
            self.out.append(str(value.value))
        elif isinstance(value, DType):
            self.out.append(value.name)
        else:
            self.out.append(repr(value))
