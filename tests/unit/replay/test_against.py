"""Which commit is meant, and how it is checked out: a repository of a few files stands for ours."""

from __future__ import annotations

import subprocess

import pytest

from replay import against
from replay.against import base_commit
from replay.folder import Index, write_index

LIBRARY = "src/tilewright/runtime/_native.abi3.so"


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """Two commits, and a native library that git does not know."""
    root = tmp_path / "repository"
    (root / "src/tilewright/runtime/native").mkdir(parents=True)
    _git(root, "init", "--quiet")
    (root / "src/tilewright/runtime/native/program.c").write_text("int main;")
    (root / ".gitignore").write_text("*.so\nbuild/\n")
    for text in ("one", "two"):
        (root / "text").write_text(text)
        _git(root, "add", "-A")
        who = ("-c", "user.name=n", "-c", "user.email=e", "-c", "commit.gpgsign=false")
        _git(root, *who, "commit", "--quiet", "-m", text)
    (root / LIBRARY).write_text("library")
    monkeypatch.setattr(against, "ROOT", root)
    monkeypatch.setattr(against, "KEPT", root / "build" / "replay")
    return root


def _git(root, *arguments):
    command = ["git", "-C", str(root), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def test_the_base_is_what_the_tree_comes_from(repository):
    assert base_commit(None) == _git(repository, "rev-parse", "HEAD~1")
    (repository / "text").write_text("three")
    assert base_commit(None) == _git(repository, "rev-parse", "HEAD")
    assert base_commit("HEAD~1") == _git(repository, "rev-parse", "HEAD~1")


def test_both_are_recorded_and_that_of_the_commit_once(repository, monkeypatch):
    recorded = []

    def record(tree, folder, options):
        recorded.append(((tree / "text").read_text(), (tree / LIBRARY).read_text(), *options))
        folder.mkdir(parents=True)
        write_index(folder, Index({}))

    monkeypatch.setattr(against, "_record", record)
    first, second = against.record_both(base_commit("HEAD~1"), ["--workers", "1"])
    assert recorded == [("one", "library", "--workers", "1"), ("two", "library", "--workers", "1")]
    assert first.name.startswith(base_commit("HEAD~1")[:16])
    assert second.name == "tree"
    assert _git(repository, "worktree", "list").count("\n") == 0

    against.record_both(base_commit("HEAD~1"), [])
    assert [text for text, *_ in recorded[2:]] == ["two"]
    part, _ = against.record_both(base_commit("HEAD~1"), [], ["--only", "x"])
    assert [text for text, *_ in recorded[3:]] == ["one", "two"]
    assert part.name == "part"
