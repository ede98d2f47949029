"""A model before it is read: what the cache knows it by, and whether its files stay what they were.

A file is hashed first and read later. Whoever exchanges it in between must not get what was made of
one model into the cache under the name of another: what is compiled goes there only if the files
are, at the end, the ones that were hashed, untouched.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, TypeAlias

from tilewright.runtime.keys import digest_of_bytes, digest_of_open, identity_of_open

if TYPE_CHECKING:
    import onnx

    from tilewright.runtime.cache import Caches

__all__ = ["Source", "Sources"]

Source: TypeAlias = "str | os.PathLike[str] | bytes | onnx.ModelProto"


@dataclass(frozen=True)
class Sources:
    """Digests of a model's content, external data included, and the state of its files.

    `name` is that of the file, for people.
    """

    digests: tuple[str, ...] = ()
    path: Path | None = None
    states: tuple[str, ...] = ()
    name: str = ""

    @classmethod
    def of(cls, model: Source, caches: Caches | None) -> Sources:
        """Look at a model; without a cache, or a file, there are no digests."""
        if not isinstance(model, str | os.PathLike):
            if caches is None:
                return cls()
            content = model if isinstance(model, bytes) else model.SerializeToString()
            return cls((digest_of_bytes(content),))
        path = Path(model).absolute()
        states, digests = [], []
        for file in _files(path):
            states.append(identity_of_open(file))
            if caches is not None:
                digests.append(digest_of_open(file, caches.digests))
        return cls(tuple(digests), path, tuple(states), path.name)

    @property
    def are_unchanged(self) -> bool:
        """Whether nothing has touched the files since they were looked at."""
        return self.path is None or self.states == tuple(map(identity_of_open, _files(self.path)))


def _files(path: Path) -> Iterator[BinaryIO]:
    """The model and its external data, open one after another."""
    from tilewright.frontend.onnx import external_files

    try:
        model = path.open("rb") if path.is_file() else None
    except (OSError, ValueError):  # it may not be read, or its name is none
        model = None
    if model is None:
        return  # reading it says what is wrong
    with model:
        yield model
    yield from external_files(path)
