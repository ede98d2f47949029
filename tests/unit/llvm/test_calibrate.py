"""The measuring kernels do what they claim; how fast they are is nobody's promise here."""

from __future__ import annotations

import gc
import math

import numpy as np
import pytest

from tests.expect import raises_code
from tilewright.llvm.calibrate import Team, calibrated, measure
from tilewright.llvm.probes import FMA_STEPS, compile_probes, fma_accumulators
from tilewright.target import Bandwidth, Measured, Rate, Target, names
from tilewright.target.measured import load

HOST = Target.host()


@pytest.fixture(scope="module")
def probes():
    return compile_probes(HOST)


def aligned(values, fill):
    """`values` floats at an address that is a multiple of the vector size."""
    memory = np.full(values + 16, fill, "f4")
    start = -memory.ctypes.data % 64 // 4
    return memory[start : start + values]


def test_fma_loop_computes_what_it_counts(probes):
    lanes, count, turns = HOST.lanes(4), fma_accumulators(HOST), 3
    data = np.full((HOST.vector_registers + 2, lanes), 0.5, "f4")
    data[count], data[count + 1] = 0.75, 0.25
    probes.fma(turns, data.ctypes.data)
    expected = 0.5
    for _ in range(turns * FMA_STEPS):
        expected = np.float32(expected * 0.75 + 0.25)
    assert np.allclose(data[:count], expected, rtol=1e-6)
    assert probes.fma_flops == 2 * lanes * count * FMA_STEPS


def test_probes_keep_their_code():
    """A function that is taken out of the probes works when nothing else of them is left."""
    fma = compile_probes(HOST).fma
    gc.collect()
    data = np.full((HOST.vector_registers + 2, HOST.lanes(4)), 0.5, "f4")
    fma(1, data.ctypes.data)
    assert data[0, 0] != 0.5


@pytest.mark.parametrize("repeats", [1, 3])
def test_streams_walk_exactly_their_bytes(probes, repeats):
    floats = 3 * probes.step_bytes // 4
    a, b, c = (aligned(floats + 64, fill) for fill in (0, 3, 8))
    addresses = [array.ctypes.data for array in (a, b, c)]
    probes.streams["copy"](repeats, 4 * floats, *addresses)
    assert (a[:floats] == 3).all()
    assert (a[floats:] == 0).all()
    probes.streams["triad"](repeats, 4 * floats, *addresses)
    assert (a[:floats] == 7).all()
    assert (a[floats:] == 0).all()
    assert (b == 3).all()
    assert (c == 8).all()


def test_read_stream_reads_everything(probes):
    floats = 4 * probes.step_bytes // 4
    a, b = aligned(floats, 0), aligned(floats, 1)
    a[-1] = 5.0  # the fold is an exclusive or, so that one value shows up alone
    probes.streams["read"](1, 4 * floats, a.ctypes.data, b.ctypes.data, b.ctypes.data)
    assert max(b[: probes.step_bytes // 4]) == 5.0


@pytest.mark.parametrize("name", names())
def test_accumulators_fit_the_registers(name):
    target = Target.named(name)
    assert target.accumulators <= fma_accumulators(target) <= target.vector_registers - 3


def test_team_runs_every_piece_of_work():
    seen = []
    with Team(3) as team:
        elapsed = team.time([lambda i=i: seen.append(i) for i in range(3)])
    assert sorted(seen) == [0, 1, 2]
    assert elapsed > 0


def test_measure_gives_a_figure_for_every_level():
    measured = measure(HOST)
    levels = [f"L{cache.level}" for cache in HOST.caches] + ["DRAM"]
    assert [found.level for found in measured.bandwidth] == levels
    rates = [measured.fma_gflops]
    rates += [rate for b in measured.bandwidth for rate in (b.read, b.copy, b.triad)]
    assert all(math.isfinite(rate.one) and rate.one > 0 and rate.all > 0 for rate in rates)


def pretend(monkeypatch, one, together):
    """What measuring will find; the function returned tells how often it was asked."""
    asked = []

    def found(target):
        asked.append(target)
        rate = Rate(one, together)
        return Measured(rate, (Bandwidth("DRAM", rate, rate, rate),))

    monkeypatch.setattr("tilewright.llvm.calibrate.measure", found)
    return lambda: len(asked)


def test_calibrated_measures_once(tmp_path, monkeypatch):
    times = pretend(monkeypatch, one=100.0, together=99.0 * HOST.cores)
    target = calibrated(HOST, tmp_path)
    assert target.measured == load(HOST, tmp_path)
    assert calibrated(HOST, tmp_path).measured == target.measured
    assert times() == 1
    assert target == HOST


def test_figures_of_a_busy_machine_are_not_kept(tmp_path, monkeypatch):
    times = pretend(monkeypatch, one=100.0, together=50.0 * HOST.cores)
    assert calibrated(HOST, tmp_path).measured.fma_gflops.one == 100.0
    assert load(HOST, tmp_path) is None
    calibrated(HOST, tmp_path)
    assert times() == 2


def test_measure_rejects_code_for_another_machine():
    with raises_code("T004"):
        measure(Target.named("riscv64" if HOST.arch != "riscv64" else "aarch64"))
