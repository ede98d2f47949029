"""Random programs of elementwise kernels, with random lifetimes and orders, against NumPy.

A planner that puts two live arrays into one place, a batch that starts too early, or a size that is
not computed again shows as a wrong number.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tilewright as tw
from tests.models import Code, Draft
from tilewright.errors import CallError
from tilewright.pipeline import Pipeline
from tilewright.runtime import Kernel
from tilewright.runtime.executable import Executable
from tilewright.runtime.failures import C025
from tilewright.runtime.program import Buffer, Call, Place, SizeExpr, SizeOp
from tilewright.runtime.sizes import BINARY, constant, evaluate
from tilewright.schedule import Schedule

OPERATIONS = {"add": np.add, "subtract": np.subtract, "multiply": np.multiply}


@functools.cache
def kernels(*, is_parallel: bool) -> dict[str, Kernel]:
    """Compiled once; integers of 64 bits wrap around in NumPy as they do in kernels."""
    return {name: _compile(name, is_parallel=is_parallel) for name in OPERATIONS}


def _compile(name: str, *, is_parallel: bool) -> Kernel:
    n = tw.size("n")
    a, b = tw.placeholder("A", (n,), tw.i64), tw.placeholder("B", (n,), tw.i64)
    bodies = {
        "add": lambda i: a[i] + b[i],
        "subtract": lambda i: a[i] - b[i],
        "multiply": lambda i: a[i] * b[i],
    }
    program = tw.func(name, [a, b], [tw.compute("C", (n,), bodies[name])])
    schedule = Schedule(program)
    if is_parallel:
        (loop,) = schedule.loops("C")
        schedule.parallel(loop)
    kernel = Pipeline(tw.Target.host(), threads=2, trace=schedule.trace).run(program).value
    assert isinstance(kernel, Kernel)
    assert kernel.threads == 1 + is_parallel
    return kernel


@dataclass(frozen=True)
class Line:
    """A new value, of two earlier ones; values are numbered from the inputs on."""

    operation: str
    is_parallel: bool
    left: int
    right: int
    more_bytes: int


@st.composite
def straight_lines(draw: st.DrawFn) -> list[Line]:
    lines = []
    for number in range(draw(st.integers(1, 12))):
        known = st.integers(max(0, number - 4), number + 1)  # two inputs come first
        operation = st.sampled_from(sorted(OPERATIONS))
        more = st.sampled_from([0, 0, 8, 100, 1000])
        lines.append(
            Line(draw(operation), draw(st.booleans()), draw(known), draw(known), draw(more))
        )
    return lines


def program_of(lines: list[Line]):
    """Arrays live as short as they can; the last two are returned."""
    d = Draft()
    d.input("v0", ["n"], tw.i64)
    d.input("v1", ["n"], tw.i64)
    last_use = {}
    for at, line in enumerate(lines):
        last_use |= {line.left: at, line.right: at}
    for name in OPERATIONS:
        for is_parallel in (False, True):
            code = kernels(is_parallel=is_parallel)[name]
            d.kernel(f"{name} {is_parallel}", code.entry_address, parallel=is_parallel)
    for at, line in enumerate(lines):
        name = f"v{at + 2}"
        if at >= len(lines) - 2:
            d.output(name, ["n"], tw.i64)
            continue
        count = (*d.bytes(["n"], tw.i64), (SizeOp.CONST, line.more_bytes), (SizeOp.ADD, 0))
        last = last_use.get(at + 2, at)
        d.buffers.append(Buffer(name, Place.ARENA, count, first=at, last=last))
    barrier = 0  # the first step since threads met
    for at, line in enumerate(lines):
        kernel = list(OPERATIONS).index(line.operation) * 2 + line.is_parallel
        made = [number - 2 for number in (line.left, line.right)]
        must_wait = any(step >= barrier for step in made)
        barrier = at if must_wait else barrier
        d.steps.append(Call(kernel, (line.left, line.right, at + 2), (0,), wait=must_wait))
    return d.program()


@pytest.mark.parametrize("threads", [1, 2, 3])
@given(lines=straight_lines(), counts=st.lists(st.integers(0, 70), min_size=1, max_size=4))
def test_straight_lines_agree_with_numpy(threads, lines, counts):
    model = Executable(program_of(lines), Code(), threads=threads)
    for seed, count in enumerate(counts):
        rng = np.random.default_rng(seed)
        values = list(rng.integers(-9, 9, (2, count)))
        found = model.run({"v0": values[0], "v1": values[1]})
        for line in lines:
            values.append(OPERATIONS[line.operation](values[line.left], values[line.right]))
        for array, expected in zip(found, values[2:][-2:], strict=True):
            np.testing.assert_array_equal(array, expected)


NUMBERS = st.one_of(
    st.integers(-20, 20), st.sampled_from([1 << 62, -(1 << 63), (1 << 63) - 1, 1 << 31])
)


@st.composite
def expressions(draw: st.DrawFn, depth: int = 4) -> SizeExpr:
    kind = draw(st.integers(0, 9)) if depth else 0
    if kind <= 2:
        return constant(draw(NUMBERS))
    if kind == 3:
        return ((SizeOp.SIZE, draw(st.integers(0, 1))),)
    if kind == 4:
        return (*draw(expressions(depth - 1)), (SizeOp.NOT, 0))
    if kind == 5:
        three = [draw(expressions(depth - 1)) for _ in range(3)]
        return (*three[0], *three[1], *three[2], (SizeOp.SELECT, 0))
    left, right = draw(expressions(depth - 1)), draw(expressions(depth - 1))
    return (*left, *right, (draw(st.sampled_from(sorted(BINARY))), 0))


def in_64_bits(expression: SizeExpr, sizes: list[int]) -> int | None:
    """The value if it and every value on the way to it fits."""
    try:
        for end in range(1, len(expression) + 1):
            if not -(1 << 63) <= evaluate(expression[:end], sizes) < 1 << 63:
                return None
        return evaluate(expression, sizes)
    except ZeroDivisionError:
        return None


@given(expression=expressions(), extents=st.tuples(st.integers(0, 9), st.integers(0, 9)))
def test_sizes_are_computed_as_in_python(expression, extents):
    """The native code agrees with Python wherever 64 bits suffice, and says so where not."""
    d = Draft()
    d.input("x", ["n"], tw.u8)
    d.input("y", ["m"], tw.u8)
    d.size("result", expression)
    model = Executable(d.program(), Code(), threads=1)
    feeds = {name: np.zeros(n, np.uint8) for name, n in zip("xy", extents, strict=True)}
    expected = in_64_bits(expression, list(extents))
    if expected is None:
        with pytest.raises(CallError) as caught:
            model.run(feeds)
        assert caught.value.code is C025
    else:
        answer = model._try_profile(feeds)
        assert answer is not None
        assert answer[2][2] == expected
