"""A file of records: many processes add to it at once, and everybody reads the best.

Each call is one short transaction. Rows have the record as text, and in columns what it is found
by; a row whose text does not fit its checksum or its columns is damaged. Damaged rows, and those of
other formats, are passed over wherever records are asked for: a bad record is a miss and no error.
What is wrong with the file itself is one (`file.py`).
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

from tilewright.errors import TuneError
from tilewright.records.file import open_to_read, open_to_write, telling
from tilewright.records.queries import (
    ADD,
    ALL,
    BEST,
    COUNT,
    DROP_BEYOND,
    DROP_OLDER,
    DROP_VERDICTS,
    OF_KIND,
    OF_WORKLOAD,
    REMOVE,
    TASKS,
    WINNERS,
    WITHDRAWN,
)
from tilewright.records.record import FORMAT, SLOWER, Record, RecordError
from tilewright.records.withdrawn import NOTHING_WITHDRAWN, Withdrawn, withdrawn_in
from tilewright.schedule.measured import KERNEL, kind_of_key

__all__ = ["Database", "Row", "Task"]

BATCH: Final = 500
"""Rows that are read or written in one transaction."""

_inherited: Final[list[sqlite3.Connection]] = []
"""Connections of the process that this one was forked from: SQLite forbids to touch them, even to
close them."""


@dataclass(frozen=True)
class Row:
    """A record as it lies in a database, of any format, and perhaps damaged."""

    number: int
    checksum: Any
    columns: tuple[Any, ...]
    text: Any

    def record(self) -> Record:
        """What it says; `RecordError` if that cannot be trusted."""
        if not isinstance(self.text, str):
            raise RecordError("it has no text")
        found = Record.from_text(self.text, self.checksum)
        if _columns_of(found) != self.columns:
            raise RecordError("it lies in the place of another one")
        return found


@dataclass(frozen=True)
class Task:
    """What records are about: a workload on a kind of machine, with so many threads."""

    workload: str
    target: str
    threads: int
    trials: int
    failures: int
    last: int
    """The number of the row that was added last."""


class Database:
    """Records in a file, which is made when it is first written to, unless it is `readonly`.

    It may be used from several threads, and after a fork from both processes.
    """

    def __init__(self, path: str | os.PathLike[str], *, readonly: bool = False) -> None:
        self.path, self.readonly = Path(path), readonly
        self._lock = threading.RLock()
        self._connection: sqlite3.Connection | None = None
        self._process = os.getpid()
        self._connected()  # whatever is wrong with the file is said now

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Database({str(self.path)!r})"

    def close(self) -> None:
        """Give the file back; asking again opens it again."""
        with self._lock:
            if self._connection is not None and self._process == os.getpid():
                self._connection.close()
            self._connection = None

    def add(self, records: Record | Iterable[Record]) -> int:
        """Add a record, or several in one transaction; how many were not there yet."""
        given = [records] if isinstance(records, Record) else records
        return self._put([(r.checksum, *_columns_of(r), r.text) for r in given])

    def add_rows(self, rows: Iterable[Row]) -> int:
        """Add rows of another database as they are, whatever their format."""
        return self._put([(row.checksum, *row.columns, row.text) for row in rows])

    def best(self, workload: str, target: str, threads: int, count: int = 1) -> list[Record]:
        """The records that gain most over the draft, those that can be used, the best first."""
        about = {"workload": workload, "target": target, "threads": threads, "format": FORMAT}
        found: list[Record] = []
        passed = 0
        while len(found) < count:
            with self._asking() as connection:
                page = connection.execute(BEST, {**about, "most": count, "passed": passed})
                rows = [_row(columns) for columns in page.fetchall()]
            usable = [record for row in rows if (record := _usable(row)) is not None]
            found += usable[: count - len(found)]
            passed += len(rows)
            if len(rows) < count:
                break
        return found

    def winners(self, target: str, threads: int) -> dict[str, Record]:
        """The best record of each kernel that has one faster than the draft.

        Points that were withdrawn, since they are slower inside of a model, are passed over.
        """
        about = {"target": target, "threads": threads, "format": FORMAT}
        with self._asking() as connection:
            found = connection.execute(WINNERS, about).fetchall()
        withdrawn = self.withdrawn(target, threads)
        winners: dict[str, Record] = {}
        for row in map(_row, found):
            if kind_of_key(str(row.columns[0])) != KERNEL:
                continue
            record, without = _usable(row), withdrawn.get(row.columns[0], NOTHING_WITHDRAWN)
            if record is None or record in without:
                # A damaged one must not hide those behind it, and nor must one that was withdrawn.
                best = self._best_without(row.columns[0], target, threads, without)
                record = best[0] if best else None
            if record is not None and record.pays and record.target == target:
                winners.setdefault(record.workload, record)
        return winners

    def withdrawn(self, target: str, threads: int) -> dict[str, Withdrawn]:
        """What is not to be used of each workload."""
        about = {"target": target, "threads": threads, "format": FORMAT, "outcome": SLOWER}
        with self._asking() as connection:
            rows = connection.execute(WITHDRAWN, about).fetchall()
        found: list[Record] = []
        for row in map(_row, rows):
            with suppress(RecordError):
                found.append(row.record())
        return withdrawn_in(found)

    def usable(self, workload: str, target: str, threads: int, count: int = 1) -> list[Record]:
        """The best records of different points that are faster than the draft, none withdrawn."""
        without = self.withdrawn(target, threads).get(workload, NOTHING_WITHDRAWN)
        return self._best_without(workload, target, threads, without, count)

    def _best_without(
        self, workload: str, target: str, threads: int, without: Withdrawn, count: int = 1
    ) -> list[Record]:
        most = 4 * count
        while True:
            best = self.best(workload, target, threads, most)
            found: dict[str, Record] = {}
            for record in best:
                if record.pays and record not in without:
                    found.setdefault(record.points_key, record)
            if len(found) >= count or len(best) < most:
                return list(found.values())[:count]
            most *= 4

    def of_kind(self, kind: str, target: str, threads: int) -> list[Record]:
        """What was measured of sites, conversions or models, in the order in which it came."""
        about = {"kind": kind, "target": target, "threads": threads, "format": FORMAT}
        with self._asking() as connection:
            rows = [_row(columns) for columns in connection.execute(OF_KIND, about).fetchall()]
        found: list[Record] = []
        for row in rows:
            with suppress(RecordError):
                found.append(row.record())
        return found

    def records(
        self, workload: str | None = None, target: str | None = None, threads: int | None = None
    ) -> Iterator[Record]:
        """All that can be trusted, failures too, in the order in which they came."""
        for row in self.rows(workload, target, threads):
            with suppress(RecordError):
                yield row.record()

    def __iter__(self) -> Iterator[Record]:
        return self.records()

    def __len__(self) -> int:
        with self._asking() as connection:
            (count,) = connection.execute(COUNT).fetchone()
        return int(count)

    def rows(
        self, workload: str | None = None, target: str | None = None, threads: int | None = None
    ) -> Iterator[Row]:
        """Everything there is, damaged rows too.

        They come in batches: no transaction lasts as long as somebody looks at them.
        """
        query = ALL if workload is None else OF_WORKLOAD
        about = {"workload": workload, "target": target, "threads": threads, "most": BATCH}
        after = -(1 << 63)
        while True:
            with self._asking() as connection:
                found = connection.execute(query, {**about, "after": after}).fetchall()
            yield from map(_row, found)
            if len(found) < BATCH:
                return
            after = found[-1][0]

    def tasks(self) -> list[Task]:
        """What there are records about, the last one first."""
        with self._asking() as connection:
            return [Task(*columns) for columns in connection.execute(TASKS).fetchall()]

    def remove(self, numbers: Iterable[int]) -> int:
        """Remove rows; how many there were."""
        with self._writing() as connection:
            before = connection.total_changes
            connection.executemany(REMOVE, [(number,) for number in numbers])
            return connection.total_changes - before

    def prune(self, keep: int) -> int:
        """Keep the best so many of each task, with all failures; how many were removed.

        Records of older formats, which nobody can use any more, go as well.
        """
        with self._writing() as connection:
            before = connection.total_changes
            connection.execute(DROP_BEYOND, {"format": FORMAT, "keep": keep})
            connection.execute(DROP_VERDICTS, {"format": FORMAT})
            connection.execute(DROP_OLDER, (FORMAT,))
            removed = connection.total_changes - before
        with suppress(TuneError), self._asking() as connection:  # others may be in the way
            connection.execute("vacuum")
        return removed

    def problems(self) -> list[str]:
        """What is wrong with the file as a whole, by SQLite's own check."""
        with self._asking() as connection:
            found = [str(text) for (text,) in connection.execute("pragma integrity_check(20)")]
        return [] if found == ["ok"] else found

    def _put(self, rows: Sequence[tuple[Any, ...]]) -> int:
        with self._writing() as connection:
            before = connection.total_changes
            connection.executemany(ADD, rows)
            return connection.total_changes - before

    @contextmanager
    def _asking(self) -> Iterator[sqlite3.Connection]:
        with self._lock, telling(self.path):
            yield self._connected()

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """A transaction: all of it, or nothing."""
        with self._asking() as connection:
            connection.execute("begin immediate")
            try:
                yield connection
                connection.execute("commit")
            except BaseException:
                with suppress(sqlite3.Error):
                    connection.execute("rollback")
                raise

    def _connected(self) -> sqlite3.Connection:
        with self._lock:
            if self._connection is not None and self._process != os.getpid():
                _inherited.append(self._connection)
                self._connection = None
            if self._connection is None:
                opened = open_to_read if self.readonly else open_to_write
                self._connection, self._process = opened(self.path), os.getpid()
            return self._connection


def _row(columns: tuple[Any, ...]) -> Row:
    number, checksum, *found, text = columns
    return Row(number, checksum, tuple(found), text)


def _columns_of(record: Record) -> tuple[Any, ...]:
    """What a record is found by, in the order of the table."""
    r = record
    return r.workload, r.target, r.threads, r.format, r.outcome, r.ratio


def _usable(row: Row) -> Record | None:
    """The record of a row, if it can be trusted and its points can be read."""
    with suppress(RecordError):
        record = row.record()
        return record if record.is_readable() else None
    return None
