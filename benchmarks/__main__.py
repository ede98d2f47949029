"""`python -m benchmarks [matmul|rowwise|conv|compile|all] [--threads 1,2] [--quick] [--out FILE]`.

`python -m benchmarks models` has a command line of its own, see `benchmarks.models.bench`.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from benchmarks.bench import Bench, write_results
from benchmarks.command_line import default_threads, names_among, thread_counts
from benchmarks.engines import ENGINES, LIMITS
from benchmarks.report import SUBJECT, summary, table
from benchmarks.turns import Settings
from benchmarks.workloads import select

GROUPS = ("matmul", "rowwise", "conv", "compile")
QUICK = Settings(rounds=4, trial_rounds=1, turn_seconds=0.004)


def main(arguments: list[str]) -> int:
    if arguments[:1] == ["models"]:
        from benchmarks.models.bench import main as models

        return models(arguments[1:])
    if arguments[:1] == ["tensorize"]:
        from benchmarks.tensorize import main as tensorize

        return tensorize(arguments[1:])
    if arguments[:1] == ["tuner"]:
        from benchmarks.tuner.main import main as tuner

        return tuner(arguments[1:])
    options = _parse(arguments)
    groups = GROUPS if options.group == "all" else (options.group,)
    workloads = list(select(groups, options.only))
    settings = QUICK if options.quick else Settings()
    bench = Bench([SUBJECT, *options.peers, "peak"], settings)
    rows = [row for threads in options.threads for row in bench.run(workloads, threads)]
    print(table(rows, [name for name in ENGINES if name in bench.engines and name not in LIMITS]))
    for name, why in bench.missing.items():
        print(f"{name}: not available ({why})")
    if options.out:
        write_results(options.out, arguments, bench, {}, summary(rows), rows)
        print(f"written to {options.out}")
    own = [row.outcomes[SUBJECT].state for row in rows if SUBJECT in row.outcomes]
    return 1 if {"wrong", "gone", "failed"} & set(own) else 0


def _parse(arguments: list[str]) -> argparse.Namespace:
    peers = [name for name in ENGINES if name not in {SUBJECT, *LIMITS}]
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Speed against the peers: every engine in its own process, by turns.",
        epilog="example: python -m benchmarks matmul --threads 1 --only 768 --out results.json; "
        "whole models: python -m benchmarks models --help",
    )
    parser.add_argument("group", nargs="?", default="all", choices=[*GROUPS, "all"])
    parser.add_argument(
        "--threads", type=thread_counts, default=default_threads(), help="for example 1,2"
    )
    parser.add_argument(
        "--peers", type=names_among(peers), default=peers, help=f"some of {','.join(peers)}"
    )
    parser.add_argument("--only", default="", metavar="PATTERN", help="part of a workload's name")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write all figures as JSON")
    parser.add_argument("--quick", action="store_true", help="few short turns: a look, no claim")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
