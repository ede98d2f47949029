"""A processor that is taken out of the table: what calibration finds does not depend on rows."""

from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks.without_row import WITH, WITHOUT, differences
from tests.unit.calibration.test_calibration import true_seconds
from tilewright.calibration.figures import model_of
from tilewright.target import Target
from tilewright.target.host import without_row


@pytest.mark.parametrize(
    ("cpu", "other"), [("znver4", "znver5"), ("znver3", "znver2"), ("skylake", "broadwell")]
)
def test_the_closest_other_row_takes_its_place(cpu, other):
    target = Target.named(cpu)
    bare = without_row(target)
    assert (bare.core_of, bare.core) == (other, Target.named(other).core)
    assert (bare.cpu, bare.features, bare.caches) == (cpu, target.features, target.caches)


@pytest.mark.parametrize("cpu", ["znver4", "znver3", "znver1", "icelake-client", "haswell"])
def test_a_calibrated_model_does_not_depend_on_the_row(cpu):
    target = Target.named(cpu)
    bare = without_row(target)
    models = {w: model_of(t, true_seconds(target)) for w, t in ((WITH, target), (WITHOUT, bare))}
    assert differences(models) == {"measured": {}, "nominal": {}}
    nominal = {WITH: target.machine, WITHOUT: bare.machine}
    same_core = replace(target, core=bare.core) == target
    assert (differences(nominal)["nominal"] == {}) == same_core
