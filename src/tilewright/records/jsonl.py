"""Records as lines of JSON: what databases exchange, and what other programs read and write.

    {"checksum":"91f0…","record":{"blocks":["C"],"detail":"","format":1,…}}

A line is checked like a row of a database. What is damaged is told and left out; what is there
already changes nothing, so that the same file may be imported again and again.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tilewright.errors import Code, TuneError
from tilewright.records.database import BATCH, Database, Row
from tilewright.records.record import OtherFormatError, Record, RecordError, checksum_of, text_of

__all__ = ["Added", "import_lines", "line_of", "lines_of", "merge", "record_of"]

U004 = Code("U004", "`{source}` has no records")


@dataclass(frozen=True)
class Added:
    """What became of records that were to be added."""

    added: int = 0
    known: int = 0
    bad: tuple[str, ...] = ()
    """What was left out, and why."""


def line_of(record: Record) -> str:
    """A record as one line."""
    return f'{{"checksum":"{record.checksum}","record":{record.text}}}'


def lines_of(database: Database) -> Iterator[str]:
    """All records of a database that can be trusted."""
    return (line_of(record) for record in database)


def record_of(line: str) -> Record:
    """The record of a line; raises `RecordError` for anything else."""
    try:
        data = json.loads(line)
        checksum, text = data["checksum"], text_of(data["record"])
    except (ValueError, LookupError, TypeError, RecursionError):
        raise RecordError("it is no line of a record") from None
    return Record.from_text(text, checksum)


def import_lines(database: Database, lines: Iterable[str], source: str = "lines") -> Added:
    """Add the records of lines; U004 if there are lines, and no record among them."""
    bad: list[str] = []
    total = added = 0
    batch: list[Record] = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            batch.append(record_of(line))
            total += 1
        except RecordError as problem:
            bad.append(f"line {number}: {problem}")
        if len(batch) == BATCH:
            added += database.add(batch)
            batch.clear()
    added += database.add(batch)
    if bad and not total:
        facts = {"source": source, "found": bad[0]}
        hint = "`tilewright db export` writes such a file: one record as JSON in each line"
        raise TuneError(U004, facts, hint=hint)
    return Added(added, total - added, tuple(bad))


def merge(into: Database, other: Database) -> Added:
    """Add whatever is intact in another database, failures and records of other formats, too."""
    bad: list[str] = []
    total = added = 0
    batch: list[Row] = []
    for row in other.rows():
        problem = _problem(row)
        if problem:
            bad.append(f"record {row.number}: {problem}")
            continue
        total += 1
        batch.append(row)
        if len(batch) == BATCH:
            added += into.add_rows(batch)
            batch.clear()
    added += into.add_rows(batch)
    return Added(added, total - added, tuple(bad))


def _problem(row: Row) -> str:
    """Why a row is not to be merged; "" if it is intact."""
    try:
        row.record()
    except OtherFormatError:
        return "" if checksum_of(row.text) == row.checksum else "its checksum differs"
    except RecordError as problem:
        return str(problem)
    return ""
