"""Tensors in files beside a model, read from its folder and from nowhere else.

Where a location leads is found out first, links included; it must lie in the model's folder (or in
one that `TILEWRIGHT_DATA_FOLDERS` names, for stores that keep files elsewhere and link to them).
Then the file is opened from that folder step by step, and no step follows a link: whatever is
exchanged between the look and the opening ends in a refusal. What is open is then asked for its
kind and size, and exactly the bytes of the tensor are read from it.
"""

from __future__ import annotations

import itertools
import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import BinaryIO, Final

import onnx

from tilewright import options
from tilewright.errors import Code, ModelError
from tilewright.frontend.onnx.limits import memory_bytes
from tilewright.frontend.onnx.tensors import bytes_of
from tilewright.shown import shown

__all__ = ["Outside", "fill", "location_of", "open_inside", "refused"]

M003 = Code("M003", "the data of `{tensor}` cannot be read from `{location}`: {problem}")

_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY
_FOLDER = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_DIRECTORY


SHARED: Final = 4
"""How often tensors may share the same bytes of a file, on average."""


class Outside(Exception):  # noqa: N818  (a signal, which becomes M003 with its tensor)
    """A location is none that may be read; the text says why."""


@dataclass(frozen=True, slots=True)
class _Span:
    """Where the bytes of a tensor lie."""

    offset: int
    length: int | None


def fill(tensors: Sequence[onnx.TensorProto], folder: Path) -> None:
    """Give tensors the bytes that they have in files of a folder; few of these are open at once."""
    seen = set[tuple[int, int]]()  # names differ for one file: `w.bin`, `./w.bin`, a link
    total, available = 0, 0
    for location, group in itertools.groupby(tensors, location_of):
        for tensor in (members := list(group)):
            total += bytes_of(tensor)
        try:
            with open_inside(folder, location) as file:
                state = os.fstat(file.fileno())
                if (identity := (state.st_dev, state.st_ino)) not in seen:
                    seen.add(identity)
                    available += state.st_size
                if total > min(SHARED * available, memory_bytes()):
                    raise Outside(f"{total} bytes are asked for, more than could be in its files")
                for tensor in members:
                    _fill(tensor, file)
        except Outside as problem:
            raise refused(tensor, str(problem)) from None
        except OSError as problem:
            raise refused(tensor, problem.strerror or str(problem)) from None


def _fill(tensor: onnx.TensorProto, file: BinaryIO) -> None:
    tensor.raw_data = _read(file, _span(tensor), bytes_of(tensor))
    tensor.data_location = onnx.TensorProto.DEFAULT
    del tensor.external_data[:]


def refused(tensor: onnx.TensorProto, problem: str, hint: str = "") -> ModelError:
    """The error for a tensor."""
    location = shown(location_of(tensor)) or "nowhere"
    facts = {"tensor": shown(tensor.name), "location": location, "problem": problem}
    default = "keep the file in the folder of the model, complete and as it was exported"
    return ModelError(M003, facts, hint=hint or default)


def location_of(tensor: onnx.TensorProto) -> str:
    """The name of the file in which a tensor says its data are; empty if it says none."""
    return next((entry.value for entry in tensor.external_data if entry.key == "location"), "")


def _span(tensor: onnx.TensorProto) -> _Span:
    entries: dict[str, str] = {}
    for entry in tensor.external_data:
        if entry.key in entries:
            raise Outside(f"`{shown(entry.key)}` is given twice")
        entries[entry.key] = entry.value
    length = entries.get("length")
    return _Span(
        _number("offset", entries.get("offset", "0")),
        None if length is None else _number("length", length),
    )


def _number(what: str, text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 20):
        raise Outside(f"its {what} is {shown(text)!r}, not a number of bytes")
    return int(text)


def open_inside(folder: Path, location: str) -> BinaryIO:
    """A file of a folder, open; `Outside` or OSError if it is none that may be read."""
    _require_relative(location)
    wanted = Path(os.path.realpath(folder / location))
    for root in (Path(os.path.realpath(folder)), *options.data_folders()):
        if wanted.is_relative_to(root) and wanted != root:
            return _open_steps(root, wanted.relative_to(root).parts)
    raise Outside("it leads out of the folder of the model")


def _require_relative(location: str) -> None:
    posix, windows = PurePosixPath(location), PureWindowsPath(location)
    if not location or "\0" in location or not posix.parts:
        raise Outside("it is not a file")
    if posix.is_absolute() or windows.drive or windows.root:
        raise Outside("it is absolute, and must be relative to the folder of the model")
    if ".." in windows.parts:  # which knows both separators
        raise Outside("it leads out of the folder of the model")


def _open_steps(root: Path, parts: Sequence[str]) -> BinaryIO:
    """Open a file from a folder without following any link on the way."""
    folder = os.open(root, _FOLDER)
    try:
        for part in parts[:-1]:
            inner = os.open(part, _FOLDER, dir_fd=folder)
            os.close(folder)
            folder = inner
        file = os.open(parts[-1], _FLAGS, dir_fd=folder)
    finally:
        os.close(folder)
    try:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            raise Outside("it is not a plain file")
        return os.fdopen(file, "rb", buffering=0)
    except BaseException:
        os.close(file)
        raise


def _read(file: BinaryIO, span: _Span, expected: int) -> bytes:
    """The bytes of a tensor, which the file must have."""
    size = os.fstat(file.fileno()).st_size
    if span.length is not None and span.length != expected:
        raise Outside(f"its length is {span.length} bytes, and its dimensions ask for {expected}")
    if span.offset + expected > size:
        end = span.offset + expected
        raise Outside(f"it has {size} bytes, and the tensor would end at {end}")
    content = b"".join(_chunks(file.fileno(), span.offset, expected))
    if len(content) != expected:
        raise Outside("it became shorter while it was read")
    return content


def _chunks(file: int, offset: int, count: int) -> Iterator[bytes]:
    """All in one piece where the system gives it so; a read may stop at 2 GB."""
    while count:
        piece = os.pread(file, count, offset)
        if not piece:
            return
        yield piece
        offset, count = offset + len(piece), count - len(piece)
