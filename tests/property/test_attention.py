"""Every form of the attention recipe keeps its meaning, whatever the point, also when lowered."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import event, given, note
from hypothesis import strategies as st

import tilewright as tw
from tests.examples import examples
from tilewright.dtypes import boolean, f32
from tilewright.lower import lower
from tilewright.schedule import Schedule
from tilewright.schedule.draft import draft
from tilewright.schedule.recipes.attention import ATTENTION
from tilewright.schedule.recipes.attention.roles import attentions
from tilewright.schedule.recipes.attention.space import AttentionPoint
from tilewright.schedule.recipes.context import Context
from tilewright.schedule.recipes.grouping import Group
from tilewright.target import Target
from tilewright.tensor import ir as tir
from tilewright.tensor import library
from tilewright.tensor.analysis.structure import Kind
from tilewright.tensor.build import func, placeholder, size
from tilewright.tensor.interpret import interpret

TARGET = Target.named("x86-64-v3")


@st.composite
def small_points(draw: st.DrawFn) -> AttentionPoint:
    """Smaller than those for any machine, so that small arrays have many tiles."""
    keys = draw(st.integers(1, 3))
    return AttentionPoint(
        queries=draw(st.integers(1, 5)),
        keys=keys,
        key_vectors=draw(st.integers(1, 2)),
        rows=draw(st.integers(1, 3)),
        row_vectors=draw(st.integers(1, 2)),
        lanes=draw(st.integers(1, 2)),
        block=keys * draw(st.integers(0, 3)),
        skips=draw(st.integers(0, 1)),
        packs=draw(st.integers(0, 1)),
        heads=draw(st.sampled_from([0, 0, 0, 1])),
        vectors=draw(st.integers(1, 2)),
        folded=draw(st.integers(1, 2)),
        axis=draw(st.integers(0, 1)),
        parallel=draw(st.integers(0, 1)),
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
@given(case=cases(), point=small_points(), threads=st.integers(1, 2))
def test_any_point_keeps_the_meaning(case, point, threads):
    program, inputs = case
    expected = interpret(program, inputs)["Y"]
    if any(isinstance(dim, tir.Var) for dim in program.params[0].shape):
        # these forms are for known numbers
        point = dataclasses.replace(point, heads=0, packs=0)
    schedule = Schedule(program)
    (found,) = attentions(schedule)
    features = [tir.int_value(p.block.iters[at].extent) for p, at in feature_iters(found)]
    if point.axis or any(count % point.columns for count in features):
        point = dataclasses.replace(point, packs=0)
    context = Context(schedule, TARGET, threads, frozenset())
    group = Group(Kind.OPAQUE, found.blocks)
    ATTENTION.apply(context, group, ATTENTION.match(context, group), point)
    event("single" if point.heads else "blocked" if point.block else "whole")
    event("packed" if "K_reindex" in schedule.blocks() else "as it is")
    note(str(point))
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


@dataclasses.dataclass(frozen=True)
class Model:
    """An attention as models have it: sizes, some of them symbolic, and what masks its logits."""

    queries: int
    keys: int
    features: int
    values: int
    group: int
    layout: str
    causal: bool
    mask: str | None
    symbolic: frozenset[str]

    def program(self) -> tir.Func:
        def extent(name: str, known: int) -> int | tir.Var:
            return size(name) if name in self.symbolic else known

        batch = extent("b", 2)
        queries, keys = extent("m", self.queries), extent("n", self.keys)
        operands = []
        for name, heads, length, width in (
            ("Q", 2 * self.group, queries, self.features),
            ("K", 2, keys, self.features),
            ("V", 2, keys, self.values),
        ):
            sizes = {"b": batch, "h": heads, "s": length, "d": width}
            operands.append(placeholder(name, [sizes[c] for c in self.layout]))
        masks = []
        if self.mask is not None:
            shape = [batch, 2 * self.group, queries, keys]
            kept = [s if c == "1" else 1 for s, c in zip(shape, self.mask, strict=True)]
            masks.append(placeholder("A", kept))
        result = library.attend(
            *(*operands, masks), causal=self.causal, layouts=(self.layout,) * 4, name="Y"
        )
        return func("attention", [*operands, *masks], [result])

    def inputs(self) -> dict[str, np.ndarray]:
        sizes = {"b": 2, "m": self.queries, "n": self.keys}
        rng = np.random.default_rng(self.queries)
        shapes = {
            p.name: [tir.int_value(d) or sizes[d.name] for d in p.shape]
            for p in self.program().params
            if p.name != "Y"
        }
        return {n: rng.standard_normal(s).astype(np.float32) for n, s in shapes.items()}

    def exact(self, inputs: dict[str, np.ndarray]) -> np.ndarray:
        order = [self.layout.index(c) for c in "bhsd"]
        q, k, v = (inputs[n].astype(np.float64).transpose(order) for n in "QKV")
        k, v = (np.repeat(x, self.group, axis=1) for x in (k, v))
        logits = q @ k.transpose(0, 1, 3, 2) / np.sqrt(self.features)
        if self.mask is not None:
            logits = logits + inputs["A"]
        if self.causal:
            logits = np.where(np.tri(self.queries, self.keys, dtype=bool), logits, -np.inf)
        powers = np.exp(logits - logits.max(axis=-1, keepdims=True))
        result = powers @ v / powers.sum(axis=-1, keepdims=True)
        return result.transpose(np.argsort(order))


MODELS = st.builds(
    Model,
    queries=st.sampled_from([1, 2, 3, 5, 16, 33, 70]),
    keys=st.sampled_from([1, 7, 40, 129, 300]),
    features=st.sampled_from([8, 20, 64]),
    values=st.sampled_from([8, 20, 64]),
    group=st.sampled_from([1, 1, 2, 4]),
    layout=st.sampled_from(["bhsd", "bshd"]),
    causal=st.booleans(),
    mask=st.sampled_from([None, None, "1111", "0011", "1001"]),
    symbolic=st.frozensets(st.sampled_from("bmn")),
)


def drawn_point(data, program, target, threads):
    """A point of the space at random; forms that are rare take their turns."""
    schedule = Schedule(program)
    (found,) = attentions(schedule)
    context = Context(schedule, target, threads, frozenset())
    shape = ATTENTION.match(context, Group(Kind.OPAQUE, found.blocks))
    space = ATTENTION.space(shape, target)
    cycles = ATTENTION.cycles(shape, target.machine, space)
    assert np.isfinite(cycles).all()
    assert (cycles > 0).all()
    forms = [space["heads"] > 0, space["packs"] > 0, space["block"] > 0, space["block"] == 0]
    rows = data.draw(st.sampled_from([np.flatnonzero(f) for f in forms if f.any()]))
    return space.point(int(rows[data.draw(st.integers(0, len(rows) - 1))]))


@pytest.mark.parametrize("name", ["x86-64-v2", "x86-64-v3", "x86-64-v4", "aarch64"])
@examples(6)
@given(model=MODELS, threads=st.sampled_from([1, 8]), data=st.data())
def test_points_can_be_followed(name, model, threads, data):
    target, program = Target.named(name), model.program()
    point = drawn_point(data, program, target, threads)
    decisions = []
    schedule = draft(program, target, threads, points={"Y": point}, decisions=decisions)
    assert schedule.remarks == []
    assert [(d.recipe, d.point) for d in decisions] == [(ATTENTION, point)]


@examples(12)
@given(model=MODELS, threads=st.sampled_from([1, 2]), data=st.data())
def test_points_compute_attention(model, threads, data):
    target, program = Target.host(), model.program()
    point = drawn_point(data, program, target, threads)
    trace = draft(program, target, threads, points={"Y": point}).trace
    inputs = model.inputs()
    found = tw.build(program, threads=threads, trace=trace)(*inputs.values())
    assert np.allclose(found, model.exact(inputs), rtol=1e-4, atol=1e-5), point
