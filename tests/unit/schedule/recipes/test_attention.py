"""The attention recipe: what it recognises, what it plans, and what it keeps in memory."""

from __future__ import annotations

import dataclasses
from math import prod

import pytest

from tilewright.lower import lower
from tilewright.schedule import Schedule
from tilewright.schedule.draft import draft
from tilewright.schedule.recipes.attention import ATTENTION
from tilewright.schedule.recipes.attention.roles import attentions
from tilewright.schedule.recipes.attention.shape import AttentionShape
from tilewright.schedule.recipes.attention.space import AttentionPoint
from tilewright.schedule.recipes.recipe import draft_point
from tilewright.target import Target
from tilewright.tensor import ir as tir
from tilewright.tensor import library
from tilewright.tensor.build import compute, func, placeholder, size
from tilewright.tensor.visit import free_vars, walk_stmts

TARGET = Target.named("x86-64-v3")
BERT = AttentionShape(
    batch=12,
    queries=128,
    keys=128,
    features=64,
    value_features=64,
    element_bytes=4,
    causal=False,
    threads=2,
    shared_by=2,
)


def plan_for(shape: AttentionShape, target: Target):
    """The drafted point."""
    return draft_point(ATTENTION, shape, target)[0]


def steps_of(program: tir.Func, threads: int = 2) -> list[str]:
    return [step.primitive for step in draft(program, TARGET, threads).trace]


def test_roles():
    (found,) = attentions(Schedule(library.attention(2, 4, 8, 9, 16, shared_heads=2)))
    names = (found.scores, found.logits, found.peak, found.powers, found.total, found.sums)
    assert names == ("Y_scores", "Y_logits", "Y_max", "Y_powers", "Y_total", "Y_sums")
    assert found.result == "Y"
    assert found.batch == 2


def test_a_softmax_alone_is_no_attention():
    assert not attentions(Schedule(library.softmax(4, 12)))


def test_weights_that_someone_else_reads_are_no_attention():
    """They must then exist as a whole."""
    q, k, v = (placeholder(name, (1, 2, 8, 4)) for name in "QKV")
    y = library.attend(q, k, v, name="Y")
    sums = next(t for t in y.inputs if t.buffer.name == "Y_sums")
    powers = next(t for t in sums.inputs if t.buffer.name == "Y_powers")
    shown = compute("W", powers.shape, lambda b, h, i, j: powers[b, h, i, j] * 2.0)
    program = func("shown", [q, k, v], [y, shown])
    assert not attentions(Schedule(program))
    assert "factor_softmax" not in steps_of(program)


@pytest.mark.parametrize("threads", [1, 2, 16])
@pytest.mark.parametrize("keys", [40, 4096, size("n")])
@pytest.mark.parametrize("queries", [1, 64, size("m")])
def test_all_of_it_is_one_nest(queries, keys, threads):
    s = draft(library.attention(size("b"), 6, queries, keys, 64), TARGET, threads)
    outermost = {s.loops(name)[0] for name in s.blocks()}
    assert len(outermost) == 1
    kind = s.loop(outermost.pop()).kind
    is_small = (queries, keys) == (1, 40)  # not worth waking anyone
    is_shared = threads > 1 and not is_small
    assert kind is (tir.LoopKind.PARALLEL if is_shared else tir.LoopKind.SERIAL)


def test_scores_are_never_kept_as_a_whole():
    """All buffers together are a small part of the scores of one head."""
    s = draft(library.attention(1, 2, 1024, 4096, 64), TARGET, 2)
    lowered = lower(s.func, TARGET).func
    allocs = [stmt.buffer for stmt in walk_stmts(lowered) if type(stmt) is tir.Alloc]
    sizes = [prod(tir.int_value(d) or 10**9 for d in buffer.shape) for buffer in allocs]
    assert sum(sizes) < 1024 * 4096 / 32


@pytest.mark.parametrize("keys", [8, 13, 29])
def test_loops_end_at_a_causal_mask_however_large_tiles_are(keys):
    target = Target.named("x86-64-v4")
    program = library.attention(1, 1, 512, 512, 64, causal=True)
    point = AttentionPoint(16, keys, 1, 8, 2, 16, 8 * keys, 1, 0, 0, 0, 0, 0, 0)
    s = draft(program, target, 1, points={"Y": point})
    loops = [x for x in walk_stmts(lower(s.func, target).func) if type(x) is tir.For]
    (query,) = [x.var for x in loops if x.var.name == "Y_sums_q_0"]
    ends = [x.extent for x in loops if x.var.name == "Y_sums_part_k_0"]
    assert ends
    assert all(query in free_vars(end) for end in ends)


def test_other_blocks_are_scheduled_as_before():
    q, k, v = (placeholder(name, (1, 2, 64, 16)) for name in "QKV")
    y = library.attend(q, k, v, name="Y")
    z = compute("Z", y.shape, lambda b, h, i, d: y[b, h, i, d] + q[b, h, i, d])
    s = draft(func("residual", [q, k, v], [z]), TARGET, 1)
    assert any(s.loop(name).kind is tir.LoopKind.VECTOR for name in s.loops("Z"))


def test_few_keys_are_taken_as_a_whole():
    assert plan_for(BERT, TARGET).block == 0


def test_many_keys_are_taken_in_blocks_that_leave_none_over():
    plan = plan_for(dataclasses.replace(BERT, queries=1500, keys=1500), TARGET)
    assert plan.block
    assert 1500 % plan.block == 0
    assert not plan.skips


@pytest.mark.parametrize("keys", [130, 131, 1499, 4096])
def test_blocks_are_whole_tiles(keys):
    plan = plan_for(dataclasses.replace(BERT, keys=keys, causal=True), TARGET)
    assert plan.block % plan.keys == 0
    assert plan.skips


def test_what_a_tile_works_on_fits_the_first_cache():
    for queries, keys in ((None, None), (128, 4096), (197, 197), (1500, 1500)):
        plan = plan_for(dataclasses.replace(BERT, queries=queries, keys=keys), TARGET)
        logits = 4 * plan.queries * (plan.block or keys)
        assert logits <= TARGET.cache(1).share_bytes


def test_register_tiles_fit_the_register_file():
    for features in (8, 40, 64, 128):
        shape = dataclasses.replace(BERT, features=features, value_features=features)
        plan = plan_for(shape, TARGET)
        first, second = plan.key_vectors, plan.row_vectors
        assert plan.keys * first + first + 1 <= TARGET.vector_registers
        assert plan.rows * second + second + 1 <= TARGET.vector_registers


@pytest.mark.parametrize("group", [1, 4, 64])
def test_heads_that_share_keys_decode_together_while_registers_last(group):
    shape = dataclasses.replace(BERT, queries=1, keys=None, group=group)
    plan = plan_for(shape, TARGET)
    assert (plan.heads > 1) == (group > 1)
    assert group % plan.heads == 0
    assert plan.rows * plan.row_vectors + plan.row_vectors + 1 <= TARGET.vector_registers


@pytest.mark.parametrize("name", ["x86-64-v2", "x86-64-v3", "x86-64-v4", "aarch64"])
def test_a_few_queries_have_no_lanes_along_them(name):
    target = Target.named(name)
    few = [plan_for(dataclasses.replace(BERT, queries=q), target).heads > 0 for q in range(1, 33)]
    assert few[0]
    assert not few[-1]
    assert few == sorted(few, reverse=True)


@pytest.mark.parametrize(
    ("change", "packs"),
    [
        ({}, True),
        ({"pitch_bytes": 0}, False),  # there is nothing to gain
        ({"queries": 128}, False),  # too few of them share the copies
        ({"keys": None}, False),
        ({"features": 20, "value_features": 20}, False),  # panels would not be whole
    ],
)
def test_scattered_keys_and_values_are_copied_for_many_queries(change, packs):
    long = dataclasses.replace(BERT, queries=1500, keys=1500, pitch_bytes=4 * 768)
    assert plan_for(dataclasses.replace(long, **change), TARGET).packs == packs


def test_a_given_point_is_followed_and_noted():
    program, decisions = library.attention(1, 2, 64, 100, 16), []
    (found,) = attentions(Schedule(program))
    draft(program, TARGET, 1, decisions=decisions)
    (drafted,) = decisions
    assert (drafted.recipe, drafted.blocks) == (ATTENTION, found.blocks)
    other = dataclasses.replace(drafted.point, block=5 * drafted.point.keys, skips=1)
    again = []
    s = draft(program, TARGET, 1, points={found.result: other}, decisions=again)
    assert [d.point for d in again] == [other]
    assert "factor_softmax" in [step.primitive for step in s.trace]


@pytest.mark.parametrize(("layout", "copies"), [("bshd", 3), ("bhsd", 1)])
def test_copies_are_made_once_per_head(layout, copies):
    dims = {"b": 1, "h": 4, "s": 1024, "d": 64}
    q, k, v = (placeholder(name, [dims[c] for c in layout]) for name in "QKV")
    out = library.attend(q, k, v, layouts=(layout,) * 4, name="Y")
    s = draft(func("attention", [q, k, v], [out]), TARGET, 2)
    made = [name for name in s.blocks() if name.endswith("reindex")]
    assert len(made) == copies
    (heads,) = {s.loops(name)[0] for name in s.blocks()}
    assert s.loop(heads).kind is tir.LoopKind.PARALLEL
    tiles = s.loops("Y")[1]
    outside = [name for name in made if tiles not in s.loops(name)]
    assert outside == ["K_reindex", "V_reindex"][: copies - 1]
    assert not s.remarks
