"""Every form of the attention recipe keeps its meaning, whatever the plan, also when lowered."""

from __future__ import annotations

import dataclasses

import numpy as np
from hypothesis import event, given, note
from hypothesis import strategies as st

from tests.examples import examples
from tilewright.dtypes import boolean, f32
from tilewright.lower import lower
from tilewright.schedule import Schedule
from tilewright.schedule.recipes.attention import apply_plan
from tilewright.schedule.recipes.attention.plan import AttentionPlan
from tilewright.schedule.recipes.attention.roles import attentions
from tilewright.schedule.recipes.context import Context
from tilewright.target import Target
from tilewright.tensor import ir as tir
from tilewright.tensor import library
from tilewright.tensor.build import func, placeholder, size
from tilewright.tensor.interpret import interpret

TARGET = Target.named("x86-64-v3")


@st.composite
def plans(draw: st.DrawFn) -> AttentionPlan:
    keys = draw(st.integers(1, 3))
    return AttentionPlan(
        queries=draw(st.integers(1, 5)),
        keys=keys,
        lanes=draw(st.integers(1, 4)),
        rows=draw(st.integers(1, 3)),
        columns=draw(st.integers(1, 4)),
        block=keys * draw(st.integers(0, 3)),
        skips=draw(st.booleans()),
        heads=draw(st.sampled_from([0, 0, 0, 1])),
        packs=draw(st.booleans()),
    )


@st.composite
def cases(draw: st.DrawFn) -> tuple[tir.Func, dict[str, np.ndarray]]:
    b, h, m, n, d, e = (draw(st.integers(1, most)) for most in (2, 2, 6, 9, 4, 4))
    group = draw(st.integers(1, 2))
    symbolic = draw(st.booleans())
    batch, queries, keys = (size("b"), size("m"), size("n")) if symbolic else (b, m, n)
    layouts = tuple("".join(draw(st.permutations("bhsd"))) for _ in range(4))
    have = [
        {"b": (batch, b), "h": (heads, heads), "s": (length, known), "d": (width, width)}
        for heads, length, known, width in (
            (h * group, queries, m, d),
            (h, keys, n, d),
            (h, keys, n, e),
        )
    ]
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    inputs: dict[str, np.ndarray] = {}
    operands = []
    for name, sizes, layout in zip("QKV", have, layouts[:3], strict=True):
        operands.append(placeholder(name, [sizes[c][0] for c in layout]))
        values = rng.standard_normal([sizes[c][1] for c in layout])
        inputs[name] = values.astype(np.float32)
    masks = []
    for number in range(draw(st.integers(0, 2))):
        kept = [draw(st.booleans()) for _ in range(4)]
        sizes = [(batch, b), (h * group, h * group), (queries, m), (keys, n)]
        shape = [pair if keep else (1, 1) for keep, pair in zip(kept, sizes, strict=True)]
        shape = shape[draw(st.sampled_from([0, 0, 0, 1, 2, 3, 4])) :]  # the first may be left out
        kind = draw(st.sampled_from([f32, boolean]))
        masks.append(placeholder(f"A{number}", [s for s, _ in shape], kind))
        drawn = np.asarray(rng.standard_normal([known for _, known in shape]))
        inputs[f"A{number}"] = drawn > -0.7 if kind is boolean else drawn.astype(np.float32)
    result = library.attend(
        *(*operands, masks),
        causal=draw(st.booleans()),
        offset=draw(st.integers(-1, 3)),
        layouts=layouts,
        name="Y",
    )
    return func("attention", [*operands, *masks], [result]), inputs


def close(found: np.ndarray, expected: np.ndarray) -> bool:
    return bool(np.allclose(found, expected, rtol=1e-4, atol=1e-5, equal_nan=True))


def feature_iters(found):
    """Both products, with the iterator along the features of their right operand."""
    return ((found.first, found.first.reduce[0]), (found.second, found.second.columns[-1]))


@examples(8)
@given(case=cases(), plan=plans(), threads=st.integers(1, 2))
def test_any_plan_keeps_the_meaning(case, plan, threads):
    program, inputs = case
    expected = interpret(program, inputs)["Y"]
    if any(isinstance(dim, tir.Var) for dim in program.params[0].shape):
        # these forms are for known numbers
        plan = dataclasses.replace(plan, heads=0, packs=False)
    schedule = Schedule(program)
    (found,) = attentions(schedule)
    features = [tir.int_value(p.block.iters[at].extent) for p, at in feature_iters(found)]
    if any(count % plan.columns for count in features):
        plan = dataclasses.replace(plan, packs=False)
    context = Context(schedule, TARGET, threads, frozenset())
    apply_plan(context, found, plan)
    event("single" if plan.heads else "blocked" if plan.block else "whole")
    event("packed" if "K_reindex" in schedule.blocks() else "as it is")
    note(str(plan))
    note(str(schedule.func))
    assert close(interpret(schedule.func, inputs, seed=1)["Y"], expected)
    lowered = lower(schedule.func, TARGET, check=True).func
    flat = {name: array.reshape(-1) for name, array in inputs.items()}
    sizes = {
        dim: length
        for param in program.params
        if param.name in inputs
        for dim, length in zip(param.shape, inputs[param.name].shape, strict=True)
        if isinstance(dim, tir.Var)
    }
    assert close(interpret(lowered, flat, sizes)["Y"].reshape(expected.shape), expected)
