"""Operators of sound, bent convolutions, regions, caches, states and a few networks, with rules."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from onnx import TensorProto

from fuzz.case import Array
from fuzz.grow import Dim, Growth, Value, require
from fuzz.values import numpy_type

__all__ = ["RULES"]

WIDE: Final = (TensorProto.FLOAT, TensorProto.DOUBLE)


def _is_finite(array: Array) -> bool:
    return bool(np.isfinite(array.astype(np.float64)).all())


def mel_weights(g: Growth, op: str) -> None:
    """Filters of sound; edges are frequencies that the transform has."""
    rate, length = g.draw.choice((8000, 16000)), g.draw.choice((16, 64, 128))
    whole = [g.parameter(np.array(v, np.int64)) for v in (g.draw.randint(1, 12), length, rate)]
    low = g.draw.choice((0.0, 20.0, 125.0))
    edges = [g.parameter(np.array(v, np.float32)) for v in (low, g.draw.uniform(1000, rate / 2))]
    g.add(op, [*whole, *edges], output_datatype=g.draw.choice(WIDE))


def stft(g: Growth, op: str) -> None:
    """Windows of a signal of real numbers, with a shape of their own or without one."""
    kind = g.choose_type([t for t in g.types(op) if t in WIDE])
    batch, frame = g.draw.choice((1, 2)), g.draw.choice((4, 8, 10))
    length = frame + g.draw.randint(0, 20)
    real = [] if g.draw.random() < 0.3 else [1]  # exporters leave the last dimension out
    x = g.new(kind, [batch, length, *real])
    require(x.all(_is_finite), "not finite")
    step = g.parameter(np.array(g.draw.randint(1, frame), np.int64))
    window = g.new(kind, [frame]) if g.draw.random() < 0.5 else None
    require(window is None or window.all(_is_finite), "not finite")
    size = None if window else g.parameter(np.array(frame, np.int64))
    g.add(op, [x, step, window, size], onesided=g.draw.randint(0, 1))


def deform_conv(g: Growth, op: str) -> None:
    """Offsets of a pixel or two, groups of them, and masks."""
    kind = g.choose_type([t for t in g.types(op) if t in WIDE])
    channels, made = g.draw.choice((1, 2, 4)), g.draw.choice((1, 2))
    bent = g.draw.choice([n for n in (1, 2) if channels % n == 0])
    kernel = [g.draw.randint(1, 3), g.draw.randint(1, 3)]
    size = [g.draw.randint(3, 6), g.draw.randint(3, 6)]
    places = [s - k + 1 for s, k in zip(size, kernel, strict=True)]
    taps = int(np.prod(kernel))
    x = g.new(kind, [2, channels, *size])
    weights = g.new(kind, [made, channels, *kernel])

    def offsets(shape: tuple[int, ...]) -> Array:
        rng = np.random.default_rng(g.draw.getrandbits(63))
        return rng.uniform(-2, 2, shape).astype(numpy_type(kind))

    moved = g.new(kind, [2, 2 * bent * taps, *places], make=offsets)
    bias = g.new(kind, [made]) if g.draw.random() < 0.5 else None
    mask = g.new(kind, [2, bent * taps, *places]) if g.draw.random() < 0.5 else None
    given = [v for v in (x, weights, bias, mask) if v is not None]
    require(all(v.all(_is_finite) for v in given), "zero times infinity")
    g.add(op, [x, weights, moved, bias, mask], offset_group=bent, kernel_shape=kernel)


def swiglu(g: Growth, op: str) -> None:
    x = g.pick(g.types(op))
    drawn = {"alpha": round(g.draw.uniform(0.3, 2), 2)} if g.draw.random() < 0.5 else {}
    g.add(op, [x, g.like(x)], **drawn)


def tensor_scatter(g: Growth, op: str) -> None:
    """New rows of a cache; they go on at the front where it is a ring."""
    kind = g.choose_type([t for t in g.types(op) if t in WIDE])
    batch, room, rows = g.draw.randint(1, 3), g.draw.randint(3, 6), g.draw.randint(1, 3)
    rest: list[Dim] = [g.draw.randint(1, 4)]
    cache, update = (g.new(kind, [batch, 2, n, *rest]) for n in (room, rows))
    circular = g.draw.random() < 0.5
    most = room if circular else room - rows + 1
    at = np.array([g.draw.randrange(most) for _ in range(batch)], np.int64)
    where = g.parameter(at) if g.draw.random() < 0.8 else None
    attributes: dict[str, Any] = {"mode": "circular"} if circular else {}
    g.add(op, [cache, update, where], axis=2 if g.draw.random() < 0.3 else None, **attributes)


def causal_conv(g: Growth, op: str) -> None:
    """A convolution over what was before; inputs may be shorter than the state, or empty."""
    kind = g.choose_type(g.types(op))
    batch, channels, width = g.draw.randint(1, 3), g.draw.randint(1, 4), g.draw.randint(1, 4)
    length: Dim = g.dim() if g.draw.random() < 0.6 else g.draw.choice((0, 1, 2))
    given = [
        g.new(kind, [batch, channels, length]),
        g.new(kind, [channels, 1, width]),
        g.new(kind, [channels]) if g.draw.random() < 0.5 else None,
        g.new(kind, [batch, channels, width - 1]) if g.draw.random() < 0.5 else None,
    ]
    require(all(v is None or v.all(_is_finite) for v in given), "zero times infinity")
    ends = g.draw.choice((None, "none", "silu", "swish"))
    g.add(op, given, 2, activation=ends)


def linear_attention(g: Growth, op: str) -> None:
    """All rules; heads that share keys; decay and rate for each head, each key, or all."""
    kind = g.choose_type(g.types(op))
    state_kind = g.choose_type(g.types(op, "S"))
    rule = g.draw.choice((None, "linear", "gated", "delta", "gated_delta"))
    batch, heads, shared = g.draw.randint(1, 2), g.draw.randint(1, 3), g.draw.choice((1, 1, 2))
    keys, values = g.draw.choice((1, 2, 4)), g.draw.choice((1, 3, 4))
    steps: Dim = g.dim() if g.draw.random() < 0.5 else g.draw.choice((1, 2, 5))

    def part(width: int, low: float, high: float) -> Value:
        def make(shape: tuple[int, ...]) -> Array:
            rng = np.random.default_rng(g.draw.getrandbits(63))
            return rng.uniform(low, high, shape).astype(numpy_type(kind))

        return g.new(kind, [batch, steps, width], make=make)

    named = rule or "gated_delta"
    decay = heads * g.draw.choice((1, keys))
    inputs = [
        part(heads * shared * keys, -1, 1),
        part(heads * keys, -0.5, 0.5),
        part(heads * values, -1, 1),
        g.new(state_kind, [batch, heads, keys, values]) if g.draw.random() < 0.5 else None,
        part(decay, -2, 0) if "gated" in named else None,
        part(g.draw.choice((1, heads)), 0, 1) if "delta" in named else None,
    ]
    require(inputs[3] is None or inputs[3].all(_is_finite), "not finite")
    counts = {"q_num_heads": heads * shared, "kv_num_heads": heads}
    scale = g.draw.choice((None, 0.0, 0.5))
    hint = g.draw.choice((None, 2))
    g.add(op, inputs, 2, update_rule=rule, scale=scale, chunk_size=hint, **counts)


def max_roi_pool(g: Growth, op: str) -> None:
    """Regions inside of images, beyond them, turned round, and of one element."""
    kind = g.choose_type([t for t in g.types(op) if t in WIDE])
    batch, size = g.draw.randint(1, 2), [g.draw.randint(2, 9), g.draw.randint(2, 9)]
    x = g.new(kind, [batch, g.draw.randint(1, 3), *size])
    require(x.all(_is_finite), "an order among NaN")

    def regions(shape: tuple[int, ...]) -> Array:
        rng = np.random.default_rng(g.draw.getrandbits(63))
        boxes = rng.integers(-2, 12, (shape[0], 4))
        which = rng.integers(0, batch, (shape[0], 1))
        return np.concatenate([which, boxes], 1).astype(numpy_type(kind))

    boxes = g.new(kind, [g.draw.randint(1, 4), 5], make=regions)
    shape = [g.draw.randint(1, 4), g.draw.randint(1, 4)]
    g.add(op, [x, boxes], pooled_shape=shape, spatial_scale=g.draw.choice((None, 1.0, 0.5)))


def max_unpool(g: Growth, op: str) -> None:
    """Back to where a pooling took elements from; to the same size, or to a larger one."""
    require(g.opset >= 9)
    kind = g.choose_type([t for t in g.types(op) if t in WIDE])
    space = g.draw.choice((1, 2, 2, 3))
    window = [g.draw.randint(2, 3) for _ in range(space)]
    size: list[Dim] = [w * g.draw.randint(1, 3) for w in window]
    images: list[Dim] = [g.draw.randint(1, 2), g.draw.randint(1, 3)]
    whole = g.new(kind, [*images, *size])
    require(whole.all(_is_finite), "an order among NaN")
    same = {"kernel_shape": window, "strides": window}
    pooled, places = g.add("MaxPool", [whole], 2, **same)
    wanted = g.draw.random() < 0.4
    shape = g.parameter(np.array(whole.shape, np.int64)) if wanted else None
    g.add(op, [pooled, places, shape], **same)


RULES: Final = {
    "CausalConvWithState": causal_conv,
    "DeformConv": deform_conv,
    "LinearAttention": linear_attention,
    "MaxRoiPool": max_roi_pool,
    "MaxUnpool": max_unpool,
    "MelWeightMatrix": mel_weights,
    "STFT": stft,
    "SwiGLU": swiglu,
    "TensorScatter": tensor_scatter,
}
