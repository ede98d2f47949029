"""Attention of the standard and of ONNX Runtime's domain, against the formula."""

from __future__ import annotations

import numpy as np
import pytest
from onnx.reference import ReferenceEvaluator

from tests.expect import raises_code
from tests.onnx.small_models import check_node, one_node
from tilewright.frontend.onnx import import_model
from tilewright.graph import interpret
from tilewright.graph.ops.attend import Attend

BATCH, QUERIES, KEYS, HEADS, WIDTH = 2, 6, 5, 3, 8
SIZE = HEADS * WIDTH
MICROSOFT = "com.microsoft"


@pytest.fixture
def drawn(rng):
    return lambda *shape: rng.standard_normal(shape).astype(np.float32)


def heads_of(x):
    """[batch, positions, features] → [batch, heads, positions, features of a head]."""
    return x.reshape(*x.shape[:2], HEADS, WIDTH).transpose(0, 2, 1, 3)


def attended(q, k, v, mask=0.0, scale=WIDTH**-0.5):
    """The formula, on operands with their heads in front; heads side by side again."""
    scores = q.astype(np.float64) @ k.transpose(0, 1, 3, 2) * scale + mask
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    y = powers / powers.sum(-1, keepdims=True) @ v
    return y.transpose(0, 2, 1, 3).reshape(len(q), -1, SIZE).astype(np.float32)


def operands(drawn, keys=KEYS):
    return drawn(BATCH, QUERIES, SIZE), drawn(BATCH, keys, SIZE), drawn(BATCH, keys, SIZE)


def test_heads_inside_of_features_need_no_transpose(drawn):
    options = {"q_num_heads": HEADS, "kv_num_heads": HEADS}
    q, k, v = operands(drawn)
    check_node("Attention", [q, k, v], opset=23, attributes=options)
    graph = import_model(one_node("Attention", [q, k, v], opset=23, attributes=options)[0]).graph
    assert [node.op.name for node in graph.nodes if node.op.name != "reshape"] == ["attend"]


@pytest.mark.parametrize("window", [(2, 0), (1, 2), (-1, 1)])
def test_windows_of_attention(drawn, window):
    q = drawn(1, 2, 9, 4)
    options = {"left_window_size": window[0], "right_window_size": window[1]}
    check_node("Attention", [q, drawn(1, 2, 9, 4), drawn(1, 2, 9, 4)], opset=25, attributes=options)


def test_a_cache_moves_the_causal_border(drawn):
    q, k = drawn(1, 2, 3, 8), drawn(1, 2, 3, 8)
    past = drawn(1, 2, 4, 8)
    inputs = [q, k, k, None, past, past]
    check_node("Attention", inputs, opset=23, outputs=3, attributes={"is_causal": 1})


def test_multi_head_attention(drawn):
    q, k, v = operands(drawn)
    wanted = attended(*map(heads_of, (q, k, v)))
    options = {"num_heads": HEADS}
    check_node(
        "MultiHeadAttention", [q, k, v], domain=MICROSOFT, attributes=options, expected=[wanted]
    )


def test_multi_head_attention_with_bias_and_scale(drawn):
    q, k, v = operands(drawn)
    bias = drawn(3 * SIZE)
    moved = [x + part for x, part in zip((q, k, v), np.split(bias, 3), strict=True)]
    wanted = attended(*map(heads_of, moved), scale=0.3)
    options = {"num_heads": HEADS, "scale": 0.3}
    check_node(
        "MultiHeadAttention",
        [q, k, v, bias],
        domain=MICROSOFT,
        attributes=options,
        expected=[wanted],
    )


def test_multi_head_attention_with_masks(drawn):
    q, k, v = operands(drawn)
    valid = np.ones((BATCH, KEYS), np.int32)
    valid[1, 3:] = 0
    added = drawn(BATCH, HEADS, QUERIES, KEYS)
    mask = np.where(valid, 0, -10000.0)[:, None, None] + added
    wanted = attended(*map(heads_of, (q, k, v)), mask)
    inputs, options = [q, k, v, None, valid, added], {"num_heads": HEADS}
    check_node(
        "MultiHeadAttention", inputs, domain=MICROSOFT, attributes=options, expected=[wanted]
    )


def test_multi_head_attention_gives_its_cache_back(drawn):
    q, k, v = operands(drawn, keys=QUERIES)
    past_k, past_v = drawn(BATCH, HEADS, 4, WIDTH), drawn(BATCH, HEADS, 4, WIDTH)
    keys = np.concatenate([past_k, heads_of(k)], 2)
    values = np.concatenate([past_v, heads_of(v)], 2)
    wanted = [attended(heads_of(q), keys, values), keys, values]
    inputs, options = [q, k, v, None, None, None, past_k, past_v], {"num_heads": HEADS}
    check_node(
        "MultiHeadAttention",
        inputs,
        outputs=3,
        domain=MICROSOFT,
        attributes=options,
        expected=wanted,
    )


@pytest.mark.parametrize("causal", [0, 1])
def test_attention_with_its_projection(drawn, causal):
    x, weights, bias = drawn(BATCH, QUERIES, 16) / 4, drawn(16, 3 * SIZE), drawn(3 * SIZE)
    q, k, v = map(heads_of, np.split(x @ weights + bias, 3, axis=-1))
    border = np.triu(np.full((QUERIES, QUERIES), -np.inf), 1) if causal else 0.0
    options = {"num_heads": HEADS, "unidirectional": causal}
    model, feeds = one_node("Attention", [x, weights, bias], domain=MICROSOFT, attributes=options)
    graph = import_model(model).graph
    (node,) = [n for n in graph.nodes if isinstance(n.op, Attend)]
    assert node.op.layouts == ("bs0hd", "bs1hd", "bs2hd", "bshd")
    np.testing.assert_allclose(
        interpret(graph, feeds)[0], attended(q, k, v, border), rtol=1e-3, atol=1e-4
    )


@pytest.mark.parametrize("interleaved", [0, 1])
@pytest.mark.parametrize("flat", [False, True])
def test_rotations_of_both_domains_agree(drawn, interleaved, flat):
    x = drawn(BATCH, QUERIES, SIZE) if flat else drawn(BATCH, HEADS, QUERIES, WIDTH)
    cosines, sines = drawn(20, WIDTH // 2), drawn(20, WIDTH // 2)
    positions = np.tile(np.arange(3, 3 + QUERIES), (BATCH, 1))
    options = {"interleaved": interleaved, **({"num_heads": HEADS} if flat else {})}
    check_node("RotaryEmbedding", [x, cosines, sines, positions], opset=23, attributes=options)
    model, feeds = one_node(
        "RotaryEmbedding", [x, cosines, sines, positions], opset=23, attributes=options
    )
    wanted = ReferenceEvaluator(model).run(None, feeds)
    for given in (positions, np.array([3])):
        inputs = [x, given, cosines, sines]
        check_node("RotaryEmbedding", inputs, domain=MICROSOFT, attributes=options, expected=wanted)


def test_shared_caches_are_declined(drawn):
    past = drawn(BATCH, HEADS, 4, WIDTH)
    given = [*operands(drawn), None, None, None, past, past, np.array([2], np.int32)]
    model, _ = one_node(
        "MultiHeadAttention",
        given,
        domain=MICROSOFT,
        attributes={"num_heads": HEADS},
    )
    with raises_code("M004", text="MultiHeadAttention (opset 1): a cache that is shared"):
        import_model(model)
