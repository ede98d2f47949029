"""What is drawn of the space of a site: different points, everything in turn, all there is."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

from tests.laid_out import compiled
from tilewright.dtypes import f32
from tilewright.graph import Builder, interpret
from tilewright.graph.ops.window import Conv, Pool
from tilewright.layouts.apply import apply
from tilewright.layouts.choose import decide
from tilewright.layouts.costs import Machine
from tilewright.layouts.forms import FIRST, LAST
from tilewright.layouts.sites import Alternative, Settings, sites_of
from tilewright.layouts.space import Space
from tilewright.schedule.recipes.table import Table
from tilewright.schedule.recipes.windows.channel_space import ChannelPoint
from tilewright.target import Target
from tilewright.tensor import ir as tir

SETTINGS = Settings(Machine(Target.named("x86-64-v3"), 1))
POOL = Pool(tir.Fold.MAX, (2, 2), (2, 2), (1, 1), (0,) * 4)


def space(kind: type[Conv | Pool]) -> Space:
    """Of one layer between two others, so that it may have any layout."""
    b = Builder("layers")
    x = b.map(lambda v: v * 0.5, b.input("x", f32, (1, 16, 16, 16)))
    w = b.constant(np.ones((16, 16, 3, 3), np.float32), "w")
    conv = Conv((1, 1), (1, 1), (1,) * 4, 1, f32)
    graph = b.graph([b.add(POOL, b.add(POOL, b.add(conv, x, w)))])
    sites = sites_of(graph, SETTINGS)
    site = next(s for s in sites if any(isinstance(node.op, kind) for node in s.nodes))
    return Space(site, SETTINGS)


def keys(points: list[Alternative]) -> list[str]:
    return [point.key(4) for point in points]


def settings_of(points: list[Alternative]) -> set[tuple[object, ...]]:
    return {(point.algorithm, point.source, point.result) for point in points}


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("count", [0, 1, 7, 40])
def test_as_many_different_points_as_asked_for(count, seed):
    drawn = space(Conv).sample(random.Random(seed), count)
    assert len(drawn) == count
    assert len(set(keys(drawn))) == count
    assert settings_of(drawn) <= settings_of(list(space(Conv).site.alternatives))


@pytest.mark.parametrize("seed", range(3))
def test_loops_are_drawn_from_everything_that_the_recipe_numbers(seed):
    whole = space(Conv)
    drawn = whole.sample(random.Random(seed), 200)
    drafted = set(keys(list(whole.joint())))
    assert len(drafted & set(keys(drawn))) < 20, "most are none that a draft looks at"
    for point in drawn:
        plans = whole.plans(point)
        assert plans.numbered.follow(Table.of([point.loops]).columns).all()
        # The draft may be beaten by what it does not look at, but not by far.
        alike = replace(point, loops=None, cycles=0.0)
        own = next(a for a in whole.site.alternatives if replace(a, cycles=0.0) == alike)
        assert point.cycles > 0.5 * own.cycles


def test_everything_of_a_layer_is_more_than_a_billion(capsys):
    """C2 of ResNet: 64 filters of 3 × 3 on 56 × 56 places of 64 channels."""
    b = Builder("c2")
    x = b.map(lambda v: v * 0.5, b.input("x", f32, (1, 56, 56, 64)))
    w = b.constant(np.ones((64, 64, 3, 3), np.float32), "w")
    y = b.add(Conv((1, 1), (1, 1), (1,) * 4, 1, f32), x, w)
    graph = b.graph([b.add(POOL, b.map(lambda v: v + 1.0, y))])
    (site,) = [s for s in sites_of(graph, SETTINGS) if s.conv is not None]
    whole = Space(site, SETTINGS)
    loops = whole.plans(site.alternatives[0]).numbered.size
    with capsys.disabled():
        print(f"\nC2: {whole.layouts.size:.1e} layouts, {loops:.1e} loops, {whole.size:.1e} points")
    assert min(whole.layouts.size, loops) > 10**4
    assert whole.size >= 10**9


@pytest.mark.parametrize("seed", range(5))
def test_every_algorithm_and_layout_comes_in_turn(seed):
    whole = space(Conv)
    several = len(whole.site.alternatives)
    assert several > 5
    drawn = whole.sample(random.Random(seed), 2 * several)
    assert settings_of(drawn[:several]) == settings_of(list(whole.site.alternatives))
    assert settings_of(drawn[several:]) == settings_of(list(whole.site.alternatives))


def test_a_space_with_fewer_points_is_drawn_as_a_whole():
    whole = space(Pool)
    every = set(keys(list(whole.joint())))
    drawn = whole.sample(random.Random(3), len(every) + 100)
    assert len(drawn) == len(every)
    assert set(keys(drawn)) == every


def test_windows_have_loops_of_their_own():
    pool = space(Pool)
    (first, *_) = pool.site.alternatives
    points = list(pool.loops(first))
    assert all(isinstance(p.loops, ChannelPoint) for p in points)
    assert min(p.cycles for p in points) == first.cycles  # what is drafted
    assert len({p.loops for p in points}) == len(points) > 20


@pytest.mark.parametrize("form", [LAST, FIRST])
def test_points_are_different_kernels_with_the_same_result(form):
    b = Builder("depthwise")
    x = b.input("x", f32, (1, 12, 20, 8))
    w = b.constant(np.arange(72, dtype=np.float32).reshape(8, 1, 3, 3), "w")
    inside = b.map(lambda v: v + 1.0, x)
    made = b.map(lambda v: v * 2.0, b.add(Conv((1, 1), (1, 1), (1,) * 4, 8, f32), inside, w))
    pooled = b.add(POOL, b.map(lambda v: v - 1.0, b.add(POOL, made)))  # the last one is as passed
    graph = b.graph([pooled])
    feeds = {"x": np.arange(1920, dtype=np.float32).reshape(1, 12, 20, 8) % 7}
    (wanted,) = interpret(graph, feeds)
    programs = set[int]()  # by how long they are: names differ anyway
    fixed = Settings(Machine(Target.host(), 1), fixed=form)
    sites, _ = decide(graph, fixed)
    spaces = [list(Space(site, fixed).loops(way)) for site, way in sites]
    for number in range(10):
        drawn = [random.Random(number).choice(points) for points in spaces]
        chosen = [(site, way) for (site, _), way in zip(sites, drawn, strict=True)]
        module, assembled = compiled(apply(graph, chosen).graph)
        np.testing.assert_array_equal(module.run(feeds)[0], wanted)
        programs.add(len(assembled.code))
    assert len(programs) >= 3


def test_a_seed_says_what_is_drawn():
    draws = [tuple(keys(space(Conv).sample(random.Random(seed), 20))) for seed in (1, 1, 2, 3)]
    assert draws[0] == draws[1]
    assert len(set(draws)) == 3
