"""Tensor instructions in the contraction recipe: which products have them, and that they are exact.

Every instruction of a target that this machine can run is tried; of others, which ones are chosen.
"""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

from tests.qemu import missing, run_foreign
from tilewright.build import build
from tilewright.dtypes import DType, f32, i8, i16, i32, u8
from tilewright.intrin.products import product_instruction
from tilewright.schedule import Trace
from tilewright.schedule.draft import draft
from tilewright.schedule.recipes.contraction.recipe import CONTRACTION
from tilewright.schedule.recipes.contraction.space import contraction_points
from tilewright.schedule.source import DRAFT, Workload, not_followed
from tilewright.target import Target
from tilewright.target.rates import INSTRUCTIONS
from tilewright.tensor import ir as tir
from tilewright.tensor.build import compute, func, placeholder, reduce_axis, size, sum_over
from tilewright.tensor.library.convolve import convolve
from tilewright.tensor.visit import walk_stmts

HOST = Target.host()
NAMES = ("x86-64-v3", "x86-64-v4", "host")
RUNNABLE = [t for t in map(Target.named, NAMES) if t.features <= HOST.features]


def product(
    m: int | tir.Expr, n: int, k: int, left: DType = u8, right: DType = i8, *, turned: bool = False
) -> tir.Func:
    a, w = placeholder("A", (m, k), left), placeholder("W", (n, k) if turned else (k, n), right)
    r = reduce_axis(k, "k")
    where = (lambda j: (j, r)) if turned else (lambda j: (r, j))
    c = compute("C", (m, n), lambda i, j: sum_over(a[i, r].to(i32) * w[where(j)].to(i32), r))
    d = compute("D", (m, n), lambda i, j: tir.maximum(c[i, j] + 3, 0))
    return func("product", [a, w], [d])


def convolution(channels: int, filters: int, stride: int) -> tir.Func:
    x = placeholder("A", (1, 9, 8, channels), u8)
    w = placeholder("W", (filters, channels, 3, 3), i8)
    return func("convolution", [x, w], [convolve(x, w, (stride, stride), (1, 1), (0,) * 4)])


PROGRAMS = {
    "many rows": product(37, 48, 64),
    "one row": product(1, 48, 64),
    "ragged columns": product(13, 21, 24),
    "few columns": product(13, 3, 24),
    "weights by rows": product(20, 32, 36, turned=True),
    "a long sum": product(6, 16, 1024),
    "rows of any number": product(size("m"), 40, 32),
    "a window": convolution(8, 24, 1),
    "a window in steps": convolution(4, 16, 2),
}


def decision_of(program: tir.Func, target: Target, threads: int = 1):
    made = draft(program, target, threads, ("W",))
    assert made.remarks == []
    (found,) = [d for d in made.decisions if d.recipe is CONTRACTION]
    return found


def arrays(program: tir.Func, seed: int = 0) -> list[np.ndarray]:
    """All values of each type, the extreme ones often."""
    rng = np.random.default_rng(seed)
    found = []
    for param in program.params[:2]:
        shape = [tir.int_value(d) or 7 for d in param.shape]
        low, high = param.dtype.min_value, param.dtype.max_value
        drawn = rng.integers(low, high + 1, shape)
        drawn = np.where(rng.random(shape) < 0.3, rng.choice([low, high], shape), drawn)
        found.append(drawn.astype(param.dtype.numpy))
    return found


def assert_exact(program: tir.Func, target: Target, trace: Trace, threads: int = 1) -> None:
    a, w = arrays(program)
    plain = build(program, target, threads=1, trace="none")(a, w)
    made = build(program, target, threads=threads, trace=trace, constants={"W": w})(a)
    np.testing.assert_array_equal(made, plain)


@pytest.mark.parametrize("target", RUNNABLE, ids=lambda t: t.name)
@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_drafts_use_an_instruction_and_are_exact(program, target):
    for threads in (1, 2):
        decision = decision_of(program, target, threads)
        assert decision.shape.instructions
        assert_exact(program, target, draft(program, target, threads, ("W",)).trace, threads)


@pytest.mark.parametrize("target", RUNNABLE, ids=lambda t: t.name)
@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_every_point_of_an_instruction_is_followed_and_exact(program, target):
    threads = 2
    decision, workload = decision_of(program, target, threads), (program, target, threads)
    space = contraction_points(decision.shape, target)
    drawn = space.sample(random.Random(5), 200)
    for number in range(1, len(decision.shape.instructions) + 1):
        points = [point for point in drawn if point.instruction == number][:4]
        assert points, f"no point of instruction {number} among many"
        for point in points:
            given = Workload(*workload, frozenset({"W"}), points={decision.block: point})
            made = DRAFT.schedule(given)
            assert not_followed(made, given, given.points) is None
            assert _uses(made.func, decision.shape.instructions[number - 1].name)
            assert_exact(program, target, made.trace, threads)


def _uses(func: tir.Func, name: str) -> bool:
    notes = [dict(s.notes) for s in walk_stmts(func) if type(s) is tir.Block]
    return any(note.get("intrinsic") == name for note in notes)


@pytest.mark.skipif(bool(missing("aarch64")), reason=f"without {missing('aarch64')}")
@pytest.mark.parametrize(("left", "right"), [(i8, i8), (u8, u8), (u8, i8)], ids=str)
def test_products_of_another_machine(left, right):
    """Exact under qemu, in far fewer instructions than with vectors alone."""
    program = product(18, 48, 256, left, right)
    a, w = arrays(program)
    counts = []
    for name in ("aarch64", "aarch64+i8mm,+dotprod"):
        ran = run_foreign(program, Target.named(name), {"A": a, "W": w}, ("W",))
        wanted = np.maximum(a.astype(np.int64) @ w.astype(np.int64) + 3, 0)
        np.testing.assert_array_equal(ran.results["D"], wanted)
        counts.append(ran.instructions)
    assert counts[1] < 0.35 * counts[0]


@pytest.mark.parametrize(
    ("program", "constants"),
    [
        (product(8, 16, 31), ("W",)),
        (product(8, 16, 32, i16, i16), ("W",)),
        (product(8, 16, 32, i8, u8), ("W",)),
        (product(8, 16, 32), ()),
        (product(8, 16, size("k")), ("W",)),
        (convolution(3, 16, 1), ("W",)),
    ],
    ids=["odd steps", "wide", "signs", "of the call", "steps of any number", "odd channels"],
)
def test_products_that_have_no_fitting_instruction(program, constants):
    made = draft(program, Target.named("x86-64-v3"), 1, constants)
    (found,) = [d for d in made.decisions if d.recipe is CONTRACTION]
    assert found.point.instruction == 0


def test_a_point_of_another_machine_is_refused():
    program, target = PROGRAMS["many rows"], Target.named("x86-64-v3")
    decision = decision_of(program, target)
    point = replace(decision.point, instruction=9)
    given = Workload(program, target, 1, frozenset({"W"}), points={decision.block: point})
    made = DRAFT.schedule(given)
    assert any("S420" in remark for remark in made.remarks)
    assert not_followed(made, given, given.points)


def test_products_of_floats_have_none():
    a, w = placeholder("A", (8, 16), f32), placeholder("W", (16, 16), f32)
    r = reduce_axis(16, "k")
    c = compute("C", (8, 16), lambda i, j: sum_over(a[i, r] * w[r, j], r))
    assert decision_of(func("floats", [a, w], [c]), HOST).shape.instructions == ()


@pytest.mark.parametrize(
    "name", ["x86.avx2.dot2", "x86.avx512bw.dot2", "x86.avx512vnni.dot4", "arm.dotprod.sdot"]
)
def test_roles_follow_from_what_axes_index(name):
    found = product_instruction(name)
    rate = INSTRUCTIONS[name]
    assert (found.rows, found.columns, found.steps) == rate.shape


def test_no_product_is_no_product_instruction():
    assert product_instruction("no.such") is None
