"""The generator makes valid models, the same ones for the same seed, of all operators it knows."""

from __future__ import annotations

import random

import numpy as np
import onnx
import pytest
from onnx import TensorProto, defs

from fuzz.generate import OLDEST, generate, operators_of
from fuzz.grow import Growth, Reject, require
from fuzz.rules import RULES
from fuzz.stepwise import run_stepwise
from fuzz.values import TYPES, is_float, random_array


@pytest.mark.parametrize("start", range(0, 200, 50))
def test_models_are_valid_and_their_inputs_fit(start):
    for seed in range(start, start + 50):
        case = generate(seed)
        onnx.checker.check_model(case.model, full_check=True)
        names = [i.name for i in case.model.graph.input]
        for feeds in case.runs:
            assert list(feeds) == names
            values = run_stepwise(case.model, feeds)
            assert all(o.name in values for o in case.model.graph.output)


def test_the_same_seed_gives_the_same_case():
    first, second = generate(17), generate(17)
    assert first.model == second.model
    for a, b in zip(first.runs, second.runs, strict=True):
        assert all(a[n].tobytes() == b[n].tobytes() for n in a)


def test_seeds_vary_in_opset_and_size():
    cases = [generate(seed) for seed in range(30)]
    assert len({c.model.opset_import[0].version for c in cases}) > 8
    assert {len(c.runs) for c in cases} >= {1, 2}
    assert max(len(c.operators) for c in cases) > 4


@pytest.mark.parametrize("op", ["Conv", "If", "Loop", "Scan", "TopK", "QuantizeLinear", "LSTM"])
def test_operators_can_be_asked_for(op):
    case = generate(3, ops=[op], opset=17)
    bodies = {*case.operators, *(n.op_type for f in case.model.functions for n in f.node)}
    assert op in bodies


def test_every_rule_is_of_an_operator_that_some_opset_has():
    known = {
        op for opset in range(OLDEST, defs.onnx_opset_version() + 1) for op in operators_of(opset)
    }
    assert known == set(RULES)


def test_a_rule_that_gives_up_leaves_nothing_behind():
    def hopeless(g: Growth, _: str) -> None:
        g.add("Abs", [g.new(TensorProto.FLOAT, [2])])
        require(False, "no")

    g = Growth(random.Random(0), 17, {}, 1)
    assert not g.attempt(hopeless, "Abs")
    assert (g.nodes, g.values, g.inputs, g.constants) == ([], [], [], [])
    assert g.rejected == ["no"]


def test_what_the_oracles_refuse_is_rejected():
    g = Growth(random.Random(0), 17, {}, 1)
    x, y = (g.new(TensorProto.FLOAT, [n]) for n in (2, 3))
    with pytest.raises(Reject, match="Add"):
        g.add("Add", [x, y])


@pytest.mark.parametrize("elem_type", TYPES)
def test_arrays_are_of_their_types(elem_type):
    for flavour in ("plain", "wide", "special"):
        made = random_array(random.Random(1), elem_type, (3, 50), flavour)
        assert made.shape == (3, 50)
        if flavour == "special" and is_float(made.dtype):
            assert np.isnan(made.astype(np.float64)).any()
