"""The models of the examples are models, and come out right."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

import tilewright as tw
from examples import models
from tilewright.contest.turns import distance


@pytest.mark.parametrize("make", [models.resnet18, models.transformer])
def test_models_are_well_formed_and_repeatable(make):
    model = make()
    onnx.checker.check_model(model, full_check=True)
    assert model.SerializeToString() == make().SerializeToString()


def test_a_small_transformer_is_right_for_several_sizes(rng):
    model = models.transformer(layers=1, width=32, heads=2, words=50)
    module = tw.compile(model, threads=2, cache=False)
    for shape in ((1, 5), (3, 16)):
        feeds = {"ids": rng.integers(0, 50, shape)}
        wanted = ReferenceEvaluator(model).run(None, feeds)
        assert distance(module.run(feeds), wanted) < 1e-5
        assert np.isfinite(wanted[0]).all()
