"""One trial: for which workload on which machine, with which points, and what came of it.

Failures are records as well, so that nobody tries them again. The text of a record is canonical
JSON, the same in a database and in files of lines, and its checksum is over all of it. A text that
is not exactly what its record would write is damaged: there is one form only, by which merging
knows equal ones.

Times say little about other days: the machine had other neighbours and another frequency. So each
record has the time of the draft that was measured in the same turns, and records are compared by
the ratio of both.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from functools import cache, cached_property
from hashlib import blake2b
from typing import Any, Final

from tilewright.schedule.measured import kind_of_key
from tilewright.schedule.points import data_of, points_of
from tilewright.schedule.source import Workload
from tilewright.target import Target
from tilewright.tensor import ir as tir
from tilewright.tensor.structural import structural_hash
from tilewright.tensor.visit import walk
from tilewright.version import __version__

__all__ = ["FORMAT", "OK", "SLOWER", "OtherFormatError", "Record", "RecordError", "blocks_of"]
__all__ += ["checksum_of", "target_key", "text_of", "workload_key"]

FORMAT: Final = 2
"""To be raised whenever records change, or the same points make another schedule: records of any
other number are misses."""

OK: Final = "ok"
"""The outcome of a trial that was measured. Others say what went wrong: crash, timeout, memory,
wrong, build."""

SLOWER: Final = "slower"
"""The outcome of points that were faster alone, and are slower inside of a model: nobody uses them
any more."""

PRIVATE_LEVELS: Final = 2
"""Caches up to this level are those of a core; what a machine has beyond it, its tenants share."""


class RecordError(ValueError):
    """A text is no record, or a damaged one."""


class OtherFormatError(RecordError):
    """A record is intact, and of another version."""


def workload_key(workload: Workload) -> str:
    """What a record is found by: the program's structure, nominal threads, which are constants.

    Names do not matter, so constants are numbers of parameters.
    """
    names = [param.name for param in workload.program.params]
    fixed = ",".join(str(k) for k, name in enumerate(names) if name in workload.constants)
    return f"{structural_hash(workload.program)}-{workload.threads}-{fixed}"


def target_key(target: Target) -> str:
    """What machines must share so that times of one hold on the other.

    Not the machine model, since what is measured does not follow from it, and no number of cores:
    a process may use some of them only, and threads are a key of their own.
    """
    caches = [(c.level, c.size_bytes) for c in target.caches if c.level <= PRIVATE_LEVELS]
    facts = [target.arch, sorted(target.code_features), target.vector_bytes, caches]
    digest = blake2b(json.dumps(facts).encode(), digest_size=6).hexdigest()
    return f"{target.cpu}-{digest}"


def blocks_of(program: tir.Func) -> tuple[str, ...]:
    """Names of a program's blocks, in the order that equal programs share."""
    return tuple(node.name for node in walk(program.body) if isinstance(node, tir.Block))


@dataclass(frozen=True)
class Record:
    """What was tried, and what came of it.

    `points` are data of `schedule/points.py` by the last blocks of groups, `blocks` all blocks of
    the program that they name: an equal program may call them otherwise. A `trace` stands for a
    schedule that no points describe. `spread` is that of the turns, by their median; `detail` is
    what a failure said, and otherwise which search asked for it. `about` is what a learned model
    and other workloads make use of (`tuning/history.py`): recipe, sizes and features.
    """

    workload: str
    target: str
    threads: int
    label: str = ""
    outcome: str = OK
    points: Mapping[str, Any] = field(default_factory=dict, hash=False)
    blocks: tuple[str, ...] = ()
    trace: str = ""
    time_ns: float = 0.0
    reference_ns: float = 0.0
    spread: float = 0.0
    detail: str = ""
    about: Mapping[str, Any] = field(default_factory=dict, hash=False)
    when: str = field(default_factory=lambda: datetime.now(UTC).isoformat())
    version: str = __version__
    format: int = FORMAT

    def __post_init__(self) -> None:
        for name in ("time_ns", "reference_ns", "spread"):
            object.__setattr__(self, name, float(getattr(self, name)))
        object.__setattr__(self, "blocks", tuple(self.blocks))
        _require_sound(self)

    @classmethod
    def of(
        cls,
        workload: Workload,
        threads: int,
        points: Mapping[str, object] | None = None,
        **facts: Any,
    ) -> Record:
        """The record of a trial with points of recipes, by the last blocks of their groups."""
        known = {block: data_of(point) for block, point in (points or {}).items()}
        where = workload_key(workload), target_key(workload.target), threads
        return cls(*where, points=known, blocks=blocks_of(workload.program), **facts)

    @property
    def is_ok(self) -> bool:
        """Whether it was measured."""
        return self.outcome == OK

    @property
    def ratio(self) -> float | None:
        """Its time by that of the draft, the less the better; None for a failure."""
        return self.time_ns / self.reference_ns if self.is_ok else None

    @property
    def gain(self) -> float:
        """How many times as fast as the draft it is; 0 for a failure."""
        return self.reference_ns / self.time_ns if self.is_ok else 0.0

    @property
    def kind(self) -> str:
        """What it is about: a kernel, a site, a conversion or a model."""
        return kind_of_key(self.workload)

    @property
    def pays(self) -> bool:
        """Whether it is faster than the draft."""
        return self.is_ok and self.time_ns < self.reference_ns

    def points_for(self, program: tir.Func) -> dict[str, object]:
        """Its points by the blocks of a program with the same key; ValueError if there are none."""
        renamed = dict(zip(self.blocks, blocks_of(program), strict=True))
        return {renamed.get(block, block): p for block, p in points_of(self.points).items()}

    @cached_property
    def points_key(self) -> str:
        """What equal points have in common, whatever their blocks are called, and whichever
        decisions their recipes had when they were written.

        ValueError if they are no points of today's recipes.
        """
        places = {block: str(number) for number, block in enumerate(self.blocks)}
        points = {places.get(b, b): data_of(p) for b, p in points_of(self.points).items()}
        return text_of([points, self.trace])

    def is_readable(self) -> bool:
        """Whether its points are points of today's recipes."""
        try:
            points_of(self.points)
        except ValueError:
            return False
        return bool(self.points or self.trace)

    @cached_property
    def text(self) -> str:
        """All of it, as canonical JSON."""
        return text_of({name: getattr(self, name) for name in _fields()})

    @cached_property
    def checksum(self) -> str:
        """32 hexadecimal digits: what it is, and whether it still is."""
        return checksum_of(self.text)

    @classmethod
    def from_text(cls, text: str, checksum: str) -> Record:
        """The inverse of `text`; raises `RecordError` for anything else."""
        if checksum_of(text) != checksum:
            raise RecordError("its checksum differs")
        try:
            data = json.loads(text)
            if data["format"] != FORMAT:
                raise OtherFormatError(f"its format is {data['format']}, not {FORMAT}")
            if data.keys() != _fields():
                raise RecordError("it has other fields")
            record = cls(**data)
        except RecordError:
            raise
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as problem:
            raise RecordError(f"it is no record ({type(problem).__name__})") from None
        if record.text != text:
            raise RecordError("it is not written as records are")
        return record


@cache
def _fields() -> frozenset[str]:
    return frozenset(own.name for own in fields(Record))


def text_of(data: object) -> str:
    """Data as JSON in its one form."""
    return json.dumps(data, sort_keys=True, separators=(",", ":"), allow_nan=False)


def checksum_of(text: str) -> str:
    """The checksum of a text."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def _require_sound(record: Record) -> None:
    """Raise `RecordError` where a field cannot be what it says."""
    texts = [record.workload, record.target, record.label, record.outcome, record.trace]
    texts += [record.detail, record.when, record.version, *record.blocks]
    numbers = record.time_ns, record.reference_ns, record.spread
    if not all(type(text) is str for text in texts):
        raise RecordError("a text of it is none")
    if type(record.threads) is not int or record.threads < 1 or type(record.format) is not int:
        raise RecordError(f"it has {record.threads!r} threads")
    if not all(math.isfinite(number) and number >= 0 for number in numbers):
        raise RecordError("a time of it is no time")
    if not (record.workload and record.target and record.outcome):
        raise RecordError("it does not say what it is about")
    if record.is_ok and not (record.time_ns and record.reference_ns):
        raise RecordError("it was measured, and has no time")
    if not all(isinstance(part, Mapping) for part in (record.points, record.about)):
        raise RecordError("its points are none")
