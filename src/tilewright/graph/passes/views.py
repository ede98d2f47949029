"""Which dimensions of a tensor the dimensions of a view of it are.

A chain of reshapes, transposes and repetitions only names elements of its source anew. Followed
back as far as every dimension is made of whole dimensions of the source, it is a list of these:

    x [b, s, h, d] → transpose [b, h, s, d] → reshape [b·h, s, d]   is   [[0, 2], [1], [3]] of x
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.graph.ir import Value
from tilewright.graph.ops import Expand, Reshape, Transpose
from tilewright.graph.passes.rewrite import Rewriter
from tilewright.graph.sizes import dims_equal, fixed
from tilewright.tensor import ir as tir

__all__ = ["Repeat", "View", "in_order", "view_of"]


@dataclass(frozen=True)
class Repeat:
    """A dimension along which elements repeat."""

    extent: tir.Expr


Atom = int | Repeat


@dataclass(frozen=True)
class View:
    """For each dimension, the dimensions of `base` that it consists of, outermost first.

    Dimensions of size one may be missing.
    """

    base: Value
    dims: tuple[tuple[Atom, ...], ...]

    @classmethod
    def plain(cls, value: Value) -> View:
        return cls(value, tuple((d,) for d in range(value.rank)))

    def extent(self, atom: Atom) -> tir.Expr:
        return atom.extent if isinstance(atom, Repeat) else self.base.shape[atom]


def view_of(b: Rewriter, value: Value) -> View:
    """The longest chain of movements that ends in a value, seen as one view."""
    node = b.producer(value)
    if node is None or not isinstance(node.op, Reshape | Transpose | Expand):
        return View.plain(value)
    before = view_of(b, node.inputs[0])
    match node.op:
        case Transpose(order=order):
            return View(before.base, tuple(before.dims[d] for d in order))
        case Reshape(shape=shape):
            dims = _regrouped(before, shape)
        case Expand(shape=shape):
            dims = _repeated(before, node.inputs[0].shape, shape)
    return View.plain(value) if dims is None else View(before.base, dims)


def _regrouped(view: View, shape: Sequence[tir.Expr]) -> tuple[tuple[Atom, ...], ...] | None:
    """The same dimensions of the base in other groups; None if one would have to be cut."""
    rest = [a for group in view.dims for a in group if fixed(view.extent(a)) != 1]
    dims: list[tuple[Atom, ...]] = []
    for wanted in shape:
        group: list[Atom] = []
        size: tir.Expr = tir.Const(1)
        while not dims_equal(size, wanted):
            if not rest:
                return None
            atom = rest.pop(0)
            group.append(atom)
            size = size * view.extent(atom)
        dims.append(tuple(group))
    return None if rest else tuple(dims)


def _repeated(
    view: View, before: Sequence[tir.Expr], after: Sequence[tir.Expr]
) -> tuple[tuple[Atom, ...], ...] | None:
    if len(before) != len(after):
        return None
    dims: list[tuple[Atom, ...]] = []
    for group, old, new in zip(view.dims, before, after, strict=True):
        if dims_equal(old, new):
            dims.append(group)
        elif fixed(old) == 1:
            dims.append((Repeat(new),))
        else:
            return None
    return tuple(dims)


def in_order(
    b: Rewriter, view: View, letters: Sequence[str], wanted: str
) -> tuple[Value, str] | None:
    """The base of a view, and its dimensions by name, each letter of `wanted` once.

    `letters` name the dimensions of the view; several dimensions of one name become one where they
    lie side by side, sizes of one come and go. What repeats is left out: None unless its name
    keeps a dimension, and is the innermost part of it.
    """
    names: dict[int, str] = {}
    ranks: dict[int, int] = {}
    for letter, group in zip(letters, view.dims, strict=True):
        for place, atom in enumerate(group):
            if isinstance(atom, Repeat):
                if place != len(group) - 1:
                    return None
            else:
                names[atom], ranks[atom] = letter, len(ranks)
    runs: list[tuple[str, tir.Expr]] = []
    last = -1
    for d, dim in enumerate(view.base.shape):
        if d not in names:
            if fixed(dim) != 1:
                return None
            continue
        if runs and runs[-1][0] == names[d] and ranks[last] < ranks[d]:
            runs[-1] = (names[d], runs[-1][1] * dim)
        else:
            runs.append((names[d], dim))
        last = d
    layout = "".join(name for name, _ in runs)
    if len(set(layout)) != len(layout):
        return None
    missing = "".join(c for c in wanted if c not in layout)
    shape = [*(tir.Const(1) for _ in missing), *(dim for _, dim in runs)]
    return b.reshape(view.base, shape), missing + layout
