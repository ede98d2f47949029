"""`TfIdfVectorizer` of numbers: how often the sequences of a list occur in each row.

Every place of a row is the beginning of sequences, with steps of one or more between their
elements. What is known of a sequence is the number of its first elements in a sorted table of all
beginnings; with the next element it is looked up in the table of beginnings that are one longer.
The time is linear in the elements, and grows with the logarithm of the list.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final, TypeVar

import numpy as np

from tilewright.dtypes import f32, i64
from tilewright.frontend.onnx.conversions import converted
from tilewright.frontend.onnx.lookup import looked_up
from tilewright.frontend.onnx.node import OnnxNode
from tilewright.frontend.onnx.registry import onnx_op
from tilewright.frontend.onnx.spending import pay_elements, pay_steps
from tilewright.graph import Builder, Value
from tilewright.graph.ir import Array
from tilewright.graph.ops import axis, picked
from tilewright.graph.ops.gather import Gather
from tilewright.graph.ops.scatter import Scatter
from tilewright.graph.sizes import fixed
from tilewright.tensor import ir as tir
from tilewright.tensor.build import select

__all__ = ["columns_of", "weights_of"]

T = TypeVar("T", int, str)

NONE: Final = -1
"""The number of what is not in a table."""
NODES: Final = 3
"""Nodes that look one length of sequences up."""


@onnx_op("Tokenizer", domain="com.microsoft")
def tokenizer(b: Builder, node: OnnxNode, x: Value) -> Value:
    """Texts have no kernel; the operator is known all the same, and runs by reference."""
    node.decline("texts")


@onnx_op("TfIdfVectorizer")
def tf_idf(b: Builder, node: OnnxNode, x: Value) -> Value:
    """A number for each sequence of the list: how often, whether, or both by a weight."""
    if node.has("pool_strings"):
        node.decline("sequences of texts")
    rows = b.reshape(x, (1, x.shape[0] if x.rank else 1)) if x.rank < 2 else x
    columns = node.ints("ngram_indexes") or [0]
    width = max(columns) + 1
    counts = _counted(b, node, rows, columns, width)
    mode = node.string("mode", "TF")
    if mode == "TF":
        found = converted(b, counts, f32)
    else:
        pay_elements(b, node, width, "its weights", len(columns))
        weights = weights_of(columns, node.floats("weights") or [], width)
        by = b.constant(weights, "weights", f32)
        once = mode == "IDF"

        def weighted(c: tir.Expr, w: tir.Expr) -> tir.Expr:
            return select(c > 0, w, tir.const(0, f32)) if once else c.to(f32) * w

        found = b.map(weighted, counts, by, dtype=f32)
    return found if x.rank == 2 else b.reshape(found, (width,))


def columns_of(
    pool: Sequence[T], starts: Sequence[int], columns: Sequence[int], lengths: range
) -> dict[tuple[T, ...], int]:
    """The sequences of a list with some lengths, and where each of them is counted.

    Those of each length stand one after another from one of `starts` on; `columns` has an entry for
    every sequence of the list. Of equal ones the last counts.
    """
    if any(a > b for a, b in pairwise([0, *starts, len(pool)])):
        raise ValueError("sequences of one length do not begin behind those of the length before")
    found: dict[tuple[T, ...], int] = {}
    ends = [*starts[1:], len(pool)]
    number = 0
    for length, (start, end) in enumerate(zip(starts, ends, strict=True), 1):
        part = pool[start:end]
        for at in range(0, len(part) // length * length, length):
            if length in lengths:
                found[tuple(part[at : at + length])] = columns[number]
            number += 1
    return found


def weights_of(columns: Sequence[int], weights: Sequence[float], width: int) -> list[float]:
    """The weight of each column: a model has them in the order of its sequences.

    Of sequences that share a column the last one's counts.
    """
    found = [1.0] * width
    for column, weight in zip(columns, weights, strict=False):
        found[column] = weight
    return found


def _counted(
    b: Builder,
    node: OnnxNode,
    rows: Value,
    columns: Sequence[int],
    width: int,
) -> Value:
    """(row, column): how many sequences were found; what is not in the list has a column, too."""
    lengths = range(node.int("min_gram_length", 1), node.int("max_gram_length", 1) + 1)
    pool, starts = node.ints("pool_int64s") or [], node.ints("ngram_counts") or []
    column_of = columns_of(pool, starts, columns, lengths)
    hits: list[Value] = []
    if column_of and fixed(rows.shape[1]) != 0:
        steps, reach = node.int("max_skip_count") + 1, fixed(rows.shape[1])
        steps = steps if reach is None else min(steps, reach)  # longer ones lead out of a row
        pay_steps(b, node, NODES * steps * max(map(len, column_of)), "sequences with gaps")
        tables = _Tables(column_of, width)
        tokens = tables.tokens_of(b, rows)
        for step in range(1, steps + 1):
            hits += tables.columns_of(b, tokens, step, lengths)
    zeros = b.expand(b.constant(0, "zero", i64), (rows.shape[0], width + 1))
    if hits:
        every = b.concat(hits, 1)
        ones = b.expand(b.constant(1, "one", i64), every.shape)
        place = Scatter(((2, (axis(0), axis(1))),), (axis(0), picked(0)), tir.Fold.ADD)
        zeros = b.add(place, zeros, ones, every)
    return b.remap(zeros, (rows.shape[0], width), lambda r, c: (r, c))


class _Tables:
    """Sorted tables of the elements of sequences, and of their beginnings of each length."""

    def __init__(self, column_of: dict[tuple[int, ...], int], width: int) -> None:
        self.width = width
        self.tokens = np.unique(np.array([t for gram in column_of for t in gram], np.int64))
        rank = {int(t): k for k, t in enumerate(self.tokens)}
        self.keys: list[Array] = []
        self.columns: list[Array] = []
        before: dict[tuple[int, ...], int] = {(): 0}
        for n in range(1, max(map(len, column_of)) + 1):
            key_of = {g[:n]: before[g[: n - 1]] for g in column_of if len(g) >= n}
            key_of = {g: k * len(rank) + rank[g[-1]] for g, k in key_of.items()}
            order = sorted(key_of, key=lambda g: key_of[g])
            before = {g: k for k, g in enumerate(order)}
            self.keys.append(np.array([key_of[g] for g in order], np.int64))
            self.columns.append(np.array([column_of.get(g, width) for g in order], np.int64))

    def tokens_of(self, b: Builder, rows: Value) -> Value:
        """The number of each element, or `NONE`."""
        return _looked_up(b, converted(b, rows, i64), self.tokens)

    def columns_of(self, b: Builder, tokens: Value, step: int, lengths: range) -> list[Value]:
        """For each length where the sequences that begin at each place belong.

        Single elements have no steps between them: they count once.
        """
        found: list[Value] = []
        known = tokens
        several, size = len(self.tokens), tokens.shape[1]
        for n, (keys, columns) in enumerate(zip(self.keys, self.columns, strict=True), 1):
            if n == 1:
                known = _looked_up(b, tokens, keys)
            else:
                shift = (n - 1) * step
                following = b.remap(
                    tokens,
                    tokens.shape,
                    lambda r, p, by=shift: (r, p + by),
                    inside=lambda _, p, by=shift: p + by < size,
                    fill=NONE,
                )
                longer = b.map(
                    lambda k, t: select((k < 0) | (t < 0), tir.Const(NONE), k * several + t),
                    known,
                    following,
                )
                known = _looked_up(b, longer, keys)
            if n in lengths and (n > 1 or step == 1):
                table = b.constant([*columns, self.width], "columns", i64)
                found.append(_read(b, table, known))
        return found


def _looked_up(b: Builder, values: Value, table: Array) -> Value:
    """The place of each value in a sorted table, or `NONE`."""
    place = looked_up(b, values, table)
    here = _read(b, b.constant(table, "table", i64), place)
    return b.map(lambda p, e, v: select(e.eq(v), p, tir.Const(NONE)), place, here, values)


def _read(b: Builder, table: Value, places: Value) -> Value:
    """Elements of a vector; `NONE` is the last one."""
    o = (axis(0), axis(1))
    return b.add(Gather(places.shape, ((1, o),), (picked(0),)), table, places)
