"""`python -m benchmarks.steps`: where the time of a 30-step schedule goes, step by step.

The replay as a whole is measured by the `compile` group; this shows which primitives and how much
validation it is made of. Each figure is the least of many repetitions: the undisturbed cost.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

from tilewright.schedule import PRIMITIVES, Schedule, Trace
from tilewright.schedule.handles import names_of
from tilewright.tensor import ir as tir
from tilewright.tensor.build import compute, func, placeholder, reduce_axis, sum_over
from tilewright.tensor.validate import ValidationCache, validate

REPETITIONS = 40


def program(m: int = 384, n: int = 1024, k: int = 1024) -> tir.Func:
    """A matmul with a rectifier."""
    a, b, r = placeholder("A", (m, k)), placeholder("B", (k, n)), reduce_axis(k, "k")
    c = compute("C", (m, n), lambda i, j: sum_over(a[i, r] * b[r, j], r))
    return func("matmul_relu", [a, b], [compute("D", (m, n), lambda x, y: tir.maximum(c[x, y], 0))])


def thirty_steps() -> Trace:
    """Panels of B, three levels of tiles, a register tile of 6×16, and the rectifier."""
    s = Schedule(program())
    for loop, tile in (("i", 6), ("j", 16), ("k", 256), ("i_0", 16), ("j_0", 8), ("k_1", 4)):
        s.split(loop, tile)
    s.reorder("j_0_0", "i_0_0", "k_0", "i_0_1", "j_0_1", "k_1_0", "k_1_1", "i_1", "j_1")
    s.cache_read("C", "B")
    s.split("B_read_1", 16)
    s.reorder("B_read_1_0", "B_read_0", "B_read_1_1")
    s.vectorize("B_read_1_1")
    s.parallel("B_read_1_0")
    s.layout_split("B_read", 1, 16)
    s.layout_reorder("B_read", [1, 0, 2])
    s.decompose_reduction("C", "k_0")
    s.vectorize("j_1_init")
    s.unroll("i_1_init")
    s.unroll("i_1")
    s.unroll("k_1_1")
    s.vectorize("j_1")
    s.parallel("j_0_0")
    s.split("x", 6)
    s.split("y", 16)
    s.reorder("x_0", "y_0", "x_1", "y_1")
    s.vectorize("y_1")
    s.unroll("x_1")
    s.parallel("x_0")
    for target, note in (("C", "micro kernel"), ("C_init", "start values"), ("D", "epilogue")):
        s.annotate(target, "role", note)
    return s.trace


def least_us(work: Callable[[], object]) -> float:
    """The least time of one call, in microseconds."""
    best = float("inf")
    for _ in range(REPETITIONS):
        begin = time.perf_counter_ns()
        work()
        best = min(best, time.perf_counter_ns() - begin)
    return best / 1e3


def main() -> int:
    trace, start = thirty_steps(), program()
    total = least_us(lambda: Schedule(start, trace))
    schedule = Schedule(start)
    cache = ValidationCache()
    validate(schedule.func, cache)
    rewriting = checking = 0.0
    print(f"{'step':<52}{'primitive':>12}{'validate':>12}")
    for step in trace:
        primitive, before = PRIMITIVES[step.primitive], schedule.func
        args = dict(step.args)

        def run(primitive=primitive, before=before, args=args):  # type: ignore[no-untyped-def]
            positional, keywords = primitive.resolve(names_of(before), args)
            return primitive.function(*positional, **keywords)

        own = least_us(run)
        schedule.apply(step)
        after = schedule.func
        cost = float("inf")
        for _ in range(REPETITIONS):
            fresh = ValidationCache()
            validate(before, fresh)
            begin = time.perf_counter_ns()
            validate(after, fresh)
            cost = min(cost, (time.perf_counter_ns() - begin) / 1e3)
        rewriting, checking = rewriting + own, checking + cost
        print(f"{str(step)[:50]:<52}{own:9.1f} µs{cost:9.1f} µs")
    parts = f"primitives {rewriting / 1e3:.2f} ms, validation {checking / 1e3:.2f} ms"
    print(f"{len(trace)} steps: {parts}")
    print(f"replay as a whole: {total / 1e3:.2f} ms (at most 10 ms wanted)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
