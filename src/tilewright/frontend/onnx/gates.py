"""The activations of recurrent layers: named in attributes, their parameters taken in order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from tilewright.frontend.onnx.node import OnnxNode
from tilewright.tensor import ir as tir
from tilewright.tensor.build import call, select

__all__ = ["Gate", "activations"]

Gate = Callable[[tir.Expr], tir.Expr]


def _softplus(x: tir.Expr) -> tir.Expr:
    return tir.maximum(x, 0) + call("log1p", call("exp_bounded", -call("abs", x)))


PLAIN: Final[dict[str, Gate]] = {
    "relu": lambda x: tir.maximum(x, 0),
    "tanh": lambda x: call("tanh", x),
    "sigmoid": lambda x: call("sigmoid", x),
    "softsign": lambda x: x / (1 + call("abs", x)),
    "softplus": _softplus,
}
WITH_ALPHA: Final[dict[str, tuple[float, Callable[[tir.Expr, float], tir.Expr]]]] = {
    "leakyrelu": (0.01, lambda x, a: select(x < 0, x * a, x)),
    "thresholdedrelu": (1.0, lambda x, a: select(x >= a, x, 0)),
    "elu": (1.0, lambda x, a: select(x < 0, call("expm1", x) * a, x)),
}
WITH_BOTH: Final[dict[str, tuple[float, float, Callable[[tir.Expr, float, float], tir.Expr]]]] = {
    "affine": (1.0, 0.0, lambda x, a, b: x * a + b),
    "scaledtanh": (1.0, 1.0, lambda x, a, b: call("tanh", x * b) * a),
    "hardsigmoid": (0.2, 0.5, lambda x, a, b: tir.maximum(tir.minimum(x * a + b, 1), 0)),
}
"""Names in lower case, with the defaults of their parameters."""


def activations(node: OnnxNode, default: Sequence[str], directions: int) -> list[list[Gate]]:
    """The functions of each direction; `clip` limits what they are given."""
    found = node.attributes.get("activations")
    names = [n.decode() if isinstance(n, bytes) else str(n) for n in found or ()]
    names = names or list(default) * directions
    if len(names) != len(default) * directions:
        node.decline(f"{len(names)} activations")
    alphas = iter(node.floats("activation_alpha") or [])
    betas = iter(node.floats("activation_beta") or [])
    gates = [_clipped(node, _gate(node, name.lower(), alphas, betas)) for name in names]
    return [gates[d * len(default) : (d + 1) * len(default)] for d in range(directions)]


def _gate(node: OnnxNode, name: str, alphas: Iterator[float], betas: Iterator[float]) -> Gate:
    if name in PLAIN:
        return PLAIN[name]
    if name in WITH_ALPHA:
        default, function = WITH_ALPHA[name]
        alpha = next(alphas, default)
        return lambda x: function(x, alpha)
    if name not in WITH_BOTH:
        node.decline(f"activation {name}")
    first, second, both = WITH_BOTH[name]
    a, b = next(alphas, first), next(betas, second)
    return lambda x: both(x, a, b)


def _clipped(node: OnnxNode, gate: Gate) -> Gate:
    if not node.has("clip"):
        return gate
    limit = node.float("clip")
    return lambda x: gate(tir.maximum(tir.minimum(x, limit), -limit))
