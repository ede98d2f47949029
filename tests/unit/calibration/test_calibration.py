"""Calibration: the same model from disturbed measurements, kept where it belongs, and refused."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from dataclasses import replace

import pytest

from tests.expect import raises_code
from tilewright.calibration import kept, with_machine_model
from tilewright.calibration import model as module
from tilewright.calibration.figures import model_of
from tilewright.calibration.grid import on_grid
from tilewright.calibration.measure import Probe, best_seconds
from tilewright.calibration.model import calibrated
from tilewright.runtime.keys import compile_key
from tilewright.target import MachineModel, Target
from tilewright.target.machine import CALIBRATED, nominal

TARGET = Target.named("znver4")
CYCLE = 0.25e-9


def true_seconds(target=TARGET):
    """A machine of 4 GHz that is unlike its row: twice as many multiply-adds, slower memory."""
    cycles = {
        "addition chain": 1.0,
        "multiply-adds": 0.5,
        "multiply-add chain": 5.0,
        "element loads": 0.5,
        "vector stores": 1.0,
        "shared sets": 40_000.0,
        "own sets": 21_000.0,
        "short tiles": 16 * 8.0 + 12.0,
        "long tiles": 64 * 8.0 + 12.0,
    }
    for level, rate in zip(nominal(target).levels, (128, 41, 8.4, 3), strict=True):
        cycles[f"{level.name} one"] = 1 / rate
        cycles[f"{level.name} all"] = 1 / (rate * target.cores)
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
    for level, rate in zip(model.levels, (128, 41, 8.4, 3), strict=True):
        assert level.read == pytest.approx(rate, rel=0.2)
        assert level.read_all == pytest.approx(rate, rel=0.2)
    assert model.conflict_cycles == pytest.approx(19_000 / 1024 / 144, rel=0.2)


def test_a_figure_near_the_nominal_one_is_that():
    assert on_grid(23, 24) == on_grid(27.9, 24) == 24
    assert on_grid(47, 24) == on_grid(48, 24) != 24
    assert on_grid(0.011, 1.0) == pytest.approx(0.011, rel=0.1)


def test_a_model_is_kept_and_found_again(tmp_path):
    model = measured(0, noisy=False)
    assert kept.load(TARGET, tmp_path) is None
    kept.store(TARGET, model, tmp_path)
    assert kept.load(TARGET, tmp_path) == model
    assert kept.load(Target.named("znver3"), tmp_path) is None


@pytest.mark.parametrize(
    "damage",
    [
        lambda _: "{",
        lambda data: json.dumps({**data, "fingerprint": "of another one"}),
        lambda data: json.dumps({**data, "format": 0}),
        lambda data: json.dumps({**data, "model": {**data["model"], "ghz": 0}}),
        lambda data: json.dumps({**data, "model": {**data["model"], "fma_latency": -4}}),
        lambda data: json.dumps({**data, "model": {**data["model"], "levels": []}}),
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
    pair = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    assert [p.communicate()[0] for p in pair] == ["calibrated True\n"] * 2
    model = kept.load(Target.host(), tmp_path)
    assert model is not None
    assert model.source == CALIBRATED


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
    path.write_text("[]")
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
