"""Every file of the package is installed, or known to be for building only.

`make package` builds and installs for real.
"""

from __future__ import annotations

import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "tilewright"
CONFIG = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
BUILT = {".py", ".pyc", ".so"}


def data_files() -> set[Path]:
    """What package-data names."""
    patterns = CONFIG["tool"]["setuptools"]["package-data"]
    return {
        path
        for package, globs in patterns.items()
        for pattern in globs
        for path in (ROOT / "src" / package.replace(".", "/")).glob(pattern)
    }


def sources() -> set[Path]:
    """What MANIFEST.in adds to the source distribution from inside the package."""
    found: set[Path] = set()
    for line in (ROOT / "MANIFEST.in").read_text(encoding="utf-8").splitlines():
        word, *rest = line.split() or [""]
        if word == "recursive-include" and rest[0].startswith("src/"):
            found |= {path for pattern in rest[1:] for path in (ROOT / rest[0]).rglob(pattern)}
    return found


def test_every_file_is_installed_or_a_source():
    files = {path for path in PACKAGE.rglob("*") if path.is_file() and path.suffix not in BUILT}
    assert files == data_files() | sources()


def test_every_folder_with_code_is_a_package():
    """Others are left out by `packages.find`, without a word."""
    folders = {path.parent for path in PACKAGE.rglob("*.py")}
    assert [folder for folder in folders if not (folder / "__init__.py").exists()] == []


def test_folders_of_the_source_distribution_exist():
    for line in (ROOT / "MANIFEST.in").read_text(encoding="utf-8").splitlines():
        word, *rest = line.split() or [""]
        names = rest if word == "include" else rest[:1] if word == "graft" else []
        assert all((ROOT / name).exists() for name in names), line


def test_versions_agree():
    import tilewright

    assert CONFIG["project"]["version"] == tilewright.__version__
