"""Who watches a tuner: drawn in place on terminals, lines in logs, nothing that breaks either."""

from __future__ import annotations

import io
import json
import warnings

import pytest

from tests.tuning import STATE, events
from tilewright.cli.tune_watch import JsonLines, Lines, LiveTable, Watcher, watcher_for
from tilewright.tuning.events import Event


class Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


class AsciiTerminal(Terminal):
    encoding = "ascii"


@pytest.fixture(autouse=True)
def _screen(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "90")
    monkeypatch.setenv("LINES", "30")
    monkeypatch.delenv("NO_COLOR", raising=False)


def clock(*times):
    left = list(times)
    return lambda: left.pop(0)


def test_the_table_is_drawn_in_its_place_and_gone_at_the_end():
    stream = Terminal()
    with LiveTable(stream, clock(0.0, 1.0)) as table:
        table(Event("begin", STATE))
        first = stream.getvalue()
        table(Event("trial", STATE, 0, "ok"))
    lines = first.count("\n")
    text = stream.getvalue()
    assert lines == 8
    assert first.startswith("\x1b[2K")
    assert text[len(first) :].startswith(f"\x1b[{lines}F\x1b[2K")
    assert text.endswith(f"\x1b[{lines}F\x1b[J")


def test_it_is_not_drawn_more_often_than_people_see():
    stream = Terminal()
    table = LiveTable(stream, clock(*(k / 100 for k in range(101))))
    for _ in range(101):
        table(Event("trial", STATE, 0, "ok"))
    assert stream.getvalue().count("task ") <= 6
    assert table.outcomes == {"ok": 101}


def test_the_end_is_always_drawn():
    stream = Terminal()
    table = LiveTable(stream, clock(0.0, 0.01))
    table(Event("begin", STATE))
    table(Event("end", STATE))
    assert stream.getvalue().count("task ") == 2


def test_without_colours_if_nobody_wants_them(monkeypatch):
    stream = Terminal()
    LiveTable(stream)(Event("begin", STATE))
    assert "\x1b[32m" in stream.getvalue()
    monkeypatch.setenv("NO_COLOR", "1")
    stream = Terminal()
    LiveTable(stream)(Event("begin", STATE))
    assert "m" not in {code[-1] for code in stream.getvalue().split("\x1b")[1:] if code}
    assert "\x1b[32m" not in stream.getvalue()


def test_terminals_that_have_ascii_alone(monkeypatch):
    monkeypatch.setenv("COLUMNS", "44")
    monkeypatch.setenv("NO_COLOR", "1")
    stream = AsciiTerminal()
    LiveTable(stream)(Event("begin", STATE))
    text = stream.getvalue()
    assert text.isascii()
    assert "1.60x" in text
    assert all(len(line.removeprefix("\x1b[2K")) <= 43 for line in text.splitlines())


def test_warnings_stand_above_the_table():
    stream, said = Terminal(), []
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = lambda *_, **__: said.append(stream.getvalue()[-7:])
        with LiveTable(stream, clock(0.0)) as table:
            table(Event("begin", STATE))
            warnings.warn("careful", stacklevel=1)
        outside = warnings.showwarning
    assert said == ["\x1b[8F\x1b[J"]
    assert stream.getvalue().count("task ") == 2
    assert outside is not table._show_warning


def test_logs_get_a_line_every_ten_seconds():
    stream = io.StringIO()
    lines = Lines(stream, clock(0.0, 1.0, 5.0, 10.5, 11.0, 12.0))
    for event in events():
        lines(event)
    text = stream.getvalue().splitlines()
    assert len(text) == 4  # the begin, a trial after ten seconds, the model, the end
    assert text[0] == "tune net.onnx: loops, 0 trials, 0 s so far, 6 min 48 s left; 2 ms"
    assert text[-1].endswith("2 ms → 1.6 ms, 1.25 times as fast (measured), 1.5 ms predicted")


def test_programs_get_every_event_as_a_line(capsys):
    watcher = JsonLines()
    for event in events():
        watcher(event)
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["event"] for row in rows] == ["begin", *["trial"] * 3, "model", "end"]
    assert [len(row["state"]["tasks"]) for row in rows] == [3, 1, 1, 1, 3, 3]
    assert rows[1]["outcome"] == "ok"
    assert rows[1]["state"]["tasks"][0]["task"] == rows[1]["task"] == 1
    assert rows[1]["state"]["tasks"][0]["gain"] == 1.6
    assert rows[-1]["state"]["peers_ms"] == {"onnxruntime": 2.4}


def test_who_watches_depends_on_who_reads(monkeypatch):
    def kind(stream, **wishes):
        wanted = {"is_json": False, "is_quiet": False, **wishes}
        return type(watcher_for(**wanted, stream=stream))

    assert kind(Terminal()) is LiveTable
    assert kind(io.StringIO()) is Lines
    assert kind(Terminal(), is_json=True) is JsonLines
    assert kind(Terminal(), is_quiet=True) is Watcher
    monkeypatch.setenv("TERM", "dumb")
    assert kind(Terminal()) is Lines
