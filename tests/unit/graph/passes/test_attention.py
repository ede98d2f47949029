"""Attention in the forms in which models write it becomes one operator with the same meaning."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tilewright.dtypes import boolean, f32, i64
from tilewright.graph import Builder, Graph, Value, interpret, verify_graph
from tilewright.graph.ops.attend import Attend
from tilewright.graph.passes.attention import find_attention
from tilewright.graph.passes.rewrite import rewrite_graph
from tilewright.graph.passes.scalars import embed_scalars
from tilewright.graph.sizes import sized
from tilewright.tensor import ir as tir
from tilewright.tensor.build import call, select

BATCH, SEQ = tir.Var("batch"), tir.Var("seq")
HEADS, WIDTH = 3, 8
LOW = float(np.finfo(np.float32).min)


def softmax(b: Builder, x: Value) -> Value:
    """As the handler of the operator writes it."""
    top = b.reduce(tir.Fold.MAX, x, [x.rank - 1])
    power = b.map(lambda v, m: call("exp_bounded", v - m), x, top)
    total = b.reduce(tir.Fold.ADD, power, [x.rank - 1])
    return b.map(lambda e, r: e * r, power, b.map(lambda s: 1 / s, total))


def split(b: Builder, x: Value, heads: int = HEADS) -> Value:
    """[batch, positions, features] → [batch, heads, positions, features of a head]."""
    shaped = b.reshape(x, (*x.shape[:2], heads, WIDTH))
    return b.transpose(shaped, (0, 2, 1, 3))


def turned(b: Builder, k: Value) -> Value:
    """Keys as the right operand of a product."""
    return b.transpose(k, (0, 1, 3, 2))


def joined(b: Builder, y: Value) -> Value:
    return b.reshape(b.transpose(y, (0, 2, 1, 3)), (*y.shape[:1], y.shape[2], HEADS * WIDTH))


class Model:
    """Inputs of a model under construction."""

    def __init__(self, batch=2, seq=5, keys=None, shared=HEADS) -> None:
        self.b = Builder("attention")
        size = HEADS * WIDTH
        self.x = [
            self.b.input(n, f32, (batch, s, w))
            for n, s, w in (
                ("q", seq, size),
                ("k", keys or seq, shared * WIDTH),
                ("v", keys or seq, shared * WIDTH),
            )
        ]

    @property
    def heads(self) -> tuple[Value, Value, Value]:
        q, k, v = (split(self.b, x, int(tir.int_value(x.shape[2])) // WIDTH) for x in self.x)
        return q, k, v


def found(graph: Graph, sizes=None) -> Attend:
    """The only attention of a graph, after a check that the meaning stays."""
    verify_graph(graph)
    after = rewrite_graph(rewrite_graph(graph, embed_scalars), find_attention)
    verify_graph(after)
    rng = np.random.default_rng(0)
    known = sizes or {}
    feeds = {}
    for value in graph.inputs:
        shape = [
            known.get(str(d.name)) if isinstance(d, tir.Var) else int(d.value) for d in value.shape
        ]
        if value.dtype.is_bool:
            feeds[value.name] = rng.random(shape) < 0.6
        elif value.dtype.is_integer:
            feeds[value.name] = rng.integers(0, 2, shape)
        else:
            feeds[value.name] = rng.standard_normal(shape).astype(np.float32)
    for a, b in zip(interpret(graph, feeds), interpret(after, feeds), strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-6)
    attends = [n for n in after.nodes if isinstance(n.op, Attend)]
    assert len(attends) <= 1
    return attends[0] if attends else None


def test_plain_attention_takes_its_transposes_along():
    m = Model()
    q, k, v = m.heads
    scores = m.b.map(lambda s: s * 0.25, m.b.matmul(q, turned(m.b, k)))
    node = found(m.b.graph([joined(m.b, m.b.matmul(softmax(m.b, scores), v))]))
    assert node.op == Attend(("bshd",) * 4, 0.25)
    assert [len(v.shape) for v in node.inputs] == [4, 4, 4]


@pytest.mark.parametrize("where", ["queries", "keys", "both", "division"])
def test_scales_may_stand_anywhere(where):
    m = Model()
    q, k, v = m.heads
    b = m.b
    if where in {"queries", "both"}:
        q = b.map(lambda e: e * 0.5, q)
    k = turned(b, k)
    if where in {"keys", "both"}:
        k = b.map(lambda e: 0.5 * e, k)
    scores = b.matmul(q, k)
    if where == "division":
        scores = b.map(lambda e: e / 2.0, scores)
    node = found(b.graph([b.matmul(softmax(b, scores), v)]))
    assert node.op.scale == pytest.approx(0.25 if where == "both" else 0.5)
    assert node.op.layouts == ("bshd", "bshd", "bshd", "bhsd")


def test_symbolic_sizes_and_keys_through_joined_heads():
    """Keys are turned as [batch·heads, positions, features], as an exporter writes it."""
    m = Model(BATCH, SEQ)
    q, k, v = m.heads
    b = m.b
    flat = b.reshape(k, (BATCH * HEADS, SEQ, WIDTH))
    back = b.reshape(b.transpose(flat, (0, 2, 1)), (BATCH, HEADS, WIDTH, SEQ))
    y = b.matmul(softmax(b, b.matmul(q, back)), v)
    node = found(b.graph([joined(b, y)]), {"batch": 2, "seq": 6})
    assert node.op.layouts == ("bshd",) * 4


def test_heads_that_are_shared_are_not_repeated():
    m = Model(shared=1)
    q, k, v = m.heads
    b = m.b

    def repeated(x: Value) -> Value:
        wide = b.expand(b.reshape(x, (2, 1, 1, 5, WIDTH)), (2, 1, HEADS, 5, WIDTH))
        return b.reshape(wide, (2, HEADS, 5, WIDTH))

    y = b.matmul(softmax(b, b.matmul(q, turned(b, repeated(k)))), repeated(v))
    node = found(b.graph([y]))
    assert dict(zip(node.op.layouts[1], sized(node.inputs[1].shape), strict=True))["h"] == 1


def test_operands_that_are_cut_out_of_one_product_stay_there():
    b = Builder("packed")
    x = b.input("x", f32, (2, 5, 3 * HEADS * WIDTH))
    width = HEADS * WIDTH
    parts = [
        b.remap(x, (2, 5, width), lambda i, j, c, n=n: [i, j, c + n * width]) for n in range(3)
    ]
    q, k, v = (split(b, part) for part in parts)
    node = found(b.graph([b.matmul(softmax(b, b.matmul(q, turned(b, k))), v)]))
    assert node.op.layouts[:3] == ("bs0hd", "bs1hd", "bs2hd")
    assert len(set(node.inputs)) == 1


def masked(m: Model, logits: Value) -> Attend:
    _, _, v = m.heads
    return found(m.b.graph([m.b.matmul(softmax(m.b, logits), v)]))


def scores(m: Model) -> Value:
    q, k, _ = m.heads
    return m.b.matmul(q, turned(m.b, k))


def test_added_masks():
    m = Model()
    mask = m.b.input("mask", f32, (2, 1, 1, 5))
    node = masked(m, m.b.map(lambda s, e: s + e, scores(m), mask))
    assert node.inputs[3].name == "mask"


def test_a_mask_that_is_scaled_with_the_scores():
    m = Model()
    mask = m.b.input("mask", f32, (2, 1, 1, 5))
    node = masked(m, m.b.map(lambda s, e: (s + e) * 0.5, scores(m), mask))
    assert node.op.scale == 0.5


@pytest.mark.parametrize("swapped", [False, True])
def test_selected_masks_are_conditions(swapped):
    m = Model()
    mask = m.b.input("mask", boolean, (2, 1, 5, 5))
    zero = m.b.map(lambda c: select(c, 0.0, -math.inf), mask)
    if swapped:
        logits = m.b.map(lambda s, c: select(c, -math.inf, s), scores(m), mask)
    else:
        logits = m.b.map(lambda s, e: s + e, scores(m), zero)
    node = masked(m, logits)
    assert node.inputs[3].dtype is (f32 if swapped else boolean)


@pytest.mark.parametrize("low", [-math.inf, LOW])
def test_a_causal_mask_is_an_attribute(low):
    m = Model(seq=6)
    table = np.where(np.tril(np.ones((1, 1, 6, 6), bool)), 0.0, low).astype(np.float32)
    node = masked(m, m.b.map(lambda s, e: s + e, scores(m), m.b.constant(table)))
    assert node.op.causal
    assert len(node.inputs) == 3


def test_a_causal_mask_by_formula_over_symbolic_sizes():
    m = Model(BATCH, SEQ)
    b = m.b
    place = b.tabulate((SEQ,), lambda i: i)
    query, key = b.reshape(place, (1, 1, SEQ, 1)), b.reshape(place, (1, 1, 1, SEQ))
    allowed = b.map(lambda j, i: j <= i, key, query)
    cut = b.map(lambda c: select(c, 0.0, LOW), allowed)
    q, k, v = m.heads
    logits = b.map(lambda s, e: s + e, b.matmul(q, turned(b, k)), cut)
    node = found(b.graph([b.matmul(softmax(b, logits), v)]), {"batch": 1, "seq": 7})
    assert node.op.causal
    assert len(node.inputs) == 3


def test_masks_that_hold_together_are_taken_apart():
    m = Model(seq=6)
    b = m.b
    valid = b.input("valid", boolean, (2, 1, 1, 6))
    causal = b.constant(np.tril(np.ones((1, 1, 6, 6), bool)))
    both = b.map(lambda p, q: p & q, causal, valid)
    logits = b.map(lambda s, e: s + e, scores(m), b.map(lambda c: select(c, 0.0, -math.inf), both))
    p = softmax(b, logits)
    guarded = b.map(lambda n, e: select(n, 0.0, e), b.map(lambda e: e.ne(e), p), p)
    _, _, v = m.heads
    node = found(b.graph([b.matmul(guarded, v)]))
    assert node.op.causal
    assert node.op.guarded
    assert [value.name for value in node.inputs[3:]] == ["valid"]


def test_a_finite_mask_keeps_rows_in_which_nothing_is_visible():
    """They are means of all values: a causal attribute would leave some out."""
    m = Model(seq=6)
    b = m.b
    valid = b.input("valid", boolean, (2, 1, 1, 6))
    causal = b.constant(np.tril(np.ones((1, 1, 6, 6), bool)))
    both = b.map(lambda p, q: p & q, causal, valid)
    cut = b.map(lambda c: select(c, 0.0, LOW), both)
    node = masked(m, b.map(lambda s, e: s + e, scores(m), cut))
    assert not node.op.causal


def test_parts_of_masks_that_always_hold_are_dropped():
    m = Model(seq=6)
    b = m.b
    valid = b.input("valid", boolean, (2, 1, 1, 6))
    both = b.map(lambda p, q: p & q, b.constant(np.ones((1, 1, 6, 6), bool)), valid)
    cut = b.map(lambda c: select(c, 0.0, LOW), both)
    node = masked(m, b.map(lambda s, e: s + e, scores(m), cut))
    assert sized(node.inputs[3].shape) == (2, 1, 1, 6)


def test_a_mask_for_each_window_of_a_batch():
    """Scores are [batch·windows, …] and get their masks as [batch, windows, …]."""
    m = Model(batch=6)
    b = m.b
    mask = b.input("mask", f32, (3, 5, 5))
    apart = b.reshape(scores(m), (2, 3, HEADS, 5, 5))
    added = b.map(lambda s, e: s + e, apart, b.reshape(mask, (1, 3, 1, 5, 5)))
    node = masked(m, b.reshape(added, (6, HEADS, 5, 5)))
    assert sized(node.inputs[3].shape) == (6, 1, 5, 5)


def test_capped_scores():
    m = Model()
    capped = m.b.map(lambda s: call("tanh", s * 0.1) * 5.0, scores(m))
    node = masked(m, capped)
    assert node.op.softcap == pytest.approx(5.0)
    assert node.op.scale == pytest.approx(0.5)


def test_scores_that_something_else_changes_stay():
    m = Model()
    assert masked(m, m.b.map(lambda s: call("abs", s), scores(m))) is None


def test_weights_that_are_an_output_stay():
    m = Model()
    _, _, v = m.heads
    weights = softmax(m.b, scores(m))
    assert found(m.b.graph([m.b.matmul(weights, v), weights])) is None


def test_counts_are_no_attention():
    b = Builder("integers")
    x = b.input("x", i64, (2, 3, 4, 4))
    assert found(b.graph([b.matmul(x, x)])) is None
