"""The line of a terminal that says how far things are."""

from __future__ import annotations

import io

from tilewright.cli.progress import ProgressLine
from tilewright.model.compiler import Progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_sees_stages_and_kernels_and_a_clean_line_at_the_end():
    stream = Terminal()
    with ProgressLine(stream) as line:
        line.compiling(Progress("import"))
        line.compiling(Progress("kernels", 3, 12))
    shown = stream.getvalue().split("\r\x1b[K")
    assert shown == ["", "compile: import", "compile: kernels 3/12", ""]


def test_long_lines_are_cut_to_the_terminal():
    stream = Terminal()
    with ProgressLine(stream) as line:
        line.say("x" * 10_000)
    assert len(stream.getvalue()) < 5000
    assert "…" in stream.getvalue()


def test_others_see_nothing():
    stream = io.StringIO()
    with ProgressLine(stream) as line:
        line.compiling(Progress("kernels", 3, 12))
    assert stream.getvalue() == ""
