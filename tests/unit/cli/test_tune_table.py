"""The table of a tuner: it fits every screen, and says what is measured and what predicted."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.tuning import COPY, STATE, many
from tilewright.cli.tune_table import latency, painted, table_lines
from tilewright.tuning.events import State


def test_tasks_are_sorted_by_their_share_of_the_time():
    head, conv, fc, copy, empty, *below = table_lines(STATE, 100, 40)
    assert head.split() == ["task", "runs", "share", "draft", "µs", "best", "µs", "gain", "trials"]
    assert conv.split() == ["conv1", "relu1", "2", "60.0%", "800", "500", "1.60×", "40"]
    assert fc.split() == ["fc", "1", "30.0%", "90", "90", "1.00×", "12", "done"]
    assert copy.split() == ["copy", "3", "10.0%", "2", "-", "-", "0"]
    assert empty == ""
    assert below == [
        "loops, 52 trials (3 failed), 3 min 12 s so far, 6 min 48 s left",
        "model: 2 ms → 1.6 ms, 1.25 times as fast (measured), 1.5 ms predicted",
        "onnxruntime: 2.4 ms, 1.50 times as long as ours",
    ]


@pytest.mark.parametrize("height", [1, 5, 12, 30, 100])
@pytest.mark.parametrize("width", [39, 60, 79, 200])
def test_it_fits_the_screen(width, height):
    lines = table_lines(many(40), width, height)
    assert all(len(line) <= width for line in lines)
    assert len(lines) <= max(height, 7)
    rows = sum(line.startswith("task ") for line in lines) - 1
    rest = [line for line in lines if line.startswith("and ")]
    assert rest == [] if rows == 40 else rest[0].startswith(f"and {40 - rows} more, ")


def test_the_gain_is_the_last_column_to_go():
    assert table_lines(many(3), 28, 40)[0].split() == ["task", "best", "µs", "gain"]


def test_names_cannot_steer_the_terminal():
    state = replace(STATE, tasks=(replace(COPY, label="a\x1b[2J\nb"),))
    assert "a\\x1b[2J\\nb" in table_lines(state, 80, 20)[1]


@pytest.mark.parametrize(
    ("before", "now", "predicted", "text"),
    [
        (None, None, None, ""),
        (None, None, 3.0, "model: 3 ms (predicted)"),
        (2.0, None, None, "model: 2 ms"),
        (2.0, None, 1.0, "model: 2 ms → 1 ms, 2.00 times as fast (predicted)"),
        (2.0, 1.0, 1.001, "model: 2 ms → 1 ms, 2.00 times as fast (measured)"),
    ],
)
def test_latency_says_what_was_measured(before, now, predicted, text):
    assert latency(State("m", before_ms=before, now_ms=now, predicted_ms=predicted)) == text


def test_colours_are_for_what_was_gained():
    lines = table_lines(STATE, 100, 40)
    shown = painted(lines)
    assert "\x1b[32m1.60×\x1b[0m" in shown[1]
    assert "\x1b" not in shown[2]
    assert [line.replace("\x1b[0m", "") for line in shown if line.startswith("\x1b[1m")] == [
        f"\x1b[1m{lines[6]}"
    ]


def test_a_model_without_tasks_has_no_table():
    assert table_lines(State("m"), 80, 24) == ["0 trials, 0 s so far"]
