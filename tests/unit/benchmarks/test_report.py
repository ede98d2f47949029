"""Ratios, means and marks of the benchmark report."""

from __future__ import annotations

import pytest

from benchmarks.report import Row, noisy, summary, table
from benchmarks.turns import Outcome
from benchmarks.workloads import Workload


def row(shape, threads=1, peak=(1.0, 1.0), **times):
    """Times in µs as (best, median), or a state."""
    outcomes = {
        name: Outcome(time) if isinstance(time, str) else ok(*time) for name, time in times.items()
    }
    outcomes["peak"] = Outcome("ok", min_s=peak[0], median_s=peak[1], flops=10**11)
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


def test_rows_are_noisy_when_the_peak_suffers_within_or_between_them():
    quiet, shaky, slow = (
        row((1, 1, 1), peak=(1.0, 1.05)),
        row((1, 1, 2), peak=(1.0, 1.3)),
        row((1, 1, 3), peak=(2.0, 2.0)),
    )
    assert noisy([quiet, shaky, slow]) == [shaky, slow]


def test_table_for_people(golden):
    assert golden == table(ROWS, ["tilewright", "numpy", "torch"])
