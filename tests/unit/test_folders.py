"""Folders that nobody else can write."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tilewright.folders import is_private, make_folder, open_folder
from tilewright.target import Measured, Rate, Target, measured

OPEN = Path("/proc/self/fd")


@pytest.fixture
def _careless():
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.mark.usefixtures("_careless")
def test_every_folder_that_is_made_is_private(tmp_path):
    (tmp_path / "there").mkdir(0o755)
    make_folder(tmp_path / "there" / "a" / "b")
    make_folder(tmp_path / "there" / "a" / "b")
    modes = [(tmp_path / p).stat().st_mode & 0o777 for p in ("there", "there/a", "there/a/b")]
    assert modes == [0o755, 0o700, 0o700]


@pytest.mark.usefixtures("_careless")
def test_measured_numbers_do_not_open_the_cache(tmp_path):
    measured.store(Target.host(), Measured(Rate(1, 2), ()), tmp_path / "cache")
    os.close(open_folder(tmp_path / "cache"))


def test_a_file_is_no_folder(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError):
        make_folder(tmp_path / "file" / "below")
    with pytest.raises(NotADirectoryError):
        open_folder(tmp_path / "file")


@pytest.mark.parametrize("mode", [0o720, 0o702, 0o777])
def test_a_folder_of_others_is_not_opened(tmp_path, mode):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder").chmod(mode)
    before = len(list(OPEN.iterdir()))
    with pytest.raises(PermissionError, match="can be written by others"):
        open_folder(tmp_path / "folder")
    assert len(list(OPEN.iterdir())) == before


def test_links_count_by_where_they_lead_and_not_inside(tmp_path):
    (tmp_path / "folder").mkdir(0o700)
    (tmp_path / "link").symlink_to("folder")
    os.close(open_folder(tmp_path / "link"))
    around = open_folder(tmp_path)
    try:
        os.close(open_folder("folder", within=around))
        with pytest.raises(OSError, match=r"Not a directory|symbolic links"):
            open_folder("link", within=around)
    finally:
        os.close(around)
    (tmp_path / "folder").chmod(0o770)
    with pytest.raises(PermissionError):
        open_folder(tmp_path / "link")


@pytest.mark.skipif(os.geteuid() != 0, reason="only the superuser can give files away")
def test_what_somebody_else_owns_is_not_private(tmp_path):
    os.chown(tmp_path, 12345, 12345)
    assert not is_private(tmp_path.stat())
