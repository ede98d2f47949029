"""Run the node tests of the `onnx` package and print a tally.

python scripts/conformance.py                      all of them, compiled
python scripts/conformance.py 'conv*' --interpret  some of them, by the meaning of their graphs
python scripts/conformance.py --json tally.json    also every case, for machines
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from dataclasses import asdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.onnx.conformance import Outcome, by_operator, compiled, interpreted, outcomes
from tests.onnx.node_cases import node_cases

KINDS = ("native", "reference", "failing")


def main() -> int:
    """The exit code is 1 if a case fails."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("pattern", nargs="*", default=["*"], help="names without `test_`")
    parser.add_argument("--interpret", action="store_true", help="import only, do not compile")
    parser.add_argument("--json", type=Path, help="write every case to this file")
    parser.add_argument("--all", action="store_true", help="also list what is not native")
    options = parser.parse_args()
    cases = [case for pattern in options.pattern for case in node_cases(pattern)]
    found = list(outcomes(cases, interpreted if options.interpret else compiled))
    if options.json:
        options.json.write_text(json.dumps([asdict(o) for o in found], indent=1) + "\n")
    print(table(found, every=options.all))
    return int(any(o.kind == "failing" for o in found))


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


if __name__ == "__main__":
    sys.exit(main())
