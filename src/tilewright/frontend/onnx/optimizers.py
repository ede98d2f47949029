"""Steps of optimisers: new weights and states from gradients, element by element."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tilewright.frontend.onnx.conversions import converted
from tilewright.frontend.onnx.node import OnnxNode
from tilewright.frontend.onnx.registry import onnx_op
from tilewright.graph import Builder, Value
from tilewright.tensor import ir as tir
from tilewright.tensor.build import call, select

__all__: list[str] = []

DOMAIN = "ai.onnx.preview.training"

Step = Callable[[Value, Value, Value, Sequence[Value]], Sequence[Value]]
"""(weights, gradient, rate, states) → weights and states after the step."""


def _each(values: Sequence[Value], states: int, step: Step, rate: Value) -> list[Value]:
    """All tensors of a node: those of a kind stand together, in inputs and in results."""
    count = len(values) // (2 + states)
    kinds = [values[k * count : (k + 1) * count] for k in range(2 + states)]
    made = [step(x, g, rate, held) for x, g, *held in zip(*kinds, strict=True)]
    return [result[k] for k in range(1 + states) for result in made]


def _regularized(b: Builder, node: OnnxNode, x: Value, gradient: Value) -> Value:
    norm = node.float("norm_coefficient")
    return b.map(lambda v, g: v * norm + g, x, gradient)


@onnx_op("Adagrad", domain=DOMAIN)
def adagrad(b: Builder, node: OnnxNode, rate: Value, time: Value, *values: Value) -> list[Value]:
    """Rates fall with the sum of all squared gradients of an element."""
    decay, epsilon = node.float("decay_factor"), node.float("epsilon", 1e-6)
    turns = converted(b, time, rate.dtype)
    now = b.map(lambda r, t: r / (1.0 + t * decay), rate, turns)

    def step(x: Value, gradient: Value, by: Value, states: Sequence[Value]) -> Sequence[Value]:
        slope = _regularized(b, node, x, gradient)
        squares = b.map(lambda h, g: h + g * g, states[0], slope)
        new = b.map(
            lambda v, r, g, h: v - r.to(v.dtype) * g / (call("sqrt", h) + epsilon),
            x,
            by,
            slope,
            squares,
        )
        return new, squares

    return _each(values, 1, step, now)


@onnx_op("Adam", domain=DOMAIN)
def adam(b: Builder, node: OnnxNode, rate: Value, time: Value, *values: Value) -> list[Value]:
    """By means of gradients and of their squares, which begin at zero and are corrected for it."""
    alpha, beta = node.float("alpha", 0.9), node.float("beta", 0.999)
    epsilon, after = node.float("epsilon", 1e-6), node.float("norm_coefficient_post")

    def corrected(r: tir.Expr, t: tir.Expr) -> tir.Expr:
        first, second = (1.0 - call("pow", tir.const(c, t.dtype), t) for c in (alpha, beta))
        return select(t > 0.0, r * call("sqrt", second) / first, r)

    now = b.map(corrected, rate, converted(b, time, rate.dtype))

    def step(x: Value, gradient: Value, by: Value, states: Sequence[Value]) -> Sequence[Value]:
        slope = _regularized(b, node, x, gradient)
        mean = b.map(lambda v, g: v * alpha + g * (1 - alpha), states[0], slope)
        squares = b.map(lambda h, g: h * beta + g * g * (1 - beta), states[1], slope)

        def moved(v: tir.Expr, r: tir.Expr, m: tir.Expr, h: tir.Expr) -> tir.Expr:
            return (v - r.to(v.dtype) * (m / (call("sqrt", h) + epsilon))) * (1 - after)

        return b.map(moved, x, by, mean, squares), mean, squares

    return _each(values, 2, step, now)


@onnx_op("Momentum", domain=DOMAIN)
def momentum(b: Builder, node: OnnxNode, rate: Value, time: Value, *values: Value) -> list[Value]:
    """Steps go on in the direction of earlier ones; Nesterov looks ahead along it."""
    alpha, beta = node.float("alpha"), node.float("beta")
    ahead = node.string("mode", "standard") == "nesterov"

    def step(x: Value, gradient: Value, by: Value, states: Sequence[Value]) -> Sequence[Value]:
        slope = _regularized(b, node, x, gradient)
        speed = b.map(
            lambda v, g, t: v * alpha + g * select(t > 0, tir.const(beta, g.dtype), 1.0),
            states[0],
            slope,
            time,
        )

        def moved(v: tir.Expr, r: tir.Expr, g: tir.Expr, s: tir.Expr) -> tir.Expr:
            return v - r.to(v.dtype) * (g + s * alpha if ahead else s)

        return b.map(moved, x, by, slope, speed), speed

    return _each(values, 1, step, rate)
