"""`tilewright show MODEL --kernels`: the time of each step, and the least that it could take.

A share of the limit is the least time for the work of a step, over the time that it took. It can be
above 1: Winograd is counted as the direct convolution that it stands for, so that rates of
algorithms compare, and data may lie in a nearer cache than the smallest one that holds all of them.
Rates that are measured while others use the machine are too low.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from typing import Any, Final

from tilewright.cli.models import time_text
from tilewright.cli.output import paragraph, screen_width
from tilewright.cli.table import fitted
from tilewright.llvm.calibrate import FmaPeak, Team, calibrated
from tilewright.llvm.probes import compile_probes
from tilewright.model.limits import Limits, StepTime
from tilewright.runtime.program import Program
from tilewright.shown import counted, in_line
from tilewright.target import Rate, Target

__all__ = ["BY", "SORTS", "arranged", "kernel_rows", "kernels_text", "measured_host"]

BY: Final = ("step", "kernel")
SORTS: Final = ("step", "time")

Row = dict[str, Any]


def kernel_rows(program: Program, steps: Sequence[StepTime], limits: Limits) -> list[Row]:
    """A row for each step, for programs: times in seconds, work in operations and bytes."""
    return [_row(program, step, limits) for step in steps]


def _row(program: Program, step: StepTime, limits: Limits) -> Row:
    row = asdict(step)
    row["time_s"] = row.pop("seconds")
    row["kernel"] = getattr(program.steps[step.step], "kernel", step.kernel)
    row["steps"] = 1
    row["parallel"] = step.parallel and limits.threads > 1
    if step.flops or step.moved_bytes:
        limit = limits.of(step.flops, step.moved_bytes, parallel=step.parallel)
        share = limit.seconds / step.seconds if step.seconds else None
        row |= {"limit": limit.what, "limit_s": limit.seconds, "share_of_limit": share}
    return row


def arranged(rows: Sequence[Row], by: str, sort: str | None, top: int | None) -> list[Row]:
    """Rows summed up by kernel, sorted, the first `top` of them: by time unless it is said."""
    found = list(rows) if by == "step" else list(_by_kernel(rows))
    if (sort or ("step" if top is None and by == "step" else "time")) == "time":
        found.sort(key=lambda row: -row["time_s"])
    return found[:top]


def _by_kernel(rows: Sequence[Row]) -> Iterator[Row]:
    """The steps of one kernel as one row, which has the limit of the longest of them."""
    groups: dict[object, list[Row]] = {}
    for row in rows:
        groups.setdefault(row["kernel"], []).append(row)
    for group in groups.values():
        whole = dict(max(group, key=lambda row: row["time_s"]))
        for name in ("times", "time_s", "flops", "moved_bytes", "steps"):
            whole[name] = sum(row[name] for row in group)
        if "limit_s" in whole:
            whole["limit_s"] = sum(row.get("limit_s", 0.0) for row in group)
            whole["share_of_limit"] = (
                whole["limit_s"] / whole["time_s"] if whole["time_s"] else None
            )
        yield whole


def kernels_text(every: Sequence[Row], shown: Sequence[Row], by: str, runs: int) -> str:
    """The rows to be shown as a table, the sums of every one, and what the columns mean."""
    total = sum(row["time_s"] for row in every) or 1.0
    head = ["step" if by == "step" else "steps", "kernel", "operators", "time", "share"]
    lines = [[*head, "GFLOP/s", "GB/s", "of limit"], *(_cells(row, total, by) for row in shown)]
    least = {"operators": 16, "kernel": 6}
    table = fitted(lines, 3, least, ["GB/s", "kernel", "share"], screen_width())
    return "\n".join([table, *_rest(every, shown, total), *_legend(every, total, runs)])


def _cells(row: Row, total: float, by: str) -> list[str]:
    seconds, share = row["time_s"] or 1e-9, row.get("share_of_limit")
    label = in_line(row["label"])
    if by == "kernel" and row["steps"] > 1:
        label += f" and {row['steps'] - 1} more"
    return [
        str(row[by] if by == "step" else row["steps"]),
        str(row["kernel"]),
        label + (f" ×{row['times']}" if row["times"] > row["steps"] else ""),
        time_text(row["time_s"]),
        f"{seconds / total:.1%}",
        f"{row['flops'] / seconds / 1e9:.1f}" if row["flops"] else "-",
        f"{row['moved_bytes'] / seconds / 1e9:.1f}" if row["moved_bytes"] else "-",
        "-" if share is None else f"{share:.0%} {row['limit']:<4}",
    ]


def _rest(every: Sequence[Row], shown: Sequence[Row], total: float) -> Iterator[str]:
    """What the table leaves out."""
    steps = sum(row["steps"] for row in every) - sum(row["steps"] for row in shown)
    if steps:
        left = sum(row["time_s"] for row in every) - sum(row["time_s"] for row in shown)
        yield f"{counted(steps, 'step')} more: {time_text(left)}, {left / total:.1%}"


def _legend(every: Sequence[Row], total: float, runs: int) -> Iterator[str]:
    flops = sum(row["flops"] for row in every)
    best = sum(row.get("limit_s", 0.0) for row in every)
    work = f"{flops / 1e9:.3g} GFLOP, {flops / total / 1e9:.1f} GFLOP/s"
    yield paragraph(f"all: {time_text(total)}, {work}, {best / total:.0%} of the limit")
    yield paragraph(
        f"time: median of {counted(runs, 'run')}; of limit: the least time for the multiply-adds "
        "(FMA) or the bytes (from the cache that holds them, or DRAM), over the time taken"
    )
    if any((row.get("share_of_limit") or 0) > 1 for row in every):
        yield paragraph(
            "above 100%: Winograd counts the operations of the direct convolution, data may be in "
            "a nearer cache than the one that is named, or the machine was busy when its rates "
            "were measured (`tilewright doctor --measure` does it again)"
        )


def measured_host() -> Target:
    """This machine with its rates; the arithmetic is measured again, as of now.

    Somebody else may have used the machine each time: its data sheet bounds the limit from below.
    """
    target = calibrated(Target.host())
    assert target.measured is not None
    known, probes = target.measured.fma_gflops, compile_probes(target)
    with Team(1) as one, Team(target.cores) as all_:
        now = [FmaPeak(target, probes, team).best() for team in (one, all_)]
    sheet = target.with_measured(None)
    peak = [sheet.peak_gflops(cores=cores) for cores in (1, target.cores)]
    rate = Rate(max(known.one, now[0], peak[0]), max(known.all, now[1], peak[1]))
    return target.with_measured(replace(target.measured, fma_gflops=rate))
