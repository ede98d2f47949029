"""Every kind of kernel for every instruction-set level that this machine can execute."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

import tilewright as tw
from tests.numeric import convolution_cases
from tests.numeric.accuracy_cases import cases, factor_of
from tests.numeric.convolution_cases import Convolution, Layer, square
from tests.numeric.kernel_kinds import samples
from tests.onnx.beside_ort import assert_alike, onnxruntime_results
from tilewright.schedule import draft as drafts
from tilewright.schedule.recipes import recipe as recipes
from tilewright.schedule.recipes.context import Context
from tilewright.schedule.recipes.grouping import Group
from tilewright.testing.accuracy import limit, rounding

SAMPLES = samples()
JUDGED = {case.op: case for case in reversed([*cases()])}
"""The first case of each operator in the table of tolerances."""

LAYERS = {
    "small": (square(3, 4), 32, 10),
    "in blocks of tiles": (square(3, 4), 32, 64),
    "strided": (Layer((5, 3), (4, 4), (2, 1)), 24, 15),
    "transposed": (Layer((4, 4), (4, 4), (2, 2), transposed=True), 8, 12),
    "direct": (square(3), 24, 15),
    "depthwise": (Layer((3, 3), groups=24), 24, 15),
}
"""Winograd's algorithm whether it pays or not, and direct ones: a layer, its channels, a side."""

FOLLOWED = {"contraction", "contraction in parts", "windows over channels", "windows along lines"}
"""Recipes that are followed by a point, by name."""

RECIPES = {name for name in vars(drafts) if name.startswith("schedule_")} | FOLLOWED
CHANNELS_LAST = {"schedule_choices", "schedule_tiles", "windows over channels"}
"""What `LAYERS` need; all others are those of `SAMPLES`."""


@pytest.fixture
def applied(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each recipe was applied; those that find nothing to do are not counted."""
    counts: Counter[str] = Counter()

    def watched(name: str) -> Any:
        recipe = getattr(drafts, name)

        def run(*arguments: Any) -> Any:
            result = recipe(*arguments)
            counts[name] += name != "schedule_attentions" or bool(result)
            return result

        return run

    def follow(recipe: Any, context: Context, group: Group) -> bool:
        done = recipes.follow(recipe, context, group)
        own = [d for d in context.decisions if d.recipe is recipe][-1:] if done else ()
        for decision in own:
            counts[recipe.name] += 1
            counts[f"{recipe.name} in parts"] += getattr(decision.point, "parts", 1) > 1
        return done

    for name in RECIPES - FOLLOWED:
        monkeypatch.setattr(drafts, name, watched(name))
    monkeypatch.setattr(drafts, "follow", follow)
    return counts


@pytest.mark.usefixtures("parallel_at_once")
def test_every_kind_of_kernel(level, applied):
    for name, sample in SAMPLES.items():
        module = tw.compile(sample.model, target=level, threads=2, cache=False)
        wanted = onnxruntime_results(sample.model, sample.feeds)
        for found, expected in zip(module.run(dict(sample.feeds)), wanted, strict=True):
            try:
                assert_alike(found, expected, steps=sample.steps)
            except AssertionError as problem:
                raise AssertionError(f"{name}: {problem}") from None
    assert {*+applied} >= RECIPES - CHANNELS_LAST


def test_every_algorithm_of_convolutions(level, applied):
    for name, (layer, channels, side) in LAYERS.items():
        weights = convolution_cases.normal_weights(layer, channels, 24)
        kernel, limits = Convolution(weights, layer, side, level), rounding(layer.tiles)
        x = convolution_cases.picture(np.random.default_rng(5), kernel.shape)
        largest, mean = convolution_cases.errors(kernel(x), kernel.exact(x))
        assert largest <= limits.largest, name
        assert mean <= limits.mean, name
    assert {*+applied} >= CHANNELS_LAST


@pytest.mark.parametrize("op", JUDGED)
def test_every_operator_is_within_the_table(op, level):
    case = JUDGED[op]
    module = tw.compile(case.model(), target=level, cache=False, threads=1)
    (found,) = module.run(dict(case.inputs))
    assert case.error(found, factor_of(module.graph)) <= limit(case.family)
