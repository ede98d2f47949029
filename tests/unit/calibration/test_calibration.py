"""Calibration: the same model from disturbed measurements, kept where it belongs, and refused."""

from __future__ import annotations

import json
import math
import random
import subprocess
import sys
from dataclasses import replace

import pytest

from tests.expect import raises_code
from tilewright.calibration import kept, streams, with_machine_model
from tilewright.calibration import model as module
from tilewright.calibration.figures import model_of
from tilewright.calibration.grid import rounded, steady
from tilewright.calibration.measure import Probe, best_seconds
from tilewright.calibration.model import calibrated
from tilewright.runtime.keys import compile_key
from tilewright.target import MachineModel, Target
from tilewright.target.machine import CALIBRATED, nominal

TARGET = Target.named("znver4")
CYCLE = 0.25e-9
ARITHMETIC = [v.name for v in nominal(TARGET).vectors + nominal(TARGET).instructions]
RATES = {"L1": 128, "L2": 41, "L3": 8.4, "DRAM": 3}


@pytest.fixture(autouse=True)
def _all_cores(monkeypatch):
    """As on a machine of the target's kind."""
    monkeypatch.setattr(streams, "usable_cpus", lambda: TARGET.cores)


def true_seconds(target=TARGET):
    """A machine of 4 GHz that is unlike its row: twice as many multiply-adds, slower memory."""
    cycles = {
        "addition chain": 1.0,
        "element loads": 0.5,
        "vector stores": 1.0,
        "shuffles": 0.5,
        "shuffles chain": 1.0,
        "shared sets": 40_000.0,
        "own sets": 21_000.0,
        "short tiles": 16 * 8.0 + 12.0,
        "long tiles": 64 * 8.0 + 12.0,
        "panel from L1": 10_000.0,
        "panel from L2": 10_000.0 + 0.52 * 16384 / 41,
        "panels from L2": 9_000.0,
        "panels from L3": 9_000.0 + 0.74 * 16384 / 8.4,
        "panels from DRAM": 9_000.0 + 0.97 * 16384 / 3,
        "rows from L1": 4_000.0,
        "rows from L2": 4_000.0 + 0.5 * 72 * 48 * 4 / 41,
        "fetched near": 0.5,
        "fetched far": 0.5 + 0.52 / 8.4,
        "sums once": 600_000.0,
        "sums twice": 8_000_000.0,
        "step": 300.0,
        "meeting of 1": 2_000.0,
        "meeting of 2": 20_000.0,
        "meeting of 4": 100_000.0,
        "transform": 14.0,
        "exceeded one": 1 / 3 - 0.26 * (1 / 3 - 1 / 8.4),
    }
    for rate in nominal(target).vectors:
        cycles[rate.name] = 0.5
        cycles[f"{rate.name} chain"] = 5.0
    for instruction in nominal(target).instructions:
        cycles[instruction.name] = 0.34
        cycles[f"{instruction.name} chain"] = 7.0
    for name, rate in RATES.items():
        cycles[f"{name} one"] = 1 / rate
        cycles[f"{name} all"] = 1 / (rate * target.cores * (0.4 if name == "DRAM" else 0.9))
    return {name: CYCLE * value for name, value in cycles.items()}


class FakeClock:
    """Time that passes only while probes run; a third of their turns take twice as long."""

    def __init__(self, seed, *, noisy):
        self.now, self.noisy, self.random = 0.0, noisy, random.Random(seed)

    def __call__(self):
        return self.now

    def probe(self, seconds, units):
        def run(turns):
            disturbed = self.noisy and self.random.random() < 1 / 3
            drift = 1 + 0.02 * self.random.random()
            self.now += turns * units * seconds * drift * (2 if disturbed else 1)

        return Probe(run, units)


def measured(seed, *, noisy):
    clock = FakeClock(seed, noisy=noisy)
    probes = {name: clock.probe(s, 1e-6 / s / 7) for name, s in true_seconds().items()}
    return model_of(TARGET, best_seconds(probes, clock))


@pytest.mark.parametrize("seed", range(20))
def test_noise_does_not_change_the_model(seed):
    assert measured(seed, noisy=True) == measured(0, noisy=False)


def test_figures_are_those_of_the_machine():
    model = measured(0, noisy=True)
    assert model.source == CALIBRATED
    assert model.ghz == pytest.approx(4, rel=0.1)
    assert (model.fma_per_cycle, model.fma_latency) == (2, 5)
    assert (model.element_loads, model.vector_stores, model.vector_loads) == (2, 1, 2)
    assert (model.shuffles, model.tile_cycles) == (2, 16)
    for level, rate in zip(model.levels, RATES.values(), strict=True):
        assert level.read == pytest.approx(rate, rel=0.25)
        every = 0.4 * rate if level.name == "DRAM" else rate
        assert level.read_all == pytest.approx(every, rel=0.25)
    assert model.conflict_cycles == pytest.approx(19_000 / 1024 / 144, rel=0.5)


def test_figures_of_kernels_are_those_of_the_machine():
    model = measured(0, noisy=True)
    assert [level.exposed for level in model.levels] == [0.0, 0.5, 0.75, 1.0]
    assert (model.refill_exposed, model.fetched_exposed) == (0.5, 0.5)
    assert model.barrier_cycles == 8 * nominal(TARGET).barrier_cycles  # of all cores, not of two
    assert model.step_cycles == 4 * nominal(TARGET).step_cycles
    assert model.scattered == pytest.approx(14.8, rel=0.7)
    assert model.transforms.serial == pytest.approx(1.3 * 1.6**2)  # two steps of its grid
    assert model.kept_share == 0.5


def test_ports_that_work_at_once_make_transforms_short():
    seconds = true_seconds() | {"transform": 2.5 * CYCLE}
    assert model_of(TARGET, seconds).transforms.serial == pytest.approx(1.3 / 1.6**2)


@pytest.mark.parametrize(("rate", "kept"), [(3.0, 0.0), (3.1, 0.0), (7.0, 1.0), (8.4, 1.0)])
def test_the_last_cache_keeps_all_that_counts_or_nothing(rate, kept):
    seconds = true_seconds() | {"exceeded one": CYCLE / rate}
    assert model_of(TARGET, seconds).kept_share == kept


def test_cores_that_share_little_more_than_one_reads_alone():
    seconds = true_seconds()
    seconds["DRAM all"] = seconds["DRAM one"] / 2.4  # of four cores
    assert model_of(TARGET, seconds).memory.read_all == pytest.approx(0.6 * 3, rel=0.25)


def test_memory_that_is_as_fast_as_a_cache_says_nothing_of_it():
    seconds = true_seconds()
    seconds["DRAM one"] = seconds["exceeded one"] = seconds["L3 one"]
    assert "kept_share" not in model_of(TARGET, seconds).measured


def test_arithmetic_is_measured_by_type_width_and_instruction():
    model = measured(0, noisy=True)
    assert {v.dtype for v in model.vectors} == {"f32", "f64"}
    assert all((v.per_cycle, v.latency) == (2, 5) for v in model.vectors)
    assert model.vector("f32", 16).name == "f32x4"
    assert model.vector("f16", 64) is None
    dot = model.instruction("x86.avx512vnni.dot4")
    assert (dot.per_cycle, dot.latency, dot.products) == (3, 7, 64)
    assert model.instruction("x86.amx.i8") is None


def test_what_was_not_measured_stays_nominal_and_says_so():
    seconds = true_seconds()
    del seconds["shuffles"], seconds["panels from L3"], seconds["x86.avx2.dot2"]
    model, base = model_of(TARGET, seconds), nominal(TARGET)
    assert model.shuffles == base.shuffles
    assert model.level(3).exposed == base.level(3).exposed
    assert model.instruction("x86.avx2.dot2") == base.instruction("x86.avx2.dot2")
    left_out = {"shuffles", "L3.exposed", "x86.avx2.dot2.per_cycle"}
    assert left_out.isdisjoint(model.measured)
    assert left_out < set(measured(0, noisy=False).measured)
    assert not base.measured


def test_a_stream_longer_than_its_arithmetic_tells_nothing():
    seconds = true_seconds() | {"panels from L2": CYCLE * 1_000.0}
    assert "DRAM.exposed" not in model_of(TARGET, seconds).measured


def test_figures_on_their_grids():
    base = nominal(TARGET)
    values = {"L2.read": 28.0, "fma_per_cycle": 1.9, "fma_latency": 3.9, "L3.exposed": 0.35}
    values |= {"scattered": 2.4, "ghz": 3.64}
    found = {
        "L2.read": 24,
        "fma_per_cycle": 2,
        "fma_latency": 4,
        "L3.exposed": base.level(3).exposed,
    }
    assert rounded(values, base) == {**found, "scattered": 1.5, "ghz": 4}
    assert rounded({"L2.read": 47.0}, base) == rounded({"L2.read": 60.0}, base) == {"L2.read": 54}


def test_a_figure_that_moves_by_a_step_stays_what_it_was():
    kept_before = measured(0, noisy=False)
    moved = {"L2.read": 24.0, "L2.exposed": 0.25, "scattered": 6.0, "fma_latency": 5.0}
    values = {n: kept_before.figure(n) for n in kept_before.measured} | moved
    assert steady(kept_before.with_figures(values, CALIBRATED), kept_before) == kept_before
    other = kept_before.with_figures({**values, "L2.read": 12.0, "fma_latency": 4.0}, CALIBRATED)
    settled = steady(other, kept_before)
    assert (settled.level(2).read, settled.fma_latency) == (12.0, 4.0)
    assert settled.level(2).exposed == kept_before.level(2).exposed


def test_measuring_anew_keeps_the_digest(tmp_path, monkeypatch):
    before = measured(0, noisy=False)
    kept.store(TARGET, before, tmp_path)
    nearby = {n: before.figure(n) for n in before.measured} | {"L3.read": 12.0}
    found = before.with_figures(nearby, CALIBRATED)
    monkeypatch.setattr(module, "measured_model", lambda _: found)
    told = []
    again = calibrated(TARGET, tmp_path, lambda: told.append(1), anew=True)
    assert (again.machine.digest, told) == (before.digest, [1])
    assert kept.load(TARGET, tmp_path) == before


def test_one_line_says_why_the_first_compilation_waits(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(module, "measured_model", lambda _: measured(0, noisy=False))
    calibrated(TARGET, tmp_path)
    calibrated(TARGET, tmp_path)
    assert [r.getMessage() for r in caplog.records if r.name == "tilewright"] == [
        "tilewright measures this machine, once, for about 2 seconds"
    ]


def test_a_model_is_kept_and_found_again(tmp_path):
    model = measured(0, noisy=False)
    assert kept.load(TARGET, tmp_path) is None
    kept.store(TARGET, model, tmp_path)
    assert kept.load(TARGET, tmp_path) == model
    assert kept.load(Target.named("znver3"), tmp_path) is None


def without(data, name):
    """As an older version wrote it."""
    return {key: value for key, value in data.items() if key != name}


@pytest.mark.parametrize(
    "damage",
    [
        lambda _: "{",
        lambda data: json.dumps({**data, "fingerprint": "of another one"}),
        lambda data: json.dumps({**data, "format": 0}),
        lambda data: json.dumps({**data, "model": {**data["model"], "ghz": 0}}),
        lambda data: json.dumps({**data, "model": {**data["model"], "fma_latency": -4}}),
        lambda data: json.dumps({**data, "model": {**data["model"], "levels": []}}),
        lambda data: json.dumps({**data, "model": {**data["model"], "shuffles": math.nan}}),
        lambda data: json.dumps({**data, "model": without(data["model"], "step_cycles")}),
        lambda data: json.dumps({**data, "model": without(data["model"], "instructions")}),
        lambda data: json.dumps({**data, "model": {**data["model"], "vectors": [{"dtype": 4}]}}),
        lambda _: json.dumps([1, 2]),
    ],
)
def test_what_cannot_be_used_is_measured_anew(tmp_path, monkeypatch, damage):
    model = measured(0, noisy=False)
    path = kept.store(TARGET, model, tmp_path)
    path.write_text(damage(json.loads(path.read_text())))
    monkeypatch.setattr(module, "measured_model", lambda _: model)
    told = []
    found = calibrated(TARGET, tmp_path, lambda: told.append(1))
    assert found.machine == model
    assert told == [1]
    assert kept.load(TARGET, tmp_path) == model


def test_a_folder_that_cannot_be_written_is_no_obstacle(tmp_path, monkeypatch):
    model = measured(0, noisy=False)
    monkeypatch.setattr(module, "measured_model", lambda _: model)
    (tmp_path / "file").write_text("")
    assert calibrated(TARGET, tmp_path / "file").machine == model


def test_the_real_machine_is_calibrated_by_two_processes_at_once(tmp_path):
    script = """
import sys
from pathlib import Path
from tilewright.calibration import calibrated
from tilewright.target import Target
model = calibrated(Target.host(), Path(sys.argv[1])).machine
print(model.source, model.fma_per_cycle > 0)
"""
    command = [sys.executable, "-c", script, str(tmp_path)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    pair = [subprocess.Popen(command, **pipes) for _ in range(2)]
    printed = [p.communicate() for p in pair]
    assert [out for out, _ in printed] == ["calibrated True\n"] * 2
    assert sum(error.count("measures this machine") for _, error in printed) == 1
    model = kept.load(Target.host(), tmp_path)
    assert model is not None
    assert model.source == CALIBRATED
    missing = set(measured(0, noisy=False).measured) - set(model.measured)
    # What this machine does not have, and what its streams are too slow to tell.
    own = {f"{name}.{figure}" for name in ARITHMETIC for figure in ("per_cycle", "latency")}
    beyond = {f"{level}.exposed" for level in RATES}
    alone = {"barrier_cycles"} if Target.host().cores == 1 else set()
    assert missing <= own | beyond | alone


def test_a_process_that_never_ends_is_not_waited_for(tmp_path, monkeypatch):
    monkeypatch.setattr(kept, "MOST_SECONDS", 0.1)
    model = measured(0, noisy=False)
    monkeypatch.setattr(module, "measured_model", lambda _: model)
    with kept.alone(TARGET, tmp_path):
        assert calibrated(TARGET, tmp_path).machine == model


def test_the_environment_says_which_model(tmp_path, monkeypatch):
    host = Target.host()
    model = replace(nominal(host), ghz=1.25)
    monkeypatch.setenv("TILEWRIGHT_MACHINE", "nominal")
    assert with_machine_model(host).model is None
    path = tmp_path / "model.json"
    path.write_text(json.dumps(model.to_dict()))
    monkeypatch.setenv("TILEWRIGHT_MACHINE", str(path))
    assert with_machine_model(host).machine == model
    other = Target.named("aarch64")
    assert with_machine_model(other) is other
    for wrong in ([], without(model.to_dict(), "shuffles"), model.to_dict() | {"step_cycles": -1}):
        path.write_text(json.dumps(wrong))
        with raises_code("T010"):
            with_machine_model(host)
    monkeypatch.setenv("TILEWRIGHT_MACHINE", str(tmp_path / "not there"))
    with raises_code("T010", text="not there"):
        with_machine_model(host)


def test_the_model_is_part_of_keys():
    model = measured(0, noisy=False)
    keys = {
        compile_key(["a"], TARGET, {}),
        compile_key(["a"], replace(TARGET, model=model), {}),
        compile_key(["a"], replace(TARGET, model=replace(model, ghz=1.5)), {}),
    }
    assert len(keys) == 3
    assert replace(TARGET, model=model) != TARGET
    assert model.digest != replace(model, tile_cycles=7.0).digest
    assert MachineModel.from_dict(json.loads(json.dumps(model.to_dict()))) == model
