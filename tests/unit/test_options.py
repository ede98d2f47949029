"""Environment variables: read strictly, wrong values are errors."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.expect import raises_code
from tilewright.options import cache_dir, database, host_target, num_threads


@pytest.mark.parametrize(
    ("variables", "threads"),
    [
        ({}, None),
        ({"OMP_NUM_THREADS": "2"}, 2),
        ({"OMP_NUM_THREADS": " 4,2,1"}, 4),
        ({"TILEWRIGHT_NUM_THREADS": "3"}, 3),
        ({"TILEWRIGHT_NUM_THREADS": " 1024 "}, 1024),
        ({"TILEWRIGHT_NUM_THREADS": "3", "OMP_NUM_THREADS": "nonsense"}, 3),
    ],
)
def test_num_threads(variables, threads):
    assert num_threads(variables) == threads


@pytest.mark.parametrize(
    "value", ["", "0", "-1", "two", "2.0", "1025", "1e3", "٣", "2,2", "9" * 30]
)
def test_num_threads_rejects(value):
    with raises_code("O001", facts={"variable": "TILEWRIGHT_NUM_THREADS", "found": repr(value)}):
        num_threads({"TILEWRIGHT_NUM_THREADS": value})


def test_host_target():
    assert host_target({}) is None
    assert host_target({"TILEWRIGHT_TARGET": "x86-64-v2"}) == "x86-64-v2"


def test_openmp_threads_are_read_strictly_too(golden):
    with raises_code("O001") as caught:
        num_threads({"OMP_NUM_THREADS": ",2"})
    assert golden == caught.value


def test_cache_dir_follows_the_variables(tmp_path):
    assert cache_dir({"TILEWRIGHT_CACHE_DIR": str(tmp_path)}) == tmp_path
    assert cache_dir({"XDG_CACHE_HOME": str(tmp_path)}) == tmp_path / "tilewright"
    assert cache_dir({"XDG_CACHE_HOME": "relative"}) == Path.home() / ".cache/tilewright"
    assert cache_dir({}) == Path.home() / ".cache/tilewright"
    assert cache_dir({"TILEWRIGHT_CACHE_DIR": "~/kernels"}) == Path.home() / "kernels"


def test_cache_dir_rejects_what_cannot_be_a_directory(tmp_path, golden):
    file = tmp_path / "file"
    file.touch()
    for value in ("", "relative", str(file)):
        with raises_code("O001", facts={"found": repr(value)}):
            cache_dir({"TILEWRIGHT_CACHE_DIR": value})
    with raises_code("O001") as caught:
        cache_dir({"TILEWRIGHT_CACHE_DIR": "relative"})
    assert golden == caught.value


def test_database_follows_the_variables(tmp_path):
    assert database({"TILEWRIGHT_DATABASE": str(tmp_path / "r.db")}) == tmp_path / "r.db"
    assert database({"TILEWRIGHT_DATABASE": "~/r.db"}) == Path.home() / "r.db"
    assert database({"TILEWRIGHT_DATABASE": "none"}) is None
    assert database({"TILEWRIGHT_DATA_DIR": str(tmp_path)}) == tmp_path / "records.sqlite"
    assert database({}) == Path.home() / ".local/share/tilewright/records.sqlite"


def test_database_rejects_what_cannot_be_a_file(tmp_path):
    for value in ("", "relative.db", str(tmp_path)):
        with raises_code("O001", text="a file or does not exist yet"):
            database({"TILEWRIGHT_DATABASE": value})
