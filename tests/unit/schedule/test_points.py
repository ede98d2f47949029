"""Decisions as text and data, and how they leave a draft."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.pipeline import Pipeline
from tilewright.schedule import Schedule
from tilewright.schedule.points import data_of, decision_data, decision_text, point_of
from tilewright.schedule.recipes.contraction.space import ContractionPoint
from tilewright.schedule.recipes.recipe import Decision
from tilewright.schedule.recipes.scattered import ScatteredPoint
from tilewright.schedule.source import Workload
from tilewright.target import Target
from tilewright.tensor import library

HOST = Target.host()


class Sums:
    """A recipe whose cycles are ten for each sum."""

    name = "sums"
    point = ScatteredPoint

    def cycles(self, shape, machine, table):
        del shape, machine
        return np.asarray(10.0 * table["vectors"])


DECISION = Decision(Sums(), ("acc", "C"), (3, 4), ScatteredPoint(123), "acc")


class Decided:
    """A source that follows nothing and decides something."""

    digest = "decided"

    def digest_of(self, workload: Workload) -> str:
        del workload
        return self.digest

    def schedule(self, workload: Workload) -> Schedule:
        schedule = Schedule(workload.program)
        schedule.decisions.append(DECISION)
        return schedule


def test_decisions_say_recipe_shape_point_and_cycles():
    assert decision_text(DECISION, HOST.machine).splitlines() == [
        "acc, C: sums, 1,230 cycles predicted",
        "  (3, 4)",
        "  ScatteredPoint(vectors=123)",
    ]
    assert decision_data(DECISION, HOST.machine) == {
        "blocks": ["acc", "C"],
        "recipe": "sums",
        "shape": "(3, 4)",
        "point": ["scattered.ScatteredPoint", {"vectors": 123}],
        "cycles": 1230.0,
    }


def test_the_report_of_a_kernel_has_its_decisions():
    path = Pipeline(HOST, trace=Decided())
    path.run(library.matmul(4, 5, 6), until="scheduled")
    assert path.report.decisions == (DECISION,)


@pytest.mark.parametrize(
    "wrong", [3, ScatteredPoint, HOST.machine], ids=["number", "class", "other"]
)
def test_only_points_of_recipes_are_data(wrong):
    with pytest.raises(TypeError, match="no point of a recipe"):
        data_of(wrong)


def test_points_that_know_fewer_decisions_have_the_others_as_they_were():
    point = ContractionPoint(6, 2, 8, 4, 64, parallel=0)
    kind, values = data_of(point)
    older = {name: value for name, value in values.items() if name != "bias_in_panels"}
    assert point_of([kind, older]) == point
    with pytest.raises(ValueError, match="has the decisions"):
        point_of([kind, {name: value for name, value in values.items() if name != "tile_rows"}])
    with pytest.raises(ValueError, match="has the decisions"):
        point_of([kind, {**values, "later": 1}])
