"""What the commands have in common: options, progress, and what becomes of findings."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from fuzz.apart import Limits
from fuzz.campaign import Campaign, Finding
from fuzz.kept import write_kept
from fuzz.reduction import reduce_case

__all__ = ["add_common", "finish", "limits_of"]


def add_common(parser: argparse.ArgumentParser) -> None:
    """Options of every command that runs many cases."""
    parser.add_argument("--count", type=int, metavar="N", help="how many graphs (default: no end)")
    parser.add_argument("--seconds", type=float, metavar="T", help="stop after this time")
    parser.add_argument("--workers", type=int, default=1, help="processes (default 1)")
    parser.add_argument(
        "--limit", type=float, default=60.0, metavar="S", help="seconds for one graph (default 60)"
    )
    parser.add_argument("--memory", type=float, default=8.0, metavar="G", help="GB for one graph")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write a report as JSON")
    parser.add_argument(
        "--keep", type=Path, default=Path("build/fuzz"), metavar="DIR",
        help="where findings go, reduced (default build/fuzz)",
    )  # fmt: skip
    parser.add_argument("--no-reduce", action="store_true", help="keep findings as they are")


def limits_of(options: argparse.Namespace) -> Limits:
    """Time and memory of a case."""
    return Limits(options.limit, int(options.memory * 2**30))


def finish(campaign: Campaign, findings: Iterable[Finding], options: argparse.Namespace) -> int:
    """Run to the end, write down what is found, and say how it went."""
    rows: list[dict[str, Any]] = []
    try:
        for finding in findings:
            rows.append(_kept(finding, options))
            print(f"{rows[-1]['verdict']}: {rows[-1]['detail']} -> {rows[-1]['file']}", flush=True)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
    print(f"{campaign.line()}; {campaign.native} as native code alone")
    if options.out:
        campaign.write(options.out, findings=rows)
        print(f"written to {options.out}")
    return 1 if rows else 0


def _kept(finding: Finding, options: argparse.Namespace) -> dict[str, Any]:
    """The finding, reduced unless that is not wanted, in files; a row for the report."""
    case, verdict = finding.case, finding.verdict
    if not options.no_reduce:
        case, verdict = reduce_case(case, verdict, limits=limits_of(options))
    words = "_".join(dict.fromkeys(op.lower() for op in case.operators))[:60]
    path = Path(options.keep) / f"{verdict.kind}_{words}_{finding.number}.py"
    path.parent.mkdir(parents=True, exist_ok=True)
    finding.case.save(path.with_suffix(".onnx"))
    write_kept(path, case, verdict)
    return {
        "number": finding.number,
        "verdict": verdict.kind,
        "detail": verdict.detail,
        "operators": case.operators,
        "nodes_before": len(finding.case.operators),
        "file": str(path),
    }
