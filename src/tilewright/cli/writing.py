"""Files and folders that commands write: each problem is an error with a code."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

from tilewright.errors import Code, UserError
from tilewright.files import replaced, require_replaceable
from tilewright.pipeline import Artefact, Observer, Stage, dump_to

__all__ = ["require_writable", "stage_writer", "writing", "written_file"]

K048 = Code("K048", "`{path}` cannot be written: {problem}")


@contextlib.contextmanager
def writing(path: Path, hint: str = "") -> Iterator[None]:
    """Say of what the system refuses that this place cannot be written."""
    try:
        yield
    except (OSError, ValueError) as problem:  # ValueError: a name that no file can have
        reason = getattr(problem, "strerror", None) or str(problem)
        more = hint or "name another file; its folder must be there"
        raise UserError(K048, {"path": path, "problem": reason}, hint=more) from None


@contextlib.contextmanager
def written_file(path: Path, hint: str = "") -> Iterator[BinaryIO]:
    """A file that takes its place when the block ends."""
    with writing(path, hint), replaced(path) as file:
        yield file


def stage_writer(folder: Path, stages: Sequence[Stage]) -> Observer:
    """An observer that writes every stage into a folder, or says that it cannot be written."""
    hint = "name a folder that can be made, on a disk with room"
    with writing(folder, hint):
        write = dump_to(folder, stages)

    def observe(artefact: Artefact) -> None:
        with writing(folder, hint):
            write(artefact)

    return observe


def require_writable(path: Path, hint: str = "") -> None:
    """Refuse a place where no file can be, before anything else is done."""
    with writing(path, hint):
        require_replaceable(path)
