"""Files that are written in one step, through links, and never over what is no file."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import pytest

from tests.expect import raises_code
from tilewright.files import missing_file, replaced, require_replaceable


def write(path, content):
    with replaced(path) as file:
        file.write(content)


def interrupted(path, error):
    with replaced(path) as file:
        file.write(b"half")
        raise error


def test_a_file_appears_or_is_replaced(tmp_path):
    for content in (b"one", b"two"):
        write(tmp_path / "file", content)
        assert (tmp_path / "file").read_bytes() == content
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


def test_permissions_stay(tmp_path):
    path = tmp_path / "file"
    path.touch(0o600)
    write(path, b"new")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError, MemoryError])
def test_what_is_not_finished_leaves_nothing_behind(tmp_path, error):
    (tmp_path / "file").write_bytes(b"old")
    with pytest.raises(error):
        interrupted(tmp_path / "file", error)
    assert (tmp_path / "file").read_bytes() == b"old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("target", ["file", "nothing yet"])
def test_links_stay_links(tmp_path, target):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "file").write_bytes(b"old")
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "folder" / target)
    write(link, b"new")
    assert link.is_symlink()
    assert (tmp_path / "folder" / target).read_bytes() == b"new"


def test_what_is_no_regular_file_is_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "pipe")
    refused = {"pipe": "a pipe", "folder": "a folder", "link": "a pipe", "/dev/full": "a device"}
    for name, kind in refused.items():
        for attempt in (require_replaceable, lambda path: write(path, b"")):
            with pytest.raises(OSError, match=f"it is {kind}, not a regular file"):
                attempt(tmp_path / name)
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)
    assert stat.S_ISCHR(Path("/dev/full").stat().st_mode)


def test_a_place_where_no_file_can_be_is_known_before(tmp_path):
    with pytest.raises(FileNotFoundError, match="its folder does not exist"):
        require_replaceable(tmp_path / "nowhere" / "file")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    with pytest.raises(OSError, match="symbolic links") as loop:
        require_replaceable(tmp_path / "loop")
    assert loop.value.errno == errno.ELOOP
    require_replaceable(tmp_path / "file")
    assert list(tmp_path.iterdir()) == [tmp_path / "loop"]


def test_a_missing_file_is_one_for_those_who_ask_the_system(tmp_path):
    error = missing_file(tmp_path / "file", "a folder")
    assert isinstance(error, FileNotFoundError)
    assert (error.errno, error.filename) == (errno.ENOENT, str(tmp_path / "file"))
    with raises_code("K040", facts={"found": "a folder"}):
        raise error
