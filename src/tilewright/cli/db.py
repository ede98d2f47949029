"""`tilewright db`: what was measured, which of it is best, and how databases are put together."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tilewright import options
from tilewright.cli.db_text import added_text, best_text, check_text, list_text
from tilewright.cli.models import add_command
from tilewright.cli.output import complain, say, say_json
from tilewright.cli.writing import written_file
from tilewright.errors import Code, UserError
from tilewright.records import Database, Record
from tilewright.records.database import Task
from tilewright.records.jsonl import Added, import_lines, lines_of, merge
from tilewright.records.record import OtherFormatError, RecordError
from tilewright.shown import counted

__all__ = ["add_to", "database_path"]

K070 = Code("K070", "there is no database of records at `{path}`")
K071 = Code("K071", "no records are about `{workload}`")

_EXAMPLES = """\
examples:
  tilewright db list                        workloads, trials, best times
  tilewright db best                        the best record of each workload
  tilewright db best 3f9a -n 5              the best five of one, in full
  tilewright db merge theirs.sqlite         add the records of another database
  tilewright db export records.jsonl        one record in each line, as JSON
  tilewright db import records.jsonl        the same back; twice changes nothing
  tilewright db prune --keep 20             the best 20 of each, and failures
  tilewright db check --drop                find damaged records, remove them

The database is that of --database, else of TILEWRIGHT_DATABASE, else
`records.sqlite` in the user's data folder. See docs/tuning.md.
exit codes: 0 done, 1 an error (its code is printed), or `check` has found
damage that is still there, 2 wrong arguments
"""

HINT = "name another file; its folder must be there"
_OUTPUT = "-"
"""The file that stands for standard output, or input."""


@dataclass(frozen=True)
class Best:
    """A task, what people call it, and its best records."""

    task: Task
    label: str
    records: list[Record]

    @classmethod
    def of(cls, database: Database, task: Task, count: int) -> Best:
        """The best so many; where all trials failed, one of these has the label."""
        about = task.workload, task.target, task.threads
        records = database.best(*about, count)
        known = records or database.records(*about)
        return cls(task, next((record.label for record in known), ""), records)


def add_to(commands: Any) -> None:
    """Add the command's parsers."""
    parser = add_command(commands, "db", "look into the tuning database, or change it", _EXAMPLES)
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)

    def action(name: str, run: Callable[..., int], summary: str) -> Any:
        own = actions.add_parser(name, help=summary, description=f"{summary.capitalize()}.")
        own.add_argument(
            "--database", type=Path, default=None, metavar="FILE",
            help="default: TILEWRIGHT_DATABASE, or records.sqlite in the data folder",
        )  # fmt: skip
        own.add_argument("--json", action="store_true", help="print JSON")
        own.set_defaults(run=run)
        return own

    action("list", _list, "workloads with their trials and best times")
    best = action("best", _best, "the best records of workloads, in full")
    best.add_argument("workload", nargs="?", default="", help="how its key begins, or its label")
    best.add_argument("-n", "--count", type=_positive, default=1, help="records of each (1)")
    own = action("merge", _merge, "add the records of other databases")
    own.add_argument("others", nargs="+", type=Path, metavar="FILE", help="a database")
    own = action("export", _export, "write all records as lines of JSON")
    own.add_argument("file", nargs="?", default=_OUTPUT, help="default: standard output")
    own = action("import", _import, "add records from lines of JSON")
    own.add_argument("files", nargs="+", metavar="FILE", help="lines of JSON; - for the input")
    own = action("prune", _prune, "keep the best records of each workload, and failures")
    own.add_argument("--keep", type=_positive, required=True, metavar="N", help="how many")
    own = action("check", _check, "verify every record, and the file")
    own.add_argument("--drop", action="store_true", help="remove what is damaged")


def _list(arguments: argparse.Namespace) -> int:
    found = [_summary(best) for best in _bests(arguments, 1)]
    _print(arguments, found, list_text)
    return 0


def _best(arguments: argparse.Namespace) -> int:
    wanted = arguments.workload
    found = [best for best in _bests(arguments, arguments.count) if _is_about(best, wanted)]
    if wanted and not found:
        hint = "`tilewright db list` has the keys and labels of all"
        raise UserError(K071, {"workload": wanted}, hint=hint)
    records = [
        {**asdict(record), "checksum": record.checksum, "gain": record.gain}
        for best in found
        for record in best.records
    ]
    _print(arguments, records, best_text)
    return 0


def _merge(arguments: argparse.Namespace) -> int:
    with _opened(arguments, to_write=True) as database:
        facts = {}
        for path in arguments.others:
            _require_there(path)
            with Database(path, readonly=True) as other:
                facts[str(path)] = _told(path, merge(database, other))
    _print(arguments, facts, added_text)
    return 0


def _export(arguments: argparse.Namespace) -> int:
    with _opened(arguments) as database:
        if arguments.file == _OUTPUT:
            for line in lines_of(database):
                say(line)
            return 0
        count = 0
        with written_file(Path(arguments.file), HINT) as file:
            for line in lines_of(database):
                file.write(f"{line}\n".encode())
                count += 1
    facts = {"file": arguments.file, "records": count}
    _print(arguments, facts, lambda f: f"{f['file']}: {counted(f['records'], 'record')}")
    return 0


def _import(arguments: argparse.Namespace) -> int:
    with _opened(arguments, to_write=True) as database:
        facts = {}
        for name in arguments.files:
            if name != _OUTPUT:
                _require_there(Path(name))
            facts[name] = _told(name, import_lines(database, _lines(name), name))
    _print(arguments, facts, added_text)
    return 0


def _prune(arguments: argparse.Namespace) -> int:
    with _opened(arguments, to_write=True) as database:
        removed = database.prune(arguments.keep)
        facts = {"removed": removed, "kept": len(database)}
    _print(
        arguments, facts, lambda f: f"removed {counted(f['removed'], 'record')}, kept {f['kept']}"
    )
    return 0


def _check(arguments: argparse.Namespace) -> int:
    with _opened(arguments, to_write=arguments.drop) as database:
        bad: dict[int, str] = {}
        count = other = 0
        for row in database.rows():
            count += 1
            try:
                row.record()
            except OtherFormatError:
                other += 1
            except RecordError as problem:
                bad[row.number] = str(problem)
        dropped = database.remove(bad) if arguments.drop and bad else 0
        facts = {
            "database": str(database.path),
            "records": count,
            "other_format": other,
            "damaged": [{"number": number, "problem": bad[number]} for number in bad],
            "dropped": dropped,
            "file_problems": database.problems(),
        }
    _print(arguments, facts, check_text)
    return 1 if facts["file_problems"] or len(bad) > dropped else 0


def database_path(arguments: argparse.Namespace) -> Path:
    """Where the database is that is meant; K070 if there is to be none."""
    path: Path | None = arguments.database or options.database()
    if path is None:
        hint = "TILEWRIGHT_DATABASE says that there is to be none: name one by --database"
        raise UserError(K070, {"path": options.NO_DATABASE}, hint=hint)
    return path


def _opened(arguments: argparse.Namespace, *, to_write: bool = False) -> Database:
    """The database that is meant; the default one need not be there yet."""
    path = database_path(arguments)
    if not to_write and not path.exists():
        hint = "name another by --database; `tilewright db import` makes one"
        raise UserError(K070, {"path": path}, hint=hint)
    return Database(path, readonly=not to_write)


def _require_there(path: Path) -> None:
    if not path.exists():
        raise UserError(K070, {"path": path}, hint="check the path")


def _lines(name: str) -> Iterator[str]:
    if name == _OUTPUT:
        yield from sys.stdin
        return
    try:
        with Path(name).open(encoding="utf-8", errors="replace") as file:
            yield from file
    except OSError as problem:
        raise UserError(K070, {"path": name, "reason": problem.strerror}, hint=HINT) from None


def _bests(arguments: argparse.Namespace, count: int) -> list[Best]:
    """All tasks with their best records; none where nothing was ever measured."""
    default = options.database()
    if arguments.database is None and default is not None and not default.exists():
        return []
    with _opened(arguments) as database:
        return [Best.of(database, task, count) for task in database.tasks()]


def _is_about(best: Best, wanted: str) -> bool:
    return best.task.workload.startswith(wanted) or wanted in best.label


def _summary(best: Best) -> dict[str, Any]:
    task, record = best.task, next(iter(best.records), None)
    return {
        "workload": task.workload,
        "label": best.label,
        "target": task.target,
        "threads": task.threads,
        "trials": task.trials,
        "failures": task.failures,
        "time_ns": record.time_ns if record else None,
        "reference_ns": record.reference_ns if record else None,
        "gain": record.gain if record else None,
    }


def _told(source: object, added: Added) -> dict[str, Any]:
    """What was added, for programs; what was left out is a complaint."""
    for problem in added.bad[:3]:
        complain(f"tilewright: {source}: {problem}; left out")
    return {"added": added.added, "known": added.known, "bad": len(added.bad)}


def _print(arguments: argparse.Namespace, facts: Any, text: Callable[[Any], str]) -> None:
    if arguments.json:
        say_json(facts)
    else:
        say(text(facts))


def _positive(text: str) -> int:
    if not (text.isascii() and text.isdigit()) or not 0 < int(text) < 1 << 31:
        raise argparse.ArgumentTypeError(f"`{text}` is not a number of records")
    return int(text)
