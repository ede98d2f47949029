"""Ratios, means and marks of the benchmark report."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import pytest

from benchmarks.quiet import Clock
from benchmarks.report import Row, summary, table
from benchmarks.turns import Outcome
from benchmarks.workloads import Workload


def row(shape, threads=1, **times):
    """Times in µs as (best, median), or a state."""
    outcomes = {
        name: Outcome(time) if isinstance(time, str) else ok(*time) for name, time in times.items()
    }
    outcomes["peak"] = Outcome("ok", min_s=1.0, median_s=1.0, flops=10**11)
    peers = frozenset({"numpy", "torch"} & outcomes.keys())
    return Row(Workload("matmul", "matmul", shape), threads, outcomes, peers)


def ok(best, median):
    return Outcome("ok", min_s=best * 1e-6, median_s=median * 1e-6)


ROWS = [
    row((100, 100, 100), tilewright=(25, 40), numpy=(50, 60), torch=(75, 76)),
    row((200, 200, 200), tilewright=(400, 400), numpy=(300, 300), torch="wrong"),
    row((10, 10, 10), threads=2, tilewright="gone", numpy=(1, 1), torch=(2, 2)),
]


def test_ratio_compares_with_the_best_peer():
    assert ROWS[0].best_peer() == ("numpy", pytest.approx(50e-6))
    assert ROWS[0].ratio() == pytest.approx(2.0)
    assert ROWS[0].ratio("median_s") == pytest.approx(1.5)
    assert ROWS[1].ratio() == pytest.approx(0.75)
    assert ROWS[2].ratio() is None


def test_share_of_peak_uses_the_peak_of_the_same_row():
    assert ROWS[0].peak_gflops() == pytest.approx(100)
    assert ROWS[0].share_of_peak("tilewright") == pytest.approx(2e6 / 25e-6 / 1e9 / 100)


def test_summary_gives_geometric_means_and_the_worst():
    one, two = summary(ROWS)
    assert one["geomean_min"] == pytest.approx((2.0 * 0.75) ** 0.5)
    assert one["geomean_median"] == pytest.approx((1.5 * 0.75) ** 0.5)
    assert one["worst"] == {"ratio": pytest.approx(0.75), "workload": "matmul 200x200x200"}
    assert (two["compared"], two["geomean_min"], two["worst"]) == (0, None, None)


def test_rows_are_noisy_when_others_used_the_machine():
    rows = [replace(ROWS[0], foreign_cpus=0.05), replace(ROWS[1], foreign_cpus=0.4)]
    assert [row.is_noisy for row in rows] == [False, True]
    assert "during 1 of 2 rows: no claim" in table(rows, ["numpy"])
    assert rows[1].to_dict()["noisy"]


def test_foreign_time_is_what_is_not_our_own():
    start = Clock(wall=10.0, busy=100.0, own=50.0)
    assert Clock(wall=12.0, busy=103.0, own=52.0).foreign_since(start) == pytest.approx(0.5)
    assert Clock(wall=12.0, busy=102.0, own=52.1).foreign_since(start) == 0.0
    assert start.foreign_since(start) == 0.0


def test_clock_counts_running_and_ended_children():
    spin = [sys.executable, "-c", "import time\nwhile time.process_time() < 0.2: pass"]
    start = Clock.read([])
    subprocess.run(spin, check=True)
    with subprocess.Popen(
        [*spin[:2], spin[2] + "\nimport sys; print(flush=True); sys.stdin.read()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as child:
        child.stdout.readline()
        own = Clock.read([child.pid]).own - start.own
        child.stdin.close()
    assert own >= 0.35


def test_lost_variants_are_told_once():
    losing = Outcome("ok", min_s=1e-6, median_s=1e-6, lost_variants=("packed: not there",))
    rows = [Row(ROWS[0].workload, n, {"torch": losing}, frozenset({"torch"})) for n in (1, 2)]
    assert table(rows, ["torch"]).count("torch ran without packed: not there") == 1


def convolution(op, shape, **times):
    return replace(row((1, 1, 1), **times), workload=Workload("conv", op, shape))


CONVOLUTIONS = [
    convolution("conv2d", (56, 64, 64, 1, 1, 0), tilewright=(250, 250), torch=(500, 500)),
    convolution("transposed", (4, 512, 256, 4, 2, 1), tilewright=(500, 500), torch=(250, 250)),
]


def test_convolutions_are_summarized_by_family():
    means = {item["group"]: item["geomean_min"] for item in summary([*ROWS[:1], *CONVOLUTIONS])}
    assert means == pytest.approx(
        {
            "matmul": 2.0,
            "conv": 1.0,
            **dict.fromkeys(("conv resnet18", "conv resnet50-1x1", "conv C2D", "conv DIL"), 2.0),
            "conv T2D": 0.5,
        }
    )


def test_convolutions_have_speeds_in_a_table_of_their_own():
    text = table([*CONVOLUTIONS, ROWS[0]], ["tilewright", "torch"])
    times, speeds, *_ = text.split("\n\n")
    assert "matmul" in times
    assert "conv2d" not in times
    assert speeds.splitlines()[1].split()[:6] == [
        *("conv2d", "56x64x64x1x1x0", "(C3)", "1"),
        *("102.8", "51.4"),
    ]
    assert "convolutions: GFLOP/s" in text


def test_table_for_people(golden):
    assert golden == table(ROWS, ["tilewright", "numpy", "torch"])
