"""The workloads as tensor programs, written as a person writes them; nothing is scheduled here.

Convolutions are no programs but models of one layer, see `benchmarks.layers`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from benchmarks.numbers import EPSILON
from benchmarks.workloads import CHAIN
from tilewright.tensor import ir as tir
from tilewright.tensor import library
from tilewright.tensor.build import (
    Tensor,
    call,
    compute,
    func,
    max_over,
    placeholder,
    reduce_axis,
    sum_over,
)

__all__ = ["PROGRAMS", "Program", "with_consumers"]


@dataclass(frozen=True)
class Program:
    """A function, and the names of the parameters that are passed in each call or fixed before."""

    func: tir.Func
    inputs: tuple[str, ...]
    constants: tuple[str, ...] = ()


def matmul(m: int, n: int, k: int) -> Program:
    a, b = placeholder("a", (m, k)), placeholder("b", (k, n))
    r = reduce_axis(k, "r")
    c = compute("c", (m, n), lambda i, j: sum_over(a[i, r] * b[r, j], r))
    return Program(func("matmul", [a, b], [c]), ("a",), ("b",))


def batched(batch: int, m: int, n: int, k: int) -> Program:
    a, b = placeholder("a", (batch, m, k)), placeholder("b", (batch, k, n))
    r = reduce_axis(k, "r")
    c = compute("c", (batch, m, n), lambda p, i, j: sum_over(a[p, i, r] * b[p, r, j], r))
    return Program(func("batched", [a, b], [c]), ("a", "b"))


def softmax(rows: int, n: int) -> Program:
    x = placeholder("x", (rows, n))
    r, q = reduce_axis(n, "r"), reduce_axis(n, "q")
    top = compute("top", (rows,), lambda i: max_over(x[i, r], r))
    power = compute("power", (rows, n), lambda i, j: call("exp_bounded", x[i, j] - top[i]))
    total = compute("total", (rows,), lambda i: sum_over(power[i, q], q))
    scale = compute("scale", (rows,), lambda i: 1.0 / total[i])
    y = compute("y", (rows, n), lambda i, j: power[i, j] * scale[i])
    return Program(func("softmax", [x], [y]), ("x",))


def layernorm(rows: int, n: int) -> Program:
    x, s, b = placeholder("x", (rows, n)), placeholder("s", (n,)), placeholder("b", (n,))
    r, q = reduce_axis(n, "r"), reduce_axis(n, "q")
    total = compute("total", (rows,), lambda i: sum_over(x[i, r], r))
    mean = compute("mean", (rows,), lambda i: total[i] * (1.0 / n))
    off = compute("off", (rows, n), lambda i, j: x[i, j] - mean[i])
    squares = compute("squares", (rows,), lambda i: sum_over(off[i, q] * off[i, q], q))
    scale = compute("scale", (rows,), lambda i: call("rsqrt", squares[i] * (1.0 / n) + EPSILON))
    y = compute("y", (rows, n), lambda i, j: off[i, j] * scale[i] * s[j] + b[j])
    return Program(func("layernorm", [x, s, b], [y]), ("x",), ("s", "b"))


def gelu(rows: int, n: int) -> Program:
    x = placeholder("x", (rows, n))
    y = compute("y", (rows, n), lambda i, j: call("gelu", x[i, j]))
    return Program(func("gelu", [x], [y]), ("x",))


_CHAIN_OPS: dict[str, Callable[..., Any]] = {
    "mul": lambda value, operand: value * operand,
    "add": lambda value, operand: value + operand,
    "sub": lambda value, operand: value - operand,
    "relu": lambda value: tir.maximum(value, 0.0),
    "sigmoid": lambda value: call("sigmoid", value),
}


def chain(rows: int, n: int) -> Program:
    """One block for each of the ops, as a graph gives them."""
    x, s, b = placeholder("x", (rows, n)), placeholder("s", (n,)), placeholder("b", (n,))
    value, operands = x, {"x": x, "s": s, "b": b}
    for number, (op, operand) in enumerate(CHAIN):
        value = _elementwise(f"t{number}", (rows, n), op, value, operands.get(operand))
    return Program(func("chain", [x, s, b], [value]), ("x",), ("s", "b"))


def _elementwise(
    name: str, shape: tuple[int, int], op: str, value: Tensor, operand: Tensor | None
) -> Tensor:
    def element(i: tir.Expr, j: tir.Expr) -> Any:
        if operand is None:
            return _CHAIN_OPS[op](value[i, j])
        return _CHAIN_OPS[op](value[i, j], operand[i, j] if len(operand.shape) == 2 else operand[j])

    return compute(name, shape, element)


def with_consumers(n: int, count: int) -> tir.Func:
    """A matmul followed by elementwise blocks: something to apply long schedules to."""
    a, b = placeholder("a", (n, n)), placeholder("b", (n, n))
    r = reduce_axis(n, "r")
    value = compute("c", (n, n), lambda i, j: sum_over(a[i, r] * b[r, j], r))
    for number in range(count):
        value = _elementwise(f"t{number}", (n, n), "mul", value, a)
    return func("consumers", [a, b], [value])


def attention(batch: int, heads: int, queries: int, keys: int, features: int) -> Program:
    program = library.attention(batch, heads, queries, keys, features)
    return Program(program, ("Q", "K", "V"))


PROGRAMS: Final[dict[str, Callable[..., Program]]] = {
    "matmul": matmul,
    "batched": batched,
    "softmax": softmax,
    "layernorm": layernorm,
    "gelu": gelu,
    "chain": chain,
    "attention": attention,
}
