"""Write a few tensor programs, let tilewright schedule and compile them, check them, time them.

A part of `make demo`; alone, `python examples/programs.py` in an environment that has tilewright.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable

import numpy as np

import tilewright as tw
from tilewright.llvm.calibrate import FmaPeak, Team
from tilewright.llvm.probes import compile_probes

SECONDS = 0.4  # of timing for each program


def matmul(m: int, n: int, k: int) -> tw.Func:
    """C = A·B, as a person writes it."""
    A, B = tw.placeholder("A", (m, k)), tw.placeholder("B", (k, n))
    r = tw.reduce_axis(k, "k")
    C = tw.compute("C", (m, n), lambda i, j: tw.sum_over(A[i, r] * B[r, j], r))
    return tw.func("matmul", [A, B], [C])


def dense_gelu(m: int, n: int, k: int) -> tw.Func:
    """gelu(A·B + bias): what follows the sum happens while it is still in registers."""
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


def exact_gelu(x: np.ndarray) -> np.ndarray:
    return 0.5 * x * (1 + np.vectorize(math.erf)(x / np.sqrt(2)))


def exact_softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def time_by_turns(kernel: tw.Kernel, inputs: list, limit: Callable[[], float]) -> list[float]:
    """Best seconds of the kernel, and the best rate of what limits it, measured by turns.

    Both see the same moments: whatever else the machine does, the comparison holds.
    """
    kernel.time(inputs, repeat=1, min_ns=50_000_000)  # caches, clock and memory wake up
    best, rate, end = math.inf, 0.0, time.perf_counter() + SECONDS
    while time.perf_counter() < end:
        rate = max(rate, limit())
        best = min(best, *kernel.time(inputs, repeat=3, min_ns=2_000_000))
    return [best / 1e9, rate]


class Table:
    """Compiles programs, and prints a line for each."""

    def __init__(self) -> None:
        self.target = tw.Target.host()
        self.peak = FmaPeak(self.target, compile_probes(self.target), Team(1))
        bits = f"{self.target.vector_bytes * 8}-bit vectors"
        print(f"tilewright {tw.__version__} on {self.target.cpu}, {bits}; one core\n")
        print(f"{'program':<30}{'compile':>9}{'run':>11}{'rate':>17}{'of limit':>10}{'error':>10}")

    def line(self, name: str, func: tw.Func, constants: dict, inputs: list, exact: np.ndarray,
             work: float, unit: str, limit: Callable[[], float]) -> None:  # fmt: skip
        start = time.perf_counter()
        kernel = tw.build(func, target=self.target, threads=1, constants=constants)
        compile_ms = (time.perf_counter() - start) * 1e3
        error = np.abs(kernel(*inputs) - exact).max()
        assert error < 1e-3, f"{name} is wrong by {error}"
        seconds, best = time_by_turns(kernel, inputs, limit)
        rate = work / seconds / 1e9
        print(
            f"{name:<30}{compile_ms:>6.0f} ms{seconds * 1e6:>8.0f} µs{rate:>9.1f} {unit:<7}"
            f"{rate / best:>10.0%}{error:>10.0e}"
        )


def main() -> None:
    rng = np.random.default_rng(0)
    table = Table()
    for m, n, k in ((128, 768, 768), (512, 512, 512), (333, 777, 555)):
        a, b = rng.standard_normal((m, k), np.float32), rng.standard_normal((k, n), np.float32)
        exact = a.astype(np.float64) @ b
        table.line(f"matmul {m}×{n}×{k}", matmul(m, n, k), {"B": b}, [a], exact,
                   2 * m * n * k, "GFLOP/s", table.peak.run)  # fmt: skip

    m, n, k = 128, 768, 768
    a, b = rng.standard_normal((m, k), np.float32) / 8, rng.standard_normal((k, n), np.float32) / 8
    bias = rng.standard_normal(n, np.float32)
    exact = exact_gelu(a.astype(np.float64) @ b + bias)
    table.line(f"gelu(A·B + bias) {m}×{n}×{k}", dense_gelu(m, n, k), {"B": b, "bias": bias}, [a],
               exact, 2 * m * n * k, "GFLOP/s", table.peak.run)  # fmt: skip

    x = rng.standard_normal((1024, 768), np.float32)
    copy = np.empty_like(x)

    def copy_rate() -> float:
        start = time.perf_counter()
        np.copyto(copy, x)
        return 2 * x.nbytes / (time.perf_counter() - start) / 1e9

    table.line("softmax 1024×768", softmax(1024, 768), {}, [x], exact_softmax(x.astype(np.float64)),
               2 * x.nbytes, "GB/s", copy_rate)  # fmt: skip
    print(
        "\nThe limit: a loop of nothing but multiply-adds; for softmax, copying the same bytes.\n"
        "Nothing was tuned. To see how a kernel comes about, step by step:\n"
        "    tilewright show matmul:128,768,768 --constants B --steps"
    )


if __name__ == "__main__":
    main()
