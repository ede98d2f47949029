"""Transformers and their parts: attention, positions, caches, feed-forward layers."""

from __future__ import annotations

from typing import Final

import numpy as np
import onnx
from onnx import TensorProto

from replay.models.net import Net

__all__ = ["MODELS"]

FEATURES, HEADS = 128, 4


def transformer() -> onnx.ModelProto:
    """A block of an encoder for 64 positions."""
    return _transformer("transformer", 1, 64)


def transformer_of_any_length() -> onnx.ModelProto:
    """The same for any batch and length."""
    return _transformer("transformer_of_any_length", "batch", "length")


def _transformer(name: str, batch: int | str, length: int | str) -> onnx.ModelProto:
    net = Net(name)
    x = net.input("x", [batch, length, FEATURES])
    normal = net.layer_norm(x, FEATURES)
    q, k, v = (_heads(net, net.dense(normal, FEATURES, FEATURES)) for _ in range(3))
    x = net.add("Add", x, net.dense(_attended(net, q, k, v), FEATURES, FEATURES))
    y = net.dense(net.layer_norm(x, FEATURES), FEATURES, 4 * FEATURES)
    y = net.dense(net.add("Gelu", y), 4 * FEATURES, FEATURES)
    return net.model(net.add("Add", x, y))


def _heads(net: Net, x: str) -> str:
    """[batch, head, position, feature] of [batch, position, features]."""
    return net.add("Transpose", net.reshape(x, 0, 0, HEADS, -1), perm=[0, 2, 1, 3])


def _attended(net: Net, q: str, k: str, v: str, mask: str = "") -> str:
    """Attention as exporters write it, with heads put together again."""
    scale = net.constant(np.array((FEATURES / HEADS) ** -0.5, np.float32))
    scores = net.add("MatMul", q, net.add("Transpose", k, perm=[0, 1, 3, 2]))
    scores = net.add("Mul", scores, scale)
    scores = net.add("Add", scores, mask) if mask else scores
    made = net.add("MatMul", net.add("Softmax", scores, axis=-1), v)
    return net.reshape(net.add("Transpose", made, perm=[0, 2, 1, 3]), 0, 0, FEATURES)


def cached_attention() -> onnx.ModelProto:
    """One position of a decoder: keys and values of earlier ones come from a cache and go there."""
    net = Net("cached_attention")
    x = net.input("x", [1, 1, FEATURES])
    cache: list[int | str] = [1, HEADS, "past", FEATURES // HEADS]
    past_k, past_v = net.input("past_k", cache), net.input("past_v", cache)
    q, k, v = (_heads(net, net.dense(x, FEATURES, FEATURES)) for _ in range(3))
    k = net.add("Concat", past_k, k, axis=2)
    v = net.add("Concat", past_v, v, axis=2)
    return net.model(net.dense(_attended(net, q, k, v), FEATURES, FEATURES), k, v)


def masked_attention() -> onnx.ModelProto:
    """Attention with a mask that is an input, for any length."""
    net = Net("masked_attention")
    x = net.input("x", [1, "length", FEATURES])
    mask = net.input("mask", [1, 1, "length", "length"])
    q, k, v = (_heads(net, net.dense(x, FEATURES, FEATURES)) for _ in range(3))
    return net.model(_attended(net, q, k, v, mask))


def shared_heads() -> onnx.ModelProto:
    """The operator `Attention`, causal, with fewer heads of keys and values."""
    net = Net("shared_heads", opset=23)
    q = net.input("q", [1, 8, "length", 32])
    k, v = net.input("k", [1, 2, "length", 32]), net.input("v", [1, 2, "length", 32])
    return net.model(net.add("Attention", q, k, v, is_causal=1))


def rotary() -> onnx.ModelProto:
    """Features turned by their position: halves swapped, sines and cosines looked up."""
    net = Net("rotary")
    x = net.input("x", [1, HEADS, "length", 32])
    at = net.input("positions", ["length"], TensorProto.INT64)
    angles = np.outer(np.arange(256), 10000.0 ** -(np.arange(32) % 16 / 16)).astype(np.float32)
    cosine, sine = (net.add("Gather", net.constant(f(angles)), at) for f in (np.cos, np.sin))
    left, right = net.add_many("Split", x, outputs=2, axis=-1, num_outputs=2)
    turned = net.add("Concat", net.add("Neg", right), left, axis=-1)
    return net.model(net.add("Add", net.add("Mul", x, cosine), net.add("Mul", turned, sine)))


def feed_forward() -> onnx.ModelProto:
    """Layer normalisation and two products, the exact gelu written out."""
    net = Net("feed_forward")
    x = net.input("x", [64, FEATURES])
    y = net.dense(net.layer_norm(x, FEATURES), FEATURES, 256)
    root, one, half = (net.constant(np.array(v, np.float32)) for v in (2**0.5, 1, 0.5))
    error = net.add("Add", net.add("Erf", net.add("Div", y, root)), one)
    y = net.add("Mul", net.add("Mul", y, error), half)
    return net.model(net.add("Add", x, net.dense(y, 256, FEATURES)))


def gated() -> onnx.ModelProto:
    """Root mean square normalisation and a gated layer, without biases."""
    net = Net("gated")
    x = net.input("x", ["tokens", FEATURES])
    square = net.add("Mul", x, x)
    mean = net.add("ReduceMean", square, net.constant(np.array([-1])), keepdims=1)
    small = net.constant(np.array(1e-6, np.float32))
    root = net.add("Sqrt", net.add("Add", mean, small))
    y = net.add("Mul", net.add("Div", x, root), net.weight(FEATURES))
    gate = net.add("MatMul", y, net.weight(FEATURES, 384))
    gate = net.add("Mul", gate, net.add("Sigmoid", gate))
    y = net.add("Mul", gate, net.add("MatMul", y, net.weight(FEATURES, 384)))
    return net.model(net.add("Add", x, net.add("MatMul", y, net.weight(384, FEATURES))))


def bag_of_words() -> onnx.ModelProto:
    """Embeddings, their mean, and a classifier."""
    net = Net("bag_of_words")
    words = net.input("words", ["batch", "length"], TensorProto.INT64)
    x = net.add("Gather", net.weight(500, 64), words)
    x = net.add("ReduceMean", x, net.constant(np.array([1])), keepdims=0)
    x = net.add("Gemm", x, net.weight(64, 12), net.weight(12))
    return net.model(net.add("LogSoftmax", x, axis=-1))


def einsums() -> onnx.ModelProto:
    """Products that are written as sums over letters."""
    net = Net("einsums")
    x, y = net.input("x", [4, 16, 32]), net.input("y", [4, 32, 24])
    z = net.add("Einsum", x, y, equation="bik,bkj->bji")
    return net.model(net.add("Einsum", z, net.weight(16, 8), equation="bji,ik->bjk"))


MODELS: Final = (
    transformer, transformer_of_any_length, cached_attention, masked_attention, shared_heads,
    rotary, feed_forward, gated, bag_of_words, einsums,
)  # fmt: skip
