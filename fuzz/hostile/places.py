"""Something else in place of what a cache keeps: whatever it is, it only ever costs time."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Final

from fuzz.hostile.damage import damaged

__all__ = ["PLACES", "put_in_place"]

Place = Callable[[random.Random, Path], object]


def _damage(rng: random.Random, path: Path) -> None:
    if path.stat().st_size:
        path.write_bytes(damaged(rng, path.read_bytes())[1])


def _other(rng: random.Random, path: Path) -> None:
    """The content of another entry, right in itself."""
    others = sorted(p for p in path.parent.iterdir() if p.is_file() and p != path)
    if others:
        shutil.copy(rng.choice(others), path)


def _link(rng: random.Random, path: Path) -> None:
    target = rng.choice((str(path), "/dev/zero", "../../../canary.bin", "/etc/passwd", "nowhere"))
    path.unlink()
    path.symlink_to(target)


def _pipe(_: random.Random, path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def _folder(_: random.Random, path: Path) -> None:
    path.unlink()
    (path / "inner").mkdir(parents=True)


def _of_all(_: random.Random, path: Path) -> None:
    path.write_bytes(b"whoever")
    path.chmod(0o666)


def _closed(_: random.Random, path: Path) -> None:
    path.chmod(0)


def _huge(_: random.Random, path: Path) -> None:
    os.truncate(path, 1 << 40)


def _store(rng: random.Random, path: Path) -> None:
    """The folder of a store is a file, a link to nothing, or cannot be entered."""
    folder = path.parent
    shutil.rmtree(folder)
    match rng.randrange(3):
        case 0:
            folder.write_bytes(b"no folder")
        case 1:
            folder.symlink_to("nowhere")
        case _:
            folder.mkdir(mode=0o777)
            folder.chmod(0o777)


PLACES: Final[dict[str, Place]] = {
    "damaged": _damage,
    "exchanged": _other,
    "linked": _link,
    "of a pipe": _pipe,
    "of a folder": _folder,
    "of all": _of_all,
    "closed": _closed,
    "huge": _huge,
    "without a store": _store,
}


def put_in_place(what: str, rng: random.Random, folder: Path) -> None:
    """Change some entries, or all of them, below the folder of a cache; in a process apart."""
    attacker = os.fork()
    if attacker:
        os.waitpid(attacker, 0)
        return
    try:
        _put_in_place(what, rng, folder)
    finally:
        os._exit(0)


def _put_in_place(what: str, rng: random.Random, folder: Path) -> None:
    found = sorted(p for p in folder.rglob("*") if p.is_file() and not p.name.startswith("."))
    for path in found if rng.random() < 0.5 else rng.sample(found, min(2, len(found))):
        if path.is_file():  # its folder may be gone
            PLACES[what](rng, path)
