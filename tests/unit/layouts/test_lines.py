"""Convolutions along lines: who is offered them, when they are chosen, and what they mean."""

from __future__ import annotations

import numpy as np
import pytest

from tests.laid_out import compiled
from tilewright.dtypes import f16, f32
from tilewright.graph.builder import Builder
from tilewright.graph.interpret import interpret
from tilewright.graph.ir import Graph
from tilewright.graph.ops.window import Conv, ConvTranspose
from tilewright.layouts.algorithms import Algorithm, lines_of, shape_with
from tilewright.layouts.choose import choose
from tilewright.layouts.costs import Machine, lines_cycles, turned_cycles
from tilewright.layouts.forms import FIRST, LAST, blocked
from tilewright.layouts.sites import Settings
from tilewright.schedule.draft import draft
from tilewright.schedule.recipes.contraction.recipe import CONTRACTION
from tilewright.schedule.recipes.contraction.space import ContractionShape
from tilewright.schedule.recipes.recipe import Decision
from tilewright.target import Target
from tilewright.tensor import ir as tir
from tilewright.tensor.build import func, placeholder

TARGETS = ("x86-64-v2", "x86-64-v3", "x86-64-v4", "aarch64")
V3 = Machine(Target.named("x86-64-v3"), 1)


def conv(taps: int = 3, rank: int = 2, stride: int = 1, gap: int = 1, **more: object) -> Conv:
    given = {"groups": 1, "dtype": f32, **more}
    reach = (taps - 1) * gap // 2
    return Conv((stride,) * rank, (gap,) * rank, (reach,) * 2 * rank, **given)  # type: ignore[arg-type]


def spread(stride: int = 2, lines: int | None = None, extra: int = 0) -> ConvTranspose:
    pads, extras = (1, 1, 1, 1), (extra, extra)
    return ConvTranspose((stride, stride), (1, 1), pads, extras, 1, f32, lines)


def layer(
    op: Conv | ConvTranspose, space: tuple[int, ...], channels: int, filters: int, taps: int = 3
) -> Graph:
    outer = (channels, filters) if isinstance(op, ConvTranspose) else (filters, channels)
    weights = np.random.default_rng(3).uniform(-1, 1, (*outer, *[taps] * len(space)))
    b = Builder("layer")
    x = b.input("x", f32, (1, *space, channels))
    return b.graph([b.add(op, x, b.constant(weights.astype(np.float32), "w"))], ["y"])


def chosen(graph: Graph, target: str, *, strict: bool = False) -> object:
    machine = Machine(Target.named(target), 1)
    *_, node = choose(graph, Settings(machine, strict=strict)).graph.nodes
    return node.op


def offered(op: Conv | ConvTranspose, width: int, filters: int, taps: int = 3) -> list[str]:
    outer = (32, filters) if isinstance(op, ConvTranspose) else (filters, 32 // op.groups)
    weights = np.zeros((*outer, taps, taps), np.float32)
    return [a.name for a in lines_of(op, shape_with(op, weights, (20, width)), V3)]


def test_filters_that_leave_vectors_empty_have_lines():
    assert offered(conv(), 32, 3) == ["lines"]
    assert offered(conv(), 30, 12) == ["lines", "lines of 8"]
    assert offered(conv(), 7, 3) == ["lines of 8"]
    assert offered(conv(), 4, 3) == ["lines of 8"]
    assert offered(spread(), 32, 3, taps=4) == ["lines"]
    assert offered(spread(), 60, 3, taps=4) == ["lines", "lines of 8"]


@pytest.mark.parametrize(
    ("op", "width", "filters", "taps"),
    [
        (conv(), 32, 16, 3),  # they fill vectors
        (conv(), 4, 5, 3),  # lines leave more of it empty
        (conv(taps=1), 32, 3, 1),  # nothing is read twice
        (conv(groups=2), 32, 6, 3),
        (conv(dtype=f16), 32, 3, 3),
        (spread(stride=1), 32, 3, 3),
    ],
)
def test_others_have_none(op, width, filters, taps):
    assert offered(op, width, filters, taps) == []


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("target", ["x86-64-v3", "x86-64-v4"])
@pytest.mark.parametrize(
    "graph",
    [
        layer(conv(), (64, 64), 64, 3),
        layer(conv(taps=7), (64, 64), 32, 1, taps=7),
        layer(spread(), (32, 32), 64, 3, taps=4),
        layer(spread(), (32, 32), 64, 3),  # whose images see parts of different sizes
        layer(conv(taps=5, rank=1), (512,), 64, 2, taps=5),
    ],
)
def test_few_filters_run_along_lines(graph, target, strict):
    op = chosen(graph, target, strict=strict)
    assert isinstance(op, Conv | ConvTranspose)
    assert op.lines == 1


@pytest.mark.parametrize("target", TARGETS)
def test_filters_that_fill_vectors_stay_in_them(target):
    op = chosen(layer(conv(), (32, 32), 16, 16), target, strict=True)
    assert isinstance(op, Conv)
    assert not op.lines


def test_a_choice_against_lines_is_said():
    lanes = Target.named("x86-64-v2").lanes(4)
    op = chosen(layer(conv(), (32, 32), 64, 4 * lanes - 1), "x86-64-v2", strict=True)
    assert isinstance(op, Conv)
    assert op.lines == 0


def test_a_form_that_is_not_channels_first_is_turned():
    shape = shape_with(conv(), np.zeros((3, 32, 3, 3), np.float32), (32, 32))
    forms = (FIRST, LAST, blocked(8))
    first, last, blocks = (turned_cycles(shape, form, FIRST, V3) for form in forms)
    assert first == 0 < last == blocks
    assert 0 < turned_cycles(shape, FIRST, LAST, V3) < last  # filters are few


def test_lines_wish_for_zeros_up_to_their_end():
    halo = Algorithm(lines=8).halo(conv(), (20, 30), (20, 30))
    assert halo == ((1, 1), (1, 3))
    assert Algorithm(lines=1).halo(conv(), (20, 30), (20, 30)) == ((1, 1), (1, 1))


def test_longer_lines_cost_less_than_pieces_of_vectors():
    shape = shape_with(conv(), np.zeros((3, 64, 3, 3), np.float32), (31, 31))
    assert lines_cycles(shape, 8, V3) < lines_cycles(shape, 1, V3)


@pytest.mark.parametrize("multiple", [1, 8])
@pytest.mark.parametrize(
    ("op", "space", "taps"),
    [
        (conv(), (30, 30), 3),
        (conv(taps=5), (20, 35), 5),
        (conv(stride=2), (33, 41), 3),
        (conv(rank=1), (130,), 3),
        (spread(), (12, 21), 4),
    ],
)
def test_what_is_priced_is_what_runs(op, space, taps, multiple):
    outer = (24, 3) if isinstance(op, ConvTranspose) else (3, 24)
    x = placeholder("X", (1, *space, 24))
    w = placeholder("W", (*outer, *[taps] * len(space)))
    (y,) = type(op)(**{**vars(op), "lines": multiple}).lower([x, w], ["Y"])
    decisions: list[Decision] = []
    draft(func("layer", [x, w], [y]), V3.target, 1, ["W"], decisions=decisions)
    (found,) = [d.shape for d in decisions if d.recipe is CONTRACTION]
    sizes = [tir.int_value(d) or 0 for d in y.shape[1:-1]]
    weights = np.zeros((*outer, *[taps] * len(space)), np.float32)
    priced = Algorithm(lines=multiple).product(shape_with(op, weights, sizes), V3)
    assert isinstance(found, ContractionShape)
    same = ("batch", "rows", "columns", "reduce", "walk", "column_pitch_bytes", "left_bytes")
    assert [getattr(found, s) for s in same] == [getattr(priced, s) for s in same]
    for near in ("right_pitch_bytes", "right_bytes", "panel_density"):
        assert getattr(found, near) == pytest.approx(getattr(priced, near), rel=0.1)


@pytest.mark.parametrize("lines", [0, 1, 4, 16])
@pytest.mark.parametrize(
    "make",
    [
        lambda n: layer(conv(lines=n), (9, 21), 6, 3),
        lambda n: layer(conv(taps=5, stride=2, lines=n), (17, 23), 5, 4, taps=5),
        lambda n: layer(conv(gap=2, lines=n), (11, 19), 4, 7),
        lambda n: layer(conv(rank=1, lines=n), (37,), 8, 2),
        lambda n: layer(conv(rank=3, lines=n), (3, 4, 18), 3, 2),
        lambda n: layer(spread(lines=n), (5, 9), 6, 3, taps=4),
        lambda n: layer(spread(lines=n, extra=1), (4, 11), 3, 5, taps=2),
        lambda n: layer(spread(stride=3, lines=n), (3, 18), 4, 1, taps=6),
        lambda n: layer(spread(lines=n), (6, 10), 4, 3),
        lambda n: layer(spread(lines=n, extra=1), (4, 9), 5, 2, taps=5),
    ],
)
def test_meaning_stays(make, lines):
    graph = make(lines)
    shape = [tir.int_value(size) or 0 for size in graph.inputs[0].shape]
    x = np.random.default_rng(5).uniform(-1, 1, shape).astype(np.float32)
    (found,) = compiled(graph)[0].run({"x": x})
    np.testing.assert_allclose(found, interpret(graph, {"x": x})[0], atol=1e-4)
