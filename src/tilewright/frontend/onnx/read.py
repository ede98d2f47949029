"""Reading a model: bytes from a plain file, parsed within limits, sound, with all of its data.

Nothing of a file is believed before it is checked, and nothing outside of its folder is opened.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final

import onnx
from google.protobuf.message import DecodeError

from tilewright.errors import Code, ModelError
from tilewright.files import missing_file
from tilewright.frontend.onnx.extent import expanded_nodes
from tilewright.frontend.onnx.external import Outside, fill, location_of, open_inside, refused
from tilewright.frontend.onnx.limits import MAX_FILE
from tilewright.frontend.onnx.ordered import in_order
from tilewright.frontend.onnx.overloads import without_overloads
from tilewright.frontend.onnx.sound import require_sound
from tilewright.shown import shown

__all__ = ["external_files", "read_model"]

M001 = Code("M001", "`{what}` is not an ONNX model: {problem}")

_WORD: Final = b"location"
_PIECE: Final = 1 << 22

HINT = "give a file that an exporter for ONNX wrote"
ELSEWHERE = "give the path of the model instead of its content: the data lie beside it"


def read_model(source: str | os.PathLike[str] | bytes | onnx.ModelProto) -> onnx.ModelProto:
    """The model in a file, in bytes, or as it is; complete and sound (M001, M002, M003, M005).

    Its nodes are in an order in which they can run, and its functions differ in their names.
    """
    match source:
        case onnx.ModelProto():
            model, folder, what = source, None, "this message"
        case bytes():
            model, folder, what = _parsed(source, f"{len(source)} bytes"), None, "these bytes"
        case _:
            path = Path(source)
            model, folder, what = _parsed(_content(path), path), path.parent, str(path)
    if not model.HasField("graph"):  # as an empty file, which the parser takes for a message
        raise _no_model(what, "it has no graph")
    expanded_nodes(model)
    external = require_sound(model)
    if external and folder is None:
        raise refused(external[0], "nobody knows in which folder that is", ELSEWHERE)
    if folder is not None:
        fill(external, folder)
    return in_order(without_overloads(model))


def external_files(path: Path) -> Iterator[BinaryIO]:
    """The files in which a model keeps large tensors, open; none if something is wrong with them.

    What is wrong, `read_model` says.
    """
    try:
        if not _may_have_data(path):
            return
        model = _parsed(_content(path), path)
        expanded_nodes(model)
        locations = dict.fromkeys(map(location_of, require_sound(model)))
    except (ModelError, OSError, ValueError):
        return
    for location in locations:
        try:
            file = open_inside(path.parent, location)
        except (Outside, OSError):
            continue
        with file:
            yield file


def _may_have_data(path: Path) -> bool:
    """Whether a file has the word without which there is no external data; quicker than parsing.

    It is read and not mapped: a file that became shorter meanwhile would end the process.
    """
    with _plain_file(path) as file:
        seen = b""
        while piece := file.read(_PIECE):
            seen = seen[1 - len(_WORD) :] + piece
            if _WORD in seen:
                return True
    return False


def _content(path: Path) -> bytes:
    """All bytes of a plain file."""
    try:
        with _plain_file(path) as file:
            size = os.fstat(file.fileno()).st_size
            if size > MAX_FILE:
                raise _no_model(path, f"it has {size} bytes, more than a protobuf message can have")
            return file.read(size + 1)[:size]
    except FileNotFoundError:
        raise missing_file(path) from None
    except OSError as problem:
        raise _no_model(path, problem.strerror or str(problem)) from None
    except ValueError as problem:  # a name that no file can have
        raise _no_model(path, str(problem)) from None


def _plain_file(path: Path) -> BinaryIO:
    """A file that is one: a pipe or a device would never end, or wait for ever."""
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    try:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            raise _no_model(path, "it is not a plain file")
        return os.fdopen(file, "rb")
    except BaseException:
        os.close(file)
        raise


def _parsed(content: bytes, what: object) -> onnx.ModelProto:
    model = onnx.ModelProto()
    try:
        model.ParseFromString(content)
    except DecodeError as problem:
        raise _no_model(what, str(problem)) from None
    return model


def _no_model(what: object, problem: str) -> ModelError:
    return ModelError(M001, {"what": shown(what), "problem": shown(problem, 400)}, hint=HINT)
