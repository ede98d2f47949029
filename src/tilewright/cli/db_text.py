"""What `tilewright db` prints for people."""

from __future__ import annotations

from typing import Any

from tilewright.cli.models import time_text
from tilewright.cli.output import line, screen_width
from tilewright.cli.table import fitted
from tilewright.schedule.measured import KERNEL, kind_of_key
from tilewright.shown import counted, shown

__all__ = ["added_text", "best_text", "check_text", "list_text"]

SHORT = 8
"""Digits of a key or a checksum that tell a few hundred apart."""


def list_text(rows: list[dict[str, Any]]) -> str:
    """Workloads, the last one first."""
    if not rows:
        return "no records"
    lines = [
        ["label", "workload", "target", "threads", "trials", "failed", "draft", "best", "gain"]
    ]
    for row in rows:
        about = [shown(row["label"]) or "?", row["workload"][:SHORT], row["target"]]
        counts = [str(row[name]) for name in ("threads", "trials", "failures")]
        times = ["–", "–", "–"]
        if row["time_ns"] is not None:
            spent = [time_text(row[name] * 1e-9) for name in ("reference_ns", "time_ns")]
            times = [*spent, f"{row['gain']:.2f}×"]
        lines.append([*about, *counts, *times])
    spare = ["target", "failed", "draft", "threads"]
    return fitted(lines, 3, {"label": 16, "target": 12}, spare, screen_width())


def best_text(records: list[dict[str, Any]]) -> str:
    """Records in full."""
    return "\n\n".join(map(_record_text, records)) or "no records"


def _record_text(facts: dict[str, Any]) -> str:
    time, reference = (time_text(facts[name] * 1e-9) for name in ("time_ns", "reference_ns"))
    gain = f"{facts['gain']:.2f} times as fast as the draft ({reference})"
    lines = [
        line(facts["label"] or "?"),
        f"  workload   {line(facts['workload'])}",
        f"  target     {line(facts['target'])}, {counted(facts['threads'], 'thread')}",
        f"  time       {time}, {gain}, spread {facts['spread']:.1%}",
        f"  measured   {line(facts['when'])} by tilewright {line(facts['version'])}",
        f"  checksum   {facts['checksum']}",
    ]
    for block, (kind, values) in facts["points"].items():
        decisions = ", ".join(f"{name}={value}" for name, value in values.items())
        lines.append(f"  {line(block)}: {line(kind)}({line(decisions)})")
    if facts["trace"] and kind_of_key(facts["workload"]) == KERNEL:
        lines.append("  by a trace (--json prints it)")
    return "\n".join(lines)


def added_text(facts: dict[str, dict[str, Any]]) -> str:
    """What became of each file."""
    return "\n".join(
        f"{line(name)}: {counted(row['added'], 'record')} added, {row['known']} known already"
        + (f", {row['bad']} damaged and left out" if row["bad"] else "")
        for name, row in facts.items()
    )


def check_text(facts: dict[str, Any]) -> str:
    """What was found, and what to do about it."""
    damaged, dropped = facts["damaged"], facts["dropped"]
    lines = [f"{line(facts['database'])}: {counted(facts['records'], 'record')}"]
    if facts["other_format"]:
        lines.append(f"{facts['other_format']} of another version, which are not used")
    lines += [f"record {row['number']}: {row['problem']}" for row in damaged]
    lines += [f"file: {line(problem)}" for problem in facts["file_problems"]]
    if dropped:
        lines.append(f"removed {counted(dropped, 'damaged record')}")
    elif damaged:
        lines.append("`tilewright db check --drop` removes what is damaged")
    if facts["file_problems"]:
        lines.append("to mend the file: `db export` it, move it away, and `db import` the lines")
    if not damaged and not facts["file_problems"]:
        lines.append("all is well")
    return "\n".join(lines)
