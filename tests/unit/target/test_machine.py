"""The machine model: sensible for every target, one value, and what threads leave to each other."""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from tests.expect import raises_code
from tilewright.schedule.recipes.contraction.cycles import contraction_cycles
from tilewright.schedule.recipes.contraction.space import ContractionShape, contraction_space
from tilewright.target import MachineModel, Target, names
from tilewright.target.machine import CALIBRATED, nominal


@pytest.mark.parametrize("name", [*names()[1:], "riscv64+v", "x86-64-v3,-fma", "aarch64+bf16"])
def test_nominal_figures_are_sensible_for_every_target(name):
    target = Target.named(name)
    model = nominal(target)
    assert MachineModel.from_dict(json.loads(json.dumps(model.to_dict()))) == model
    assert not model.measured
    full = model.vector("f32", target.vector_bytes)
    assert full is not None
    assert (full.per_cycle, full.latency) == (model.fma_per_cycle, model.fma_latency)
    rates = [v.per_cycle for v in model.vectors if v.dtype == "f32"]
    assert rates == sorted(rates, reverse=True)  # wider vectors are never more
    assert 0.5 <= model.shuffles <= 8
    assert model.step_cycles < model.barrier_cycles
    levels = [level.read for level in model.levels]
    assert levels == sorted(levels, reverse=True)
    assert model.shared_by(1) is model
    assert model.shared_by(4) == model  # nominal threads do not get in each other's way


def test_figures_are_found_and_replaced_by_name():
    model = nominal(Target.named("znver4"))
    values = {
        "shuffles": 2.0,
        "L2.read": 48.0,
        "f32x8.latency": 5.0,
        "transforms.serial": 2.6,
    }
    values["x86.avx512vnni.dot4.per_cycle"] = 2.0
    other = model.with_figures(values, CALIBRATED)
    assert {name: other.figure(name) for name in values} == values
    assert (other.source, other.measured) == (CALIBRATED, tuple(sorted(values)))
    assert other.digest != model.digest
    before = {name: model.figure(name) for name in values}
    back = replace(other.with_figures(before, model.source), measured=())
    assert back == model


@pytest.mark.parametrize("value", [0.0, -1.0, math.nan, math.inf, "fast", None, True])
@pytest.mark.parametrize("part", ["step_cycles", "shuffles", "vectors", "instructions", "levels"])
def test_nonsense_is_refused(part, value):
    data = nominal(Target.named("znver4")).to_dict()
    if isinstance(data[part], tuple):
        figure = "read_all" if part == "levels" else "per_cycle"
        first, *others = data[part]
        data[part] = [{**first, figure: value}, *others]
    else:
        data[part] = value
    with raises_code("T010"):
        MachineModel.from_dict(data)


@pytest.mark.parametrize("name", ["step_cycles", "shuffles", "vectors", "instructions", "measured"])
def test_a_model_of_an_older_version_is_refused_by_name(name):
    data = nominal(Target.named("znver4")).to_dict()
    del data[name]
    with raises_code("T010", text=name):
        MachineModel.from_dict(data)


def test_threads_that_share_memory_take_longer():
    target = Target.named("znver4")
    slower = nominal(target).with_figures({"DRAM.read_all": 1.0}, CALIBRATED)
    shape = ContractionShape(1, 64, 8192, 8192, 4, right_is_constant=True, threads=4)
    table = contraction_space(shape, target)
    alone, shared = (contraction_cycles(shape, m, table) for m in (nominal(target), slower))
    assert np.all(shared >= alone)
    assert shared.min() > 1.2 * alone.min()
    single = replace(shape, threads=1)
    table = contraction_space(single, target)
    same = [contraction_cycles(single, m, table) for m in (nominal(target), slower)]
    assert np.array_equal(*same)


@pytest.mark.parametrize("pitch", [0, 60, 64, 1024, 4096, 4096 * 3, 5120, 1 << 40])
def test_rows_conflict_as_counted_one_by_one(pitch):
    model = nominal(Target.named("znver4"))
    first = model.levels[0]
    sets = first.size_bytes // (first.line_bytes * first.ways)
    rows = np.arange(80)
    found = model.conflicts(pitch, rows)
    for row in rows.tolist():
        places = Counter(k * pitch // first.line_bytes % sets for k in range(row))
        beyond = [max(0, count - first.ways) ** 2 for count in places.values()]
        assert found[row] == pytest.approx(model.conflict_cycles * sum(beyond) if pitch else 0.0)


def test_more_rows_than_caches_hold_are_not_counted_one_by_one():
    model = nominal(Target.named("znver4"))
    many = np.array([1 << 12, 1 << 62])
    assert len(set(model.conflicts(4096, many).tolist())) == 1


def test_what_exceeds_all_caches_comes_from_memory():
    model = nominal(Target.named("znver4"))
    half = model.levels[-2].size_bytes / 2
    assert model.home_of(half) is model.levels[-2]
    assert model.home_of(half + 1) is model.memory


def test_a_stream_takes_no_less_than_its_bytes_from_caches_that_are_full_of_them():
    """Of several threads each reads its part; if all there are do so, they get in their way."""
    model = nominal(Target.named("znver4"))
    first, second, *_, memory = model.levels
    one = first.size_bytes / first.read
    assert model.least_stream_cycles(first.size_bytes) == one
    both = model.least_stream_cycles(second.size_bytes)
    assert both == pytest.approx(one + (second.size_bytes - first.size_bytes) / second.read)
    assert model.least_stream_cycles(2 * first.size_bytes, threads=2) == one
    far = 1e6 * model.levels[-2].size_bytes
    assert model.least_stream_cycles(far) == pytest.approx(far / memory.read, rel=1e-3)
    four = model.least_stream_cycles(far, threads=4, all_read=True)
    assert four == pytest.approx(far / 4 / memory.read_all, rel=1e-3)


def test_a_cache_that_keeps_a_part_of_what_exceeds_it():
    """Costs grow with the size from those of the last cache to those of memory, without a step."""
    model = replace(nominal(Target.named("znver4")), kept_share=1.0)
    last, memory = model.levels[-2:]
    half = last.size_bytes / 2
    homes = [model.home_of(half * times) for times in (1, 1.0001, 1.5, 2, 4, 1e6)]
    rates, exposed = [h.read for h in homes], [h.exposed for h in homes]
    assert rates == sorted(rates, reverse=True)
    assert exposed == sorted(exposed)
    assert (rates[1], exposed[1]) == pytest.approx((last.read, last.exposed), rel=1e-3)
    assert (rates[-1], exposed[-1]) == pytest.approx((memory.read, memory.exposed), rel=1e-3)
    both = 0.5 / last.read + 0.5 / memory.read
    assert 1 / rates[3] == pytest.approx(both)
