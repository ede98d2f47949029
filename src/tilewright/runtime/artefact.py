"""A compiled model in a file: what runs (a program and its machine code), weights, and for whom.

    header     magic, versions, size of the file, and the place, size and checksum of each section
    metadata   JSON: the target, the program, the tool, whatever else the compiler wants to keep
    blocks     a digest of each block of the weights (`blocks.py`)
    code       an image of machine code, mapped readable and executable
    weights    bytes, mapped readable and shared between processes

Code and weights begin at multiples of 64 KiB, the greatest page of our targets, so that loading
copies neither. Everything is checked whenever a file is opened, down to the zeros between sections:
weights, which may be large, by the digests of their blocks, and by a cryptographic checksum if
`verify` asks for it. There is one way to write given parts and nothing of the time or place goes
in: equal parts give equal files.

An artefact is a program: damage is found and never crashes, but who opens a file runs its code.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import mmap
import os
import struct
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Final, NoReturn

from tilewright.abi import ABI_VERSION
from tilewright.errors import ArtefactError, Code
from tilewright.files import missing_file, replaced
from tilewright.runtime.blocks import damaged_range, digests_of, table_bytes
from tilewright.runtime.image import Image
from tilewright.target import Target
from tilewright.target.host import present

__all__ = ["Artefact", "Parts", "SUFFIX", "damaged", "open_artefact", "read_artefact", "save"]
__all__ += ["is_artefact", "write"]

A110 = Code("A110", "`{file}` is not a compiled model")
A111 = Code("A111", "`{file}` is damaged: {problem}")
A112 = Code("A112", "`{file}` was compiled by a version of tilewright that does not fit this one")
A113 = Code("A113", "`{file}` was compiled for another machine: this one lacks {missing}")

SUFFIX: Final = ".tw"
MAGIC: Final = b"\x89tw\r\n\x1a\n\0"
"""Not text, and changed by whatever converts line ends."""
FORMAT: Final = 3
PAGE: Final = 1 << 16
MAX_METADATA: Final = 1 << 28

_HEADER = struct.Struct("<8sIIQ")  # magic, format, ABI, bytes of the file
_SECTION = struct.Struct("<QQ16s")  # offset, bytes, checksum
_SECTIONS = ("metadata", "blocks", "code", "weights")
_MAPPED = ("code", "weights")
_CHECKSUM_AT: Final = _HEADER.size + len(_SECTIONS) * _SECTION.size
_START: Final = _CHECKSUM_AT + 16
_CHUNK: Final = 1 << 22


@dataclass(frozen=True, slots=True)
class Parts:
    """What goes into a file. `weights` are pieces of bytes that follow each other without a gap.

    `program` and the values of `extra` are data of JSON; `tool` names the compiler's version. The
    target may be what an open file says of it.
    """

    program: Any
    code: bytes
    weights: Sequence[Any]
    target: Target | Mapping[str, Any]
    tool: str
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Section:
    offset: int
    size: int
    checksum: bytes


def save(path: str | os.PathLike[str], parts: Parts) -> None:
    """Write a file, or replace it in one step; a link is followed.

    Raises OSError when the disk is full, the folder cannot be written, or something else than a
    regular file is there; nothing is left behind.
    """
    with replaced(path) as file:
        write(file, parts)


def is_artefact(path: str | os.PathLike[str]) -> bool:
    """Whether a file begins as compiled models do; one that cannot be read does not."""
    try:
        if not Path(path).is_file():  # of a pipe one could wait for ever
            return False
        with Path(path).open("rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except (OSError, ValueError):  # ValueError: a name that no file can have
        return False


def write(file: BinaryIO, parts: Parts) -> None:
    """Write an empty file that nobody reads yet; its bytes are on the disk afterwards."""
    metadata = _metadata(parts)
    pieces = [memoryview(piece) for piece in parts.weights]
    pieces = [piece.cast("B") for piece in pieces if piece.nbytes]
    blocks = digests_of(pieces)
    sizes = [len(metadata), len(blocks), len(parts.code), sum(piece.nbytes for piece in pieces)]
    offsets, end = _layout(sizes)
    contents: tuple[Sequence[bytes | memoryview], ...] = (
        [metadata],
        [blocks],
        [parts.code],
        pieces,
    )
    checksums: list[bytes] = []
    # While the disk works. No pool: those refuse work once the program has come to its end, and a
    # cache may be written from then on.
    helper = threading.Thread(target=lambda: checksums.extend(map(_checksum, contents)))
    helper.start()
    try:
        for at, content in zip(offsets, contents, strict=True):
            _put(file, at, content)
    finally:
        helper.join()
    file.truncate(end)
    table = zip(offsets, sizes, checksums, strict=True)
    head = _HEADER.pack(MAGIC, FORMAT, ABI_VERSION, end)
    head += b"".join(_SECTION.pack(*row) for row in table)
    file.seek(0)
    file.write(head + _checksum([head]))
    file.flush()
    os.fsync(file.fileno())


def _metadata(parts: Parts) -> bytes:
    target = parts.target
    needed = _needed(target) if isinstance(target, Target) else dict(target)
    data = {"tool": parts.tool, "target": needed, "program": parts.program, "extra": parts.extra}
    return json.dumps(data, separators=(",", ":"), allow_nan=False).encode()


def _needed(target: Target) -> dict[str, Any]:
    return {
        "arch": target.arch,
        "features": sorted(target.code_features),
        "name": target.name,
        "cpu": target.cpu,
        "triple": target.triple,
        "machine": {"source": target.machine.source, "digest": target.machine.digest},
    }


def _layout(sizes: Sequence[int]) -> tuple[list[int], int]:
    """Where sections of these sizes begin, and where the file ends."""
    offsets, end = [], _START
    for name, size in zip(_SECTIONS, sizes, strict=True):
        if name in _MAPPED:
            end = -(-end // PAGE) * PAGE
        offsets.append(end)
        end += size
    return offsets, end


def _put(file: BinaryIO, at: int, content: Iterable[bytes | memoryview]) -> None:
    file.seek(at)
    for piece in content:
        file.writelines(piece[start : start + _CHUNK] for start in range(0, len(piece), _CHUNK))


def _checksum(content: Iterable[bytes | memoryview]) -> bytes:
    digest = hashlib.blake2b(digest_size=16)
    for piece in content:
        digest.update(piece)
    return digest.digest()


class Artefact:
    """An open file. Code and weights stay mapped as long as anybody has a view of them."""

    __slots__ = ("_blocks", "_checksum", "image", "metadata", "path", "program_json", "weights")

    def __init__(
        self,
        path: Path,
        metadata: dict[str, Any],
        image: Image,
        weights: memoryview,
        blocks: bytes,
        checksum: bytes,
    ) -> None:
        self.path, self.image, self.weights = path, image, weights
        self.program_json: Any = metadata["program"]
        self.metadata: dict[str, Any] = metadata
        self._blocks, self._checksum = blocks, checksum

    def check(self, threads: int = 1) -> None:
        """Compare all weights with the digests of their blocks, on so many threads (A111)."""
        found = damaged_range(self.weights, self._blocks, threads)
        if found is not None:
            damaged(self.path, "bytes {} to {} of its weights have changed".format(*found))

    def verify(self) -> None:
        """Compare all weights with their cryptographic checksum (A111)."""
        if _checksum([self.weights]) != self._checksum:
            damaged(self.path, "the weights do not fit their checksum")

    def leave_weights(self) -> None:
        """Let the system have the memory of weights that were read: nobody reads them soon."""
        mapped = self.weights.obj
        if isinstance(mapped, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
            with contextlib.suppress(OSError):
                mapped.madvise(mmap.MADV_DONTNEED)


def open_artefact(
    path: str | os.PathLike[str], *, verify: bool | None = None, threads: int = 1
) -> Artefact:
    """Check a file and map it; OSError if it cannot be read at all (K040 if there is none).

    Whether the code can run here is known before any of it is mapped (A113). `verify=False` leaves
    the weights unread: nothing may run with them then.
    """
    path = Path(path)
    try:
        file = path.open("rb")
    except FileNotFoundError:
        raise missing_file(path) from None
    with file:
        artefact = read_artefact(file, path)
    if verify is None:
        artefact.check(threads)
    elif verify:
        artefact.verify()
    return artefact


def read_artefact(file: BinaryIO, path: Path) -> Artefact:
    """A file that is open, with weights still to be checked; errors call it by its path."""
    metadata, blocks, code, weights = _read_header(path, file)
    data = _read_metadata(path, file, metadata)
    table = file.read(blocks.size)
    if _checksum([table]) != blocks.checksum:
        damaged(path, "the digests of its weights do not fit their checksum")
    _require_zeros(path, file, blocks, code)
    _require_zeros(path, file, code, weights)
    _require_fits(path, data["target"])
    with _map(path, file, code) as content:  # readable: nothing is run before it is checked
        if _checksum([content]) != code.checksum:
            damaged(path, "the code does not fit its checksum")
    image = Image.from_file(file.fileno(), code.offset, code.size)
    return Artefact(path, data, image, _map(path, file, weights), table, weights.checksum)


def damaged(path: Path, problem: str) -> NoReturn:
    """Raise the error for a file that cannot be what was written (A111)."""
    hint = "copy the file again, or compile the model again"
    raise ArtefactError(A111, {"file": path.name, "problem": problem}, hint=hint)


def _read_header(path: Path, file: BinaryIO) -> Iterator[_Section]:
    """The sections in order; refuses all but the one layout that their sizes allow."""
    head = file.read(_START)
    if head[: len(MAGIC)] != MAGIC:
        hint = f"give a file that was written by tilewright, usually `*{SUFFIX}`"
        raise ArtefactError(A110, {"file": path.name}, hint=hint)
    if len(head) < _START:
        damaged(path, "it ends inside of its header")
    _, version, abi, size = _HEADER.unpack_from(head)
    if (version, abi) != (FORMAT, ABI_VERSION):
        facts = {
            "file": path.name,
            "expected": f"format {FORMAT}, kernels of ABI {ABI_VERSION}",
            "found": f"format {version}, kernels of ABI {abi}",
        }
        hint = "compile the model again with this version"
        raise ArtefactError(A112, facts, hint=hint)
    if _checksum([head[:_CHECKSUM_AT]]) != head[_CHECKSUM_AT:]:
        damaged(path, "its header does not fit the checksum")
    found = os.fstat(file.fileno()).st_size
    if found != size:
        damaged(path, f"it has {found} bytes and should have {size}")
    rows = _SECTION.iter_unpack(head[_HEADER.size : _CHECKSUM_AT])
    sections = [_Section(*row) for row in rows]
    offsets, end = _layout([section.size for section in sections])
    if [section.offset for section in sections] != offsets or end != size:
        damaged(path, "its sections are not where they should be")
    if sections[1].size != table_bytes(sections[3].size):
        damaged(path, "it has not one digest for each block of its weights")
    return iter(sections)


def _require_zeros(path: Path, file: BinaryIO, before: _Section, after: _Section) -> None:
    """Nothing lies between two sections."""
    start = before.offset + before.size
    file.seek(start)
    if any(file.read(after.offset - start)):
        damaged(path, "there is something between its sections")


def _read_metadata(path: Path, file: BinaryIO, section: _Section) -> dict[str, Any]:
    if section.size > MAX_METADATA:
        damaged(path, f"its metadata would have {section.size} bytes")
    content = file.read(section.size)
    if _checksum([content]) != section.checksum:
        damaged(path, "the metadata do not fit their checksum")
    try:
        data = json.loads(content)
    except (ValueError, RecursionError):
        data = None
    if not _is_metadata(data):
        damaged(path, "the metadata do not say what they should")
    return dict(data)


def _is_metadata(data: object) -> bool:
    match data:
        case {
            "tool": str(),
            "target": {"arch": str(), "features": list() as features, "name": str(), "cpu": str()},
            "program": _,
            "extra": dict(),
        }:
            return all(isinstance(feature, str) for feature in features)
    return False


def _require_fits(path: Path, target: Mapping[str, Any]) -> None:
    """The code must be able to run on this machine."""
    arch, features = present()
    missing = sorted(set(target["features"]) - features)
    if arch != target["arch"]:
        missing = [f"the architecture {target['arch']}"]
    if missing:
        facts = {
            "file": path.name,
            "missing": ", ".join(missing),
            "compiled for": f"{target['name']} ({target['cpu']}, {target['arch']})",
        }
        hint = "compile the model here, or for a lower level such as `x86-64-v2`"
        raise ArtefactError(A113, facts, hint=hint)


def _map(path: Path, file: BinaryIO, section: _Section) -> memoryview:
    if not section.size:
        return memoryview(b"")
    try:
        mapped = mmap.mmap(
            file.fileno(),
            section.size,
            flags=mmap.MAP_SHARED,
            prot=mmap.PROT_READ,
            offset=section.offset,
        )
    except (ValueError, OverflowError):  # it has become shorter since we looked
        damaged(path, "it does not have all of its sections")
    if hasattr(mmap, "MADV_WILLNEED"):
        with contextlib.suppress(OSError):
            mapped.madvise(mmap.MADV_WILLNEED)
    return memoryview(mapped)
