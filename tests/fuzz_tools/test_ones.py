"""Graphs whose named sizes are one, alone and together."""

from __future__ import annotations

import random

import pytest

from fuzz.generate import generate
from fuzz.judge import judge
from fuzz.ones import runs_with_ones

SEEDS = range(12)


@pytest.fixture(scope="module")
def cases():
    return [generate(seed, ones=True) for seed in SEEDS]


@pytest.mark.parametrize("names", ["n", "nm", "nmk"])
def test_every_size_is_one_alone_and_all_are_together(names):
    sizes = runs_with_ones(random.Random(3), list(names))
    runs = list(zip(*(sizes[name] for name in names), strict=True))
    alone = [[int(k == own) for k in range(len(names))] for own in range(len(names))]
    ones = [[int(extent == 1) for extent in run] for run in runs]
    assert ones[0] == [0] * len(names)
    assert all(row in ones for row in alone)
    assert [1] * len(names) in ones


def test_every_graph_has_a_symbolic_size_that_is_one_in_a_run(cases):
    for case in cases:
        extents = [
            {run[info.name].shape[k] for run in case.runs}
            for info in case.model.graph.input
            for k, dim in enumerate(info.type.tensor_type.shape.dim)
            if dim.dim_param
        ]
        assert any(1 in found and len(found) > 1 for found in extents), case.origin


def test_some_graphs_squeeze_without_axes(cases):
    nodes = [node for case in cases for node in case.model.graph.node]
    assert any(n.op_type == "Squeeze" and len(n.input) == 1 and not n.attribute for n in nodes)


def test_a_seed_gives_one_graph(cases):
    again = generate(0, ones=True)
    assert again.model.SerializeToString() == cases[0].model.SerializeToString()


def test_shapes_are_judged(monkeypatch):
    """A result that keeps a dimension of one is a finding."""
    pytest.importorskip("onnxruntime")
    case = generate(0, ops=["Squeeze"], ones=True)
    assert judge(case).kind == "same"
    from tilewright.graph import guards

    monkeypatch.setattr(guards.Guards, "decide", lambda *_: False)
    monkeypatch.setattr("tilewright.model.assemble._Assembler._require_assumptions", lambda _: None)
    verdict = judge(case)
    assert verdict.kind == "wrong"
    assert "shape" in verdict.detail
