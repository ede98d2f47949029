"""Which machines may build and measure for this one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tilewright.records.record import target_key
from tilewright.target import Target
from tilewright.tuning.measure.fingerprint import fingerprint, problem_of


def test_this_machine_has_no_problem():
    found = fingerprint()
    assert found.key == target_key(Target.host())
    assert found.processors >= 1
    assert problem_of(found) == ""


@pytest.mark.parametrize("about", [{"tilewright": "9.9"}, {"records": 99}, {"llvm": "0.1"}])
def test_another_version_makes_other_kernels_of_a_point(about):
    here = fingerprint()
    there = replace(here, versions=replace(here.versions, **about))
    assert ("llvmlite 0.1" if "llvm" in about else "it has tilewright") in problem_of(there)
