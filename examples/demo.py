"""Compile a few tensor programs with the analytic draft, check them, and show how fast they run.

Run with `make demo`, or `python examples/demo.py` in an environment that has tilewright.
"""

from __future__ import annotations

import time

import numpy as np

import tilewright as tw
from tilewright.llvm.calibrate import measure


def matmul(m: int, n: int, k: int) -> tw.Func:
    """C = A·B, as a person writes it."""
    A, B = tw.placeholder("A", (m, k)), tw.placeholder("B", (k, n))
    r = tw.reduce_axis(k, "k")
    C = tw.compute("C", (m, n), lambda i, j: tw.sum_over(A[i, r] * B[r, j], r))
    return tw.func("matmul", [A, B], [C])


def dense_gelu(m: int, n: int, k: int) -> tw.Func:
    """gelu(A·B + bias): the epilogue stays in registers."""
    A, B = tw.placeholder("A", (m, k)), tw.placeholder("B", (k, n))
    bias = tw.placeholder("bias", (n,))
    r = tw.reduce_axis(k, "k")
    C = tw.compute("C", (m, n), lambda i, j: tw.sum_over(A[i, r] * B[r, j], r))
    D = tw.compute("D", (m, n), lambda i, j: tw.call("gelu", C[i, j] + bias[j]))
    return tw.func("dense_gelu", [A, B, bias], [D])


def softmax(rows: int, n: int) -> tw.Func:
    """Softmax over the last axis."""
    X = tw.placeholder("X", (rows, n))
    a, b = tw.reduce_axis(n, "a"), tw.reduce_axis(n, "b")
    top = tw.compute("top", (rows,), lambda i: tw.max_over(X[i, a], a))
    power = tw.compute("power", (rows, n), lambda i, j: tw.call("exp", X[i, j] - top[i]))
    total = tw.compute("total", (rows,), lambda i: tw.sum_over(power[i, b], b))
    scale = tw.compute("scale", (rows,), lambda i: 1.0 / total[i])
    Y = tw.compute("Y", (rows, n), lambda i, j: power[i, j] * scale[i])
    return tw.func("softmax", [X], [Y])


def reference_gelu(x: np.ndarray) -> np.ndarray:
    """gelu by numerical integration-free means: erf from the standard library."""
    from math import erf

    return 0.5 * x * (1 + np.vectorize(erf)(x / np.sqrt(2)))


def reference_softmax(x: np.ndarray) -> np.ndarray:
    """Softmax in double precision."""
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def main() -> None:
    """Compile, check, time."""
    rng = np.random.default_rng(0)
    target = tw.Target.host()
    peak = measure(target).fma_gflops
    print(f"target: {target.name} ({target.cpu}), {target.vector_bytes * 8}-bit vectors")
    print(f"multiply-add limit: {peak.one:.0f} GFLOP/s on one core, {peak.all:.0f} on all\n")
    print(f"{'program':<28}{'compile':>10}{'run':>12}{'rate':>16}{'of limit':>10}  largest error")

    def show(
        name: str, func: tw.Func, constants: dict, inputs: list, expected: np.ndarray, flops: float
    ) -> None:
        start = time.perf_counter()
        kernel = tw.build(func, target=target, threads=1, constants=constants)
        compile_ms = (time.perf_counter() - start) * 1e3
        error = np.abs(kernel(*inputs) - expected).max()
        assert error < 1e-3, f"{name} is wrong by {error}"
        seconds = min(kernel.time(inputs, repeat=20)) / 1e9
        rate = flops / seconds / 1e9
        print(
            f"{name:<28}{compile_ms:>7.0f} ms{seconds * 1e6:>9.0f} µs"
            f"{rate:>8.1f} GFLOP/s{rate / peak.one:>10.0%}  {error:.1e}"
        )

    for m, n, k in ((128, 768, 768), (512, 512, 512), (333, 777, 555)):
        a = rng.standard_normal((m, k), np.float32)
        b = rng.standard_normal((k, n), np.float32)
        exact = a.astype(np.float64) @ b
        show(f"matmul {m}×{n}×{k}", matmul(m, n, k), {"B": b}, [a], exact, 2.0 * m * n * k)
    m, n, k = 128, 768, 768
    bias = rng.standard_normal(n, np.float32)
    a = rng.standard_normal((m, k), np.float32) / 8
    b = rng.standard_normal((k, n), np.float32) / 8
    exact = reference_gelu(a.astype(np.float64) @ b + bias)
    constants = {"B": b, "bias": bias}
    show(
        "gelu(A·B + bias) 128×768×768", dense_gelu(m, n, k), constants, [a], exact, 2.0 * m * n * k
    )
    x = rng.standard_normal((4096, 768), np.float32)
    show("softmax 4096×768", softmax(4096, 768), {}, [x], reference_softmax(x), 5.0 * x.size)


if __name__ == "__main__":
    main()
