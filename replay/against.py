"""The working tree against another commit, with one corpus: ours.

The commit is checked out beside the tree and gets a native library. This package then records it in
a process whose `tilewright` is that of the commit. Recordings of commits are kept in
`build/replay`, since a commit does not change; that of the tree is made each time.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from hashlib import blake2b
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from replay.folder import INDEX, read_index

__all__ = ["ROOT", "base_commit", "record_both"]

ROOT: Final = Path(__file__).resolve().parents[1]
KEPT: Final = ROOT / "build" / "replay"
NATIVE: Final = Path("src/tilewright/runtime")
MOST_KEPT: Final = 3
"""Recordings of commits that are kept: each takes tens of megabytes."""


def base_commit(revision: str | None) -> str:
    """The commit that is meant; without a revision, what the working tree comes from.

    That is the last commit if something has changed since, else the one before it.
    """
    if revision is None:
        revision = "HEAD" if _git("status", "--porcelain") else "HEAD~1"
    return _git("rev-parse", "--verify", f"{revision}^{{commit}}")


def record_both(commit: str, options: Sequence[str], part: Sequence[str] = ()) -> tuple[Path, Path]:
    """Folders with the recordings of a commit and of the working tree.

    `options` and `part` are those of `record`; that of a part of the corpus is not kept.
    """
    before = KEPT / f"{commit[:16]}-{_corpus_digest()}"
    after = KEPT / "tree"
    if part:
        before = KEPT / "part"
        shutil.rmtree(before, ignore_errors=True)
    if not (before / INDEX).exists():
        with _checked_out(commit) as tree:
            _record(tree, before, [*options, *part])
        _forget_old()
    shutil.rmtree(after, ignore_errors=True)
    _record(ROOT, after, [*options, *part])
    return before, after


def _git(*arguments: str) -> str:
    command = ["git", "-C", str(ROOT), *arguments]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


@contextmanager
def _checked_out(commit: str) -> Iterator[Path]:
    """A worktree of the commit with a native library, gone at the end."""
    with TemporaryDirectory(prefix="tilewright-replay-") as folder:
        tree = Path(folder) / "tree"
        _git("worktree", "add", "--quiet", "--detach", str(tree), commit)
        try:
            _add_native_library(tree, commit)
            yield tree
        finally:
            _git("worktree", "remove", "--force", str(tree))


def _add_native_library(tree: Path, commit: str) -> None:
    """Ours, if it is made of the same sources; else one is built."""
    changed = _git("diff", "--name-only", commit, "--", str(NATIVE / "native"), "setup.py")
    libraries = list((ROOT / NATIVE).glob("_native*.so"))
    if libraries and not changed:
        for library in libraries:
            shutil.copy2(library, tree / NATIVE)
        return
    command = [sys.executable, "setup.py", "--quiet", "build_ext", "--inplace"]
    subprocess.run(command, cwd=tree, check=True)


def _record(tree: Path, folder: Path, options: Sequence[str]) -> None:
    """Record a tree in a process of its own, with our corpus."""
    paths = os.pathsep.join([str(tree / "src"), str(ROOT)])
    command = [sys.executable, "-m", "replay", "record", str(folder), *options]
    subprocess.run(command, cwd=ROOT, check=True, env={**os.environ, "PYTHONPATH": paths})
    package, wanted = read_index(folder).package, str(tree / "src" / "tilewright")
    if Path(package).resolve() != Path(wanted).resolve():
        raise RuntimeError(f"recorded {package} in place of {wanted}")


def _corpus_digest() -> str:
    """What besides the commit decides what is recorded: this package, and what it builds with."""
    found = blake2b(digest_size=8)
    for path in sorted((ROOT / "replay").rglob("*.py")):
        found.update(path.read_bytes())
    for package in ("numpy", "onnx"):
        found.update(version(package).encode())
    return found.hexdigest()


def _forget_old() -> None:
    """Remove recordings of commits, except for the last few."""
    kept = [path for path in KEPT.iterdir() if "-" in path.name]
    for path in sorted(kept, key=lambda p: p.stat().st_mtime)[:-MOST_KEPT]:
        shutil.rmtree(path, ignore_errors=True)
