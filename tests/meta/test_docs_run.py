"""The code in the pages is run, block after block of one page in one namespace."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper

from tests.small import WEIGHTS, make

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "README.md",
    *(ROOT / "docs" / name for name in ("models.md", "tutorial.md", "tuning.md")),
]


@pytest.fixture(autouse=True)
def _folder_with_a_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages speak of `model.onnx`, in the folder where they are read."""
    nodes = [
        helper.make_node("Relu", ["x"], ["positive"]),
        helper.make_node("MatMul", ["positive", "w"], ["scores"]),
    ]
    outputs = [("scores", ["batch", 4]), ("positive", ["batch", 8])]
    weights = {"w": np.ascontiguousarray(WEIGHTS)}
    onnx.save(make(nodes, [("x", ["batch", 8])], outputs, weights), tmp_path / "model.onnx")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(tmp_path / "cache"))


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_code_of_the_page_runs(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
    blocks = code.findall(page.read_text(encoding="utf-8"))
    assert blocks, f"{page.name} has no code"
    namespace: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, str(page), "exec"), namespace)
    assert "Error" not in capsys.readouterr().err
