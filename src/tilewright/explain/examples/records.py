"""U, K07: databases of records that cannot be used, or that are not there."""

from __future__ import annotations

from tilewright.explain.example import example

__all__ = ["EXAMPLES"]

FOLDER = """
import os
import tempfile
from pathlib import Path

from tilewright.records import Database, Record

folder = tempfile.TemporaryDirectory()
os.chdir(folder.name)
record = Record("matmul", "znver4", 2, time_ns=90.0, reference_ns=100.0)
"""

SCHEMA = f"""{FOLDER}
import contextlib
import sqlite3


def with_schema(number):
    \"\"\"A database whose tables are of another version.\"\"\"
    Database("records.sqlite").close()
    with contextlib.closing(sqlite3.connect("records.sqlite")) as file:
        file.execute(f"pragma user_version = {{number}}")
"""

LINES = f"{FOLDER}\nfrom tilewright.records.jsonl import import_lines, line_of\n"

EXAMPLES = (
    example(
        "U001",
        """The file is something else than a database of records, or SQLite finds it damaged: cut
        off, or overwritten. `tw.compile` warns of it and drafts kernels; nothing changes the file.
        Single records that are damaged are no error: they are passed over, and
        `tilewright db check` finds them.""",
        given=FOLDER,
        alone=True,
        wrong="""
        Path("records.sqlite").write_bytes(b"what somebody else has written " * 100)
        Database("records.sqlite")
        """,
        right='Database("records.sqlite").add(record)',
    ),
    example(
        "U002",
        """The file cannot be opened, read or written now: it is a folder, the disk is full, it
        belongs to somebody else, or another process has kept it for half a minute.""",
        given=FOLDER,
        alone=True,
        wrong="""
        Path("records.sqlite").mkdir()
        Database("records.sqlite")
        """,
        right='Database("records.sqlite").add(record)',
    ),
    example(
        "U003",
        """The tables of the file are of a newer version, which this one cannot read. Single records
        of other versions are no error: they are passed over.""",
        given=SCHEMA,
        alone=True,
        wrong="""
        with_schema(1000)
        Database("records.sqlite")
        """,
        right="""
        with_schema(1)
        Database("records.sqlite")
        """,
    ),
    example(
        "U004",
        """A file to import has lines, and none of them is a record that is intact. Where some are,
        these are added, and the others are told of.""",
        given=LINES,
        alone=True,
        wrong='import_lines(Database("records.sqlite"), ["matmul 90 ns"], "notes.txt")',
        right='import_lines(Database("records.sqlite"), [line_of(record)], "records.jsonl")',
    ),
    example(
        "K070",
        """A command needs a database or a file with records, and there is nothing at this path.
        Whatever adds records makes the file.""",
        given=FOLDER,
        alone=True,
        wrong="$ tilewright db check --database records.sqlite",
        right="""
        Database("records.sqlite").add(record)
        from tilewright.cli import main
        main(["--debug", "db", "check", "--database", "records.sqlite"])
        """,
    ),
    example(
        "K071",
        """The text is neither the beginning of a workload's key nor a part of a label.""",
        given=f'{FOLDER}\nDatabase("records.sqlite").add(record)',
        alone=True,
        wrong="$ tilewright db best conv --database records.sqlite",
        right="$ tilewright db best matmul --database records.sqlite",
    ),
)
