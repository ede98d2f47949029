"""The file of a database: opened, made, and known by its header.

SQLite keeps what was committed, whatever happens to a process; in WAL mode, readers and the one
writer of the moment do not wait for each other. What it cannot do comes as errors with codes:

* U001, not a database of records, or damaged; it stays as it is, for whoever wants to look;
* U002, it cannot be read or written now: rights, space, another process that does not end;
* U003, a newer tilewright has made it.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final
from urllib.parse import quote

from tilewright.errors import Code, TuneError
from tilewright.folders import make_folder
from tilewright.records.queries import TABLES

__all__ = ["SCHEMA", "open_to_read", "open_to_write", "telling"]

U001 = Code("U001", "`{path}` is no database of records, or a damaged one")
U002 = Code("U002", "the database `{path}` cannot be used now")
U003 = Code("U003", "the database `{path}` was made by a newer version of tilewright")

SCHEMA: Final = 1
"""The layout of the tables; files of a greater one are refused."""

APPLICATION: Final = 0x54575243
"""What the header of our files says that they are."""

WAIT_SECONDS: Final = 30.0
"""For other writers; each takes milliseconds."""

_PASSING: Final = ("BUSY", "LOCKED", "READONLY", "FULL", "IOERR", "CANTOPEN", "PERM", "AUTH")
"""Errors of SQLite that say nothing about what is in the file."""


@contextmanager
def telling(path: Path) -> Iterator[None]:
    """Let whatever SQLite raises be one of our errors."""
    try:
        yield
    except sqlite3.Error as problem:
        name = getattr(problem, "sqlite_errorname", "").removeprefix("SQLITE_")
        facts = {"path": path, "reason": str(problem)}
        if name.startswith(_PASSING):
            hint = "it must be a file in a folder that can be written, on a disk with space"
            raise TuneError(U002, facts, hint=hint) from None
        raise _damaged(path, str(problem)) from None
    except UnicodeDecodeError:  # what SQLite has to say quotes what is damaged
        raise _damaged(path, "its tables are not those of records") from None
    except OSError as problem:
        facts = {"path": path, "reason": problem.strerror or str(problem)}
        raise TuneError(U002, facts, hint="name another file, in a folder of yours") from None


def open_to_read(path: Path) -> sqlite3.Connection:
    """A connection that changes nothing; the file must be there."""
    with telling(path):
        try:
            connection = _connected(path, "mode=ro")
            is_empty = _is_empty(connection, path)
        except sqlite3.OperationalError:
            # The folder cannot be written: without a writer, there is nothing to share with one.
            if not path.is_file() or _beside(path, "-wal").exists():
                raise
            connection = _connected(path, "mode=ro&immutable=1")
            is_empty = _is_empty(connection, path)
        if is_empty:  # whoever makes it has only just begun
            connection.close()
            connection = sqlite3.connect(":memory:", check_same_thread=False, isolation_level=None)
            connection.executescript(TABLES)
        return connection


def open_to_write(path: Path) -> sqlite3.Connection:
    """A connection to a file that is made if there is none, with the folders around it."""
    with telling(path):
        make_folder(path.absolute().parent)
        connection = _connected(path, "mode=rwc")
        if _is_empty(connection, path):
            _use_log(connection)
            connection.execute("begin immediate")
            if _is_empty(connection, path):  # else another process was faster
                for statement in TABLES.split(";"):
                    connection.execute(statement)
                connection.execute(f"pragma application_id = {APPLICATION}")
                connection.execute(f"pragma user_version = {SCHEMA}")
            connection.execute("commit")
        # What is committed survives the death of any process; that of the machine may take the
        # last records, and never the file.
        connection.execute("pragma synchronous = normal")
        return connection


def _connected(path: Path, mode: str) -> sqlite3.Connection:
    name = quote(os.path.abspath(path))  # noqa: PTH100  (no link is followed)
    connection = sqlite3.connect(
        f"file:{name}?{mode}",
        uri=True,
        timeout=WAIT_SECONDS,
        isolation_level=None,
        check_same_thread=False,
    )
    connection.text_factory = _text
    return connection


def _text(data: bytes) -> str:
    """Damaged text is text all the same: its checksum differs, and other rows can be read."""
    return data.decode("utf-8", "replace")


def _is_empty(connection: sqlite3.Connection, path: Path) -> bool:
    """Whether nothing is in a file yet; an error if it is not ours, or not for us."""
    (application,) = connection.execute("pragma application_id").fetchone()
    (schema,) = connection.execute("pragma user_version").fetchone()
    if application == APPLICATION and schema <= SCHEMA:
        return False
    if application == APPLICATION:
        facts = {"path": path, "expected": f"schema {SCHEMA} or less", "found": f"schema {schema}"}
        hint = "use that version, or name another file by TILEWRIGHT_DATABASE"
        raise TuneError(U003, facts, hint=hint)
    (tables,) = connection.execute("select count(*) from sqlite_master").fetchone()
    if application or tables:
        raise _damaged(path, "it is a database of something else")
    return True


def _damaged(path: Path, problem: str) -> TuneError:
    hint = "move it away, or name another one by TILEWRIGHT_DATABASE; `tilewright db import` "
    hint += "brings back what was exported"
    return TuneError(U001, {"path": path, "problem": problem}, hint=hint)


def _use_log(connection: sqlite3.Connection) -> None:
    """Switch to WAL, which waits for nobody by itself."""
    end = time.monotonic() + WAIT_SECONDS
    while True:
        try:
            connection.execute("pragma journal_mode = wal")
        except sqlite3.OperationalError:
            if time.monotonic() > end:
                raise
            time.sleep(0.01)
        else:
            return


def _beside(path: Path, ending: str) -> Path:
    return path.with_name(path.name + ending)
