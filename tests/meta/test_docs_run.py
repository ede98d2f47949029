"""The code in the pages is run, block after block of one page in one namespace."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "docs" / "tutorial.md"]


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_code_of_the_page_runs(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
    blocks = code.findall(page.read_text(encoding="utf-8"))
    assert blocks, f"{page.name} has no code"
    namespace: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, str(page), "exec"), namespace)
    assert "Error" not in capsys.readouterr().err
