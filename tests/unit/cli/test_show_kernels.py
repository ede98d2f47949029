"""Rows of kernels: summed up, sorted, cut, and what the table says of them."""

from __future__ import annotations

import pytest

from tilewright.cli.show_kernels import arranged, kernels_text


def row(step, kernel, time_s, share=0.5, **more):
    facts = {"step": step, "label": f"/layer.{step}/Conv", "kernel": kernel, "time_s": time_s}
    work = {"times": 1, "steps": 1, "flops": 1000, "moved_bytes": 100, "parallel": False}
    limit = {"limit": "FMA", "limit_s": share * time_s, "share_of_limit": share}
    return {**facts, **work, **limit, **more}


ROWS = [row(0, 0, 1e-3), row(1, 1, 4e-3), row(2, 0, 2e-3, 1.5), row(3, 2, 3e-3)]


def steps(rows):
    return [found["step"] for found in rows]


def test_rows_come_as_they_run_unless_another_order_is_wanted():
    assert steps(arranged(ROWS, "step", None, None)) == [0, 1, 2, 3]
    assert steps(arranged(ROWS, "step", "time", None)) == [1, 3, 2, 0]
    assert steps(arranged(ROWS, "step", None, 2)) == [1, 3]
    assert steps(arranged(ROWS, "step", "step", 2)) == [0, 1]


def test_steps_of_a_kernel_are_summed_up():
    found = {group["kernel"]: group for group in arranged(ROWS, "kernel", None, None)}
    assert list(found) == [1, 0, 2]
    both = found[0]
    assert (both["steps"], both["flops"], both["moved_bytes"]) == (2, 2000, 200)
    assert both["time_s"] == pytest.approx(3e-3)
    assert both["share_of_limit"] == pytest.approx((0.5e-3 + 3e-3) / 3e-3)
    assert both["label"] == "/layer.2/Conv"  # of the step that takes longest


def test_the_table_names_its_statistic_and_what_it_leaves_out():
    text = kernels_text(ROWS, arranged(ROWS, "step", None, 1), "step", 7)
    assert "3 steps more: 6 ms, 60.0%" in text
    assert "time: median of 7 runs" in text
    assert "\nall: 10 ms, " in text


def test_more_than_the_limit_is_explained():
    text = kernels_text(ROWS, ROWS, "step", 3)
    assert "150% FMA" in text
    assert "above 100%: Winograd counts the operations of the direct convolution" in text
    assert "above 100%" not in kernels_text(ROWS[:2], ROWS[:2], "step", 3)


@pytest.mark.parametrize("columns", [50, 60, 80, 200])
def test_it_fits_the_screen(columns, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(columns))
    rows = [row(10, 3, 1e-3, label="/encoder" * 20), row(11, 4, 2e-6, times=12, flops=0)]
    for by in ("step", "kernel"):
        text = kernels_text(rows, arranged(rows, by, None, None), by, 50)
        assert max(map(len, text.splitlines())) <= columns
        assert "Conv" in text or "encoder" in text
