"""`Einsum`: diagonals and sums within operands, then one product after another.

Each dimension has a letter; those of an ellipsis get letters of their own, aligned at the end. A
letter leaves as soon as no operand to come and not the result needs it.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Sequence
from dataclasses import dataclass
from string import ascii_letters

from tilewright.frontend.onnx.node import OnnxNode
from tilewright.frontend.onnx.registry import onnx_op
from tilewright.graph import Builder, Value
from tilewright.graph.sizes import fixed
from tilewright.graph.spread import stretched
from tilewright.tensor import ir as tir

__all__: list[str] = []


@dataclass(frozen=True)
class Term:
    """An operand and the letters of its dimensions."""

    letters: str
    value: Value


@onnx_op("Einsum")
def einsum(b: Builder, node: OnnxNode, *inputs: Value) -> Value:
    """The sum of products that an equation names."""
    equation = node.string("equation").replace(" ", "")
    named, result = _parsed(equation, [v.rank for v in inputs])
    terms = [_diagonal(b, Term(*pair)) for pair in zip(named, inputs, strict=True)]
    terms = _without_ones(b, [_stretched(b, term, terms) for term in terms])
    while len(terms) > 1:
        first, second, *rest = terms
        needed = dict.fromkeys([*result, *(c for t in rest for c in t.letters)])
        terms = [_multiplied(b, first, second, needed), *rest]
    last = _summed(b, terms[0], result)
    return b.transpose(last.value, [last.letters.index(c) for c in result])


def _parsed(equation: str, ranks: Sequence[int]) -> tuple[list[str], str]:
    """The letters of each operand and of the result, without ellipses."""
    left, arrow, right = equation.partition("->")
    parts = left.split(",")
    widths = [rank - len(part.replace("...", "")) for part, rank in zip(parts, ranks, strict=True)]
    free = [c for c in ascii_letters if c not in equation]
    wide = max((w for p, w in zip(parts, widths, strict=True) if "..." in p), default=0)
    hidden = "".join(free[:wide])
    named = [p.replace("...", hidden[wide - w :]) for p, w in zip(parts, widths, strict=True)]
    if arrow:
        return named, right.replace("...", hidden)
    once = sorted(c for c in set("".join(named)) if "".join(named).count(c) == 1)
    return named, hidden + "".join(c for c in once if c not in hidden)


def _diagonal(b: Builder, term: Term) -> Term:
    """A letter that stands twice takes the elements where both indices are equal."""
    own = "".join(dict.fromkeys(term.letters))
    if own == term.letters:
        return term
    shape = [term.value.shape[term.letters.index(c)] for c in own]
    taken = b.remap(term.value, shape, lambda *o: [o[own.index(c)] for c in term.letters])
    return Term(own, taken)


def _stretched(b: Builder, term: Term, terms: Sequence[Term]) -> Term:
    """An operand that may have one element along a letter where others have more."""
    sizes = [dict(zip(t.letters, t.value.shape, strict=True)) for t in terms]
    others = ([known.get(c, tir.Const(1)) for c in term.letters] for known in sizes)
    return Term(term.letters, stretched(b, term.value, others))


def _without_ones(b: Builder, terms: Sequence[Term]) -> list[Term]:
    """Dimensions of size one that meet a larger one are dropped: they are broadcast."""
    pairs = [pair for t in terms for pair in zip(t.letters, t.value.shape, strict=True)]
    wide = {c for c, d in pairs if fixed(d) != 1}
    kept: list[Term] = []
    for t in terms:
        own = [k for k, c in enumerate(t.letters) if c not in wide or fixed(t.value.shape[k]) != 1]
        value = b.reshape(t.value, [t.value.shape[k] for k in own])
        kept.append(Term("".join(t.letters[k] for k in own), value))
    return kept


def _summed(b: Builder, term: Term, needed: Container[str]) -> Term:
    """The letters that nobody needs are summed over."""
    axes = [k for k, c in enumerate(term.letters) if c not in needed]
    total = b.reduce(tir.Fold.ADD, term.value, axes, keepdims=False)
    return Term("".join(c for c in term.letters if c in needed), total)


def _multiplied(b: Builder, first: Term, second: Term, needed: Collection[str]) -> Term:
    """The product of two operands, summed over what both have and nobody else needs.

    Its dimensions are in the order of `needed`, so that the last product needs no transpose.
    """
    first = _summed(b, first, {*needed, *second.letters})
    second = _summed(b, second, {*needed, *first.letters})
    both = "".join(dict.fromkeys(first.letters + second.letters))
    result = "".join(c for c in needed if c in both)
    if len(result) < len(both):
        letters = first.letters, second.letters, result
        made = b.contract(*letters, first.value, second.value, broadcasts=True)
        return Term(result, made)
    x, y = (_spread(b, t, result) for t in (first, second))
    return Term(result, b.map(lambda v, w: v * w, x, y))


def _spread(b: Builder, term: Term, letters: str) -> Value:
    """Dimensions in the order of `letters`, ones where the operand has none."""
    own = [c for c in letters if c in term.letters]
    moved = b.transpose(term.value, [term.letters.index(c) for c in own])
    sizes = dict(zip(own, moved.shape, strict=True))
    return b.reshape(moved, [sizes.get(c, 1) for c in letters])
