"""`tilewright report`: the file it writes, JSON, and its errors."""

from __future__ import annotations

import json
import webbrowser
from pathlib import Path

import onnx
import pytest

from tests.small import sequence_model, two_outputs
from tilewright.cli import main
from tilewright.records import Database


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TILEWRIGHT_DATABASE", str(tmp_path / "own.sqlite"))
    onnx.save(two_outputs(), "net.onnx")


def test_it_writes_a_page_beside_nothing(capsys):
    assert main(["report", "net.onnx"]) == 0
    assert "net.report.html: net.onnx, no records of its kernels yet" in capsys.readouterr().out
    page = Path("net.report.html").read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>")
    assert "Nothing was measured yet" in page


def test_data_for_programs_need_no_page(capsys):
    assert main(["report", "net.onnx", "--json", "--threads", "1", "--size", "rows=4"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert (data["model"], data["threads"], data["trials"]) == ("net.onnx", 1, 0)
    assert data["kernels"][-1]["flops"] == 2 * 4 * 8 * 4
    assert not list(Path().glob("*.html"))
    assert main(["report", "net.onnx", "--json", "-o", "page.html"]) == 0
    assert Path("page.html").exists()


def test_it_is_opened_if_that_is_wanted(monkeypatch):
    opened = []
    monkeypatch.setattr(webbrowser, "open", opened.append)
    assert main(["report", "net.onnx", "-o", "a b.html"]) == 0
    assert opened == []
    assert main(["report", "net.onnx", "-o", "a b.html", "--open", "yes"]) == 0
    assert opened == [(Path.cwd() / "a b.html").as_uri()]


@pytest.mark.parametrize(
    ("code", "arguments"),
    [
        ("K040", ["missing.onnx"]),
        ("K048", ["net.onnx", "-o", "nowhere/page.html"]),
        ("K070", ["net.onnx", "--database", "missing.sqlite"]),
        ("K020", ["net.onnx", "--size", "row=4"]),
    ],
)
def test_errors(code, arguments, capsys):
    assert main(["report", *arguments]) == 1
    assert capsys.readouterr().err.startswith(f"tilewright: {code}: ")
    assert not list(Path().glob("*.html"))


def test_a_file_that_is_no_database_is_told_of(capsys):
    Path("own.sqlite").write_text("something else")
    assert main(["report", "net.onnx"]) == 1
    assert "U001" in capsys.readouterr().err


@pytest.mark.filterwarnings("ignore::tilewright.TilewrightWarning")
def test_a_model_without_kernels_has_no_report(capsys):
    onnx.save(sequence_model(), "texts.onnx")
    assert main(["report", "texts.onnx"]) == 1
    assert "K046: `texts.onnx` cannot show its kernels" in capsys.readouterr().err


def test_the_database_is_only_read():
    with Database("own.sqlite"):
        pass
    before = Path("own.sqlite").read_bytes()
    assert main(["report", "net.onnx"]) == 0
    assert Path("own.sqlite").read_bytes() == before
