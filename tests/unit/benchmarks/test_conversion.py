"""Converters: what they make is kept, and all their ways to fail become a reason."""

from __future__ import annotations

import os
import sys

import pytest

from benchmarks import conversion
from benchmarks.conversion import MODEL, ConversionError, converted


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "net.onnx"
    path.write_text("a model")
    return path


def python(code):
    """A command, and the list of folders that it was given."""
    folders = []

    def command(folder):
        folders.append(folder)
        return [sys.executable, "-c", code]

    return command, folders


COPY = f"open('result', 'w').write(open('{MODEL}').read()); open('rest', 'w')"


def test_results_are_made_once_and_stay_beside_the_source(source):
    command, folders = python(COPY)
    folder = converted(str(source), "tool-1", command, ["result"])
    assert folder == source.with_name("net.onnx.tool-1")
    assert (folder / "result").read_text() == "a model"
    assert converted(str(source), "tool-1", command, ["result"]) == folder
    assert len(folders) == 1
    assert [path.name for path in folder.iterdir()] == ["result"]
    assert sorted(path.name for path in source.parent.iterdir()) == ["net.onnx", folder.name]


def test_a_newer_source_is_converted_again(source):
    command, folders = python(COPY)
    folder = converted(str(source), "tool-1", command, ["result"])
    source.write_text("another model")
    os.utime(source, (folder.stat().st_mtime + 1,) * 2)
    assert (converted(str(source), "tool-1", command, ["result"]) / "result").read_text() == (
        "another model"
    )
    assert len(folders) == 2


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("print('working'); print('no such op'); exit(3)", "exit code 3; working / no such op"),
        ("pass", "exit code 0; no message"),
        ("import os; os.abort()", "signal SIGABRT; no message"),
        ("import time; time.sleep(60)", "took more than 1 s"),
    ],
)
def test_a_failure_has_a_reason_and_is_not_tried_again(code, reason, source, monkeypatch):
    monkeypatch.setattr(conversion, "SECONDS", 1.0)
    command, folders = python(code)
    for _ in range(2):
        with pytest.raises(ConversionError, match=reason):
            converted(str(source), "tool-1", command, ["result"])
    assert len(folders) == 1
    assert list(source.parent.iterdir()) == [source]
