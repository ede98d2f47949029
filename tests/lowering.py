"""What tests of lowering passes share: apply a pass to a program given as text, and judge it."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tilewright.lower import Lowered, lower
from tilewright.lower.context import Context
from tilewright.lower.passes import Pass
from tilewright.target import Target
from tilewright.tensor import ir as tir
from tilewright.tensor.interpret import interpret
from tilewright.tensor.parser import parse
from tilewright.tensor.regions import outputs, sizes
from tilewright.tensor.verify import Level, verify
from tilewright.testing import assert_same, random_inputs

AVX2 = Target.named("x86-64-v3")


def applied(
    step: Pass,
    program: str | tir.Func,
    *,
    remarks: list[str] | None = None,
    size_values: Mapping[str, int] | None = None,
) -> tir.Func:
    """The program behind the pass: well formed, and of the same meaning as before."""
    func = parse(program) if isinstance(program, str) else program
    context = Context(AVX2)
    made = verify(step(func, context), Level.LOOPS)
    assert_same_meaning(made, func, size_values)
    assert remarks is None or context.remarks == remarks
    return made


def lowered(program: str | tir.Func, *, size_values: Mapping[str, int] | None = None) -> Lowered:
    """The program behind all passes, each of them judged."""
    func = parse(program) if isinstance(program, str) else program

    def judge(stage: str, made: tir.Func, seconds: float) -> None:
        del stage, seconds
        assert_same_meaning(made, func, size_values)

    return lower(func, AVX2, judge, check=True)


def assert_same_meaning(
    made: tir.Func, func: tir.Func, size_values: Mapping[str, int] | None = None
) -> None:
    """Both programs compute the same from random arrays, whatever the order of threads."""
    values = {var: (size_values or {}).get(var.name, 5) for var in sizes(func)}
    inputs = random_inputs(func, np.random.default_rng(1), values)
    expected = interpret(func, inputs, values)
    found = interpret(made, inputs, values, seed=0)
    assert_same({n: a.reshape(expected[n].shape) for n, a in found.items()}, expected)
    assert [p.name for p in outputs(made)] == [p.name for p in outputs(func)]
