"""The README is also the page of the package index, where a relative link leads nowhere."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
FILES = f"{PROJECT['urls']['Source']}/blob/main/"
LINKS = [*re.findall(r"\]\(([^)]+)\)", README), *PROJECT["urls"].values()]


@pytest.mark.parametrize("link", sorted(set(LINKS)))
def test_every_link_is_absolute_and_leads_to_a_file(link):
    assert link.startswith("https://")
    if link.startswith(FILES):
        assert (ROOT / link.removeprefix(FILES).partition("#")[0]).is_file()


def test_it_says_what_users_ask_first():
    for heading in ("## Install", "## A model to try", "## Speed", "## Limits"):
        assert f"\n{heading}\n" in README
    assert f"Python {PROJECT['requires-python'].removeprefix('>=')} or newer" in README
