"""Run the node tests of the `onnx` package, and say how many of them are native code.

python scripts/conformance.py                              all of them, compiled
python scripts/conformance.py 'conv*' --interpret          some, by the meaning of their graphs
python scripts/conformance.py --page docs/conformance.md   also the page of the documentation

Each case runs in a worker process: one that crashes or hangs fails alone. With `--json`, a case is
a line of that file as soon as it is done; with `--keep` those that are there already are not run
again, so that a tally can be made in parts.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from fuzz.apart import Gone, Limits, each_apart
from tests.onnx.conformance import Outcome, by_operator, compiled, failing, interpreted, outcome
from tests.onnx.conformance_page import KINDS, page
from tests.onnx.node_cases import node_cases, with_constants
from tilewright.cli.progress import ProgressLine


def main() -> int:
    """The exit code is 1 if a case fails."""
    options = _arguments()
    with ProgressLine() as line:
        line.say("conformance: make the cases")
        names = {case.name for pattern in options.pattern for case in node_cases(pattern)}
        kept = read(options.json) if options.keep else {}
        cases = [case for case in node_cases() if case.name in names - kept.keys()]
        if options.constants:
            cases = [with_constants(case) for case in cases]
        found = dict(kept)
        if options.json:
            write(options.json, kept)
        for done in run(cases, options):
            found[done.name] = done
            if options.json:
                write(options.json, {done.name: done}, "a")
            left = len(cases) - (len(found) - len(kept))
            line.say(f"conformance: {len(found)} of {len(found) + left}, {done.name}: {done.kind}")
    every = [found[name] for name in sorted(found)]
    print(table(every, every=options.all))
    if options.page and len(every) == len(node_cases()):
        options.page.write_text(page(every), encoding="utf-8")
    elif options.page:
        print(f"{options.page} is not written: these are not all cases", file=sys.stderr)
    return int(any(o.kind == "failing" for o in every))


def run(cases: list[Any], options: argparse.Namespace) -> Iterator[Outcome]:
    """The cases in worker processes, in the order in which they are done."""
    prepare = interpreted if options.interpret else compiled
    done = each_apart(
        range(len(cases)),
        lambda number, _: outcome(cases[number], prepare),
        workers=options.workers,
        limits=Limits(seconds=options.limit),
    )
    for number, result in done:
        yield failing(cases[number], result.why) if isinstance(result, Gone) else result


def read(path: Path) -> dict[str, Outcome]:
    """What an earlier run has written; a last line that is not complete does not count."""
    found = {}
    for line in path.read_text().splitlines(keepends=True) if path.exists() else ():
        if line.endswith("\n"):
            outcome = Outcome(**json.loads(line))
            found[outcome.name] = outcome
    return found


def write(path: Path, found: dict[str, Outcome], mode: str = "w") -> None:
    """Cases as lines of JSON."""
    with path.open(mode) as file:
        file.writelines(json.dumps(asdict(outcome)) + "\n" for outcome in found.values())


def table(found: list[Outcome], *, every: bool = False) -> str:
    """A line for each operator that is not native throughout, the others in one, and the sum."""
    rows = by_operator(found)
    total = Counter(o.kind for o in found)
    lines = [f"{'operator':32} {'native':>9} {'reference':>9} {'failing':>9}"]
    smooth = [name for name, row in rows.items() if row["native"] == row.total()]
    for name, row in rows.items():
        if every or name not in smooth:
            lines.append(f"{name:32} " + " ".join(f"{row[kind]:9d}" for kind in KINDS))
    lines.append(f"{len(smooth)} operators are native in all their cases")
    lines.append(f"{'all':32} " + " ".join(f"{total[kind]:9d}" for kind in KINDS))
    lines += [f"{o.kind}: {o.name}: {o.why}" for o in found if o.kind == "failing"]
    return "\n".join(lines)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("pattern", nargs="*", default=["*"], help="names without `test_`")
    parser.add_argument("--interpret", action="store_true", help="import only, do not compile")
    parser.add_argument("--constants", action="store_true", help="hold all inputs but the first")
    parser.add_argument("--json", type=Path, help="write every case to this file, a line each")
    parser.add_argument("--keep", action="store_true", help="add to that file what is not there")
    parser.add_argument(
        "--page", type=Path, help="write the page of the documentation, if all cases are there"
    )
    parser.add_argument("--all", action="store_true", help="also list what is native throughout")
    cpus = len(os.sched_getaffinity(0))
    parser.add_argument("--workers", type=int, default=cpus, help="processes at once")
    parser.add_argument("--limit", type=float, default=120.0, help="seconds for a case")
    options = parser.parse_args()
    if options.keep and not options.json:
        parser.error("--keep needs --json")
    return options


if __name__ == "__main__":
    sys.exit(main())
