"""Tables of docs/tuning-results.md, one function for each kind of run of the tuner's benchmarks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from scripts.pages import MISSING, SUBJECT, Run, table, threads_of

EVERYWHERE = {
    "anywhere": "`anywhere` draws algorithm, layouts and loops of each trial at random.",
    "rounds": "`rounds` is the joint stage of the tuner, led by the analytic and a learned model.",
}
"""What ways are that choose among all algorithms and layouts."""


def search(run: Run) -> str:
    """Each way beside the baseline, and all ways by task."""
    summary, curves = run["summary"], run["curves"]
    ways, baseline, soon = summary["ways"], summary["baseline"], summary["soon"]
    count = len(run["tasks"])
    seeds = len({curve["seed"] for curve in curves})
    trials = max(len(curve["best"]) for curve in curves)
    lines = [
        [
            way,
            f"{own['of_draft']:.3f}",
            f"{own['of_baseline']:.3f}",
            MISSING if way == baseline else f"{own['soon']} of {count}",
        ]
        for way, own in ways.items()
    ]
    head = ["search", "of the draft", f"of {baseline}", f"{baseline}'s result in {soon} trials"]
    every = " ".join(text for way, text in EVERYWHERE.items() if way in ways)
    return (
        f"{trials} trials, {_means(seeds)}; {threads_of(run['threads'])}. Searches have an "
        f"empty database and begin without the draft's point. {every}\n\n{table(head, lines)}\n"
        "By task: the best by the speed of the draft, and in brackets trials to the result of "
        f"{baseline}, where that was reached.\n\n{_search_tasks(run, trials)}"
    )


def _search_tasks(run: Run, trials: int) -> str:
    ways = run["summary"]["ways"]
    lines = []
    for task, about in run["tasks"].items():
        cells = [task, f"{about['points']:.1e}", str(about["variants"])]
        for way, own in ways.items():
            reached = own["trials_to_baseline"][task]
            is_told = way != run["summary"]["baseline"] and reached <= trials
            shown = f" ({reached:.0f})" if is_told else ""
            cells.append(f"{own['by_task'][task]:.3f}{shown}")
        lines.append(cells)
    return table(["task", "points", "variants", *ways], lines)


def transfer(run: Run) -> str:
    """Trials to nearly the best, with and without a history."""
    rows = run["summary"]["tasks"]
    lines = [
        [task, f"{row['alone']:.0f}", f"{row['history']:.0f}", f"{row['fewer']:.1f}"]
        for task, row in rows.items()
    ]
    lines.append(["**geometric mean**", "", "", f"**{run['summary']['fewer']:.1f}**"])
    head = ["task", "alone", "with the history of C1 to C6", "fewer by"]
    seeds = len({curve["seed"] for curve in run["curves"]})
    return (
        "Trials until 95 % of the speed of the best point that any search of the task found, "
        f"{_means(seeds)}; {threads_of(run['threads'])}.\n\n{table(head, lines)}"
    )


def _means(seeds: int) -> str:
    return "one seed" if seeds == 1 else f"means of {seeds} seeds"


def rivals(run: Run) -> str:
    """Both tuners' best kernels by turns."""
    lines = []
    for row in run["rows"]:
        own, other = row["tuners"]["tilewright"], row["tuners"]["tvm"]
        lines.append(
            [
                row["task"] + (" ~" if row["noisy"] else ""),
                _gflops(own),
                _gflops(other),
                other["form"] or MISSING,
                f"{row['ratio']:.2f}" if row["ratio"] else MISSING,
                f"{row['peak_gflops']:.0f}" if row["peak_gflops"] else MISSING,
                f"{own['seconds']:.0f}",
                f"{row['seconds']:.0f}",
                str(own["trials"]),
                " + ".join(str(form["trials"]) for form in row["forms"].values()),
            ]
        )
    ratios = [row["ratio"] for row in run["rows"] if row["ratio"]]
    mean = f"**{_geomean(ratios):.2f}**" if ratios else MISSING
    lines.append(["**geometric mean**", "", "", "", mean, "", "", "", "", ""])
    head = ["task", f"{SUBJECT} GFLOP/s", "TVM GFLOP/s", "layout", "ratio", "FMA peak"]
    versions = ", ".join(f"{name} {number}" for name, number in run["versions"].items())
    return (
        f"{threads_of(run['threads']).capitalize()}; {versions}. Best turns of both tuners' best "
        "kernels, by turns in processes of their own, every product counted. Each layout that TVM "
        "is tried in has all of the seconds for itself.\n\n"
        + table([*head, "seconds", "TVM's seconds", "trials", "TVM's trials"], lines)
        + _noise(run["rows"])
    )


def _gflops(tuner: Mapping[str, Any]) -> str:
    return f"{tuner['gflops']:.1f}" if tuner["gflops"] else MISSING


def models(run: Run) -> str:
    """Whole models before and after."""
    lines = [
        [
            row["model"],
            f"{row['before_ms']:.2f}",
            f"{row['now_ms']:.2f}",
            f"{row['gain']:.3f}",
            f"{row['before_ms'] / row['floor_ms']:.2f}" if "floor_ms" in row else MISSING,
            str(row["trials"]),
            str(row["failures"]),
            f"{row['seconds']:.0f}",
        ]
        for row in run["models"]
    ]
    mean = _geomean(row["gain"] for row in run["models"])
    lines.append(["**geometric mean**", "", "", f"**{mean:.3f}**", "", "", "", ""])
    head = ["model", "drafted ms", "tuned ms", "gain", "limit", "trials", "failed", "seconds"]
    joint_too = all(row["joint"] for row in run["models"])
    return (
        f"{threads_of(run['threads']).capitalize()}, from an empty database"
        f"{'' if joint_too else ', loops alone'}. The limit is what would be gained if all "
        "kernels took no longer than their multiply-adds at the FMA peak, or their bytes from the "
        f"nearest caches that hold them.\n\n{table(head, lines)}"
    )


def joint(run: Run) -> str:
    """Joint tuning against loops alone, and where gains come from."""
    lines = []
    for row in run["items"]:
        ms = row["ms"]
        lines.append(
            [
                row["name"] + (" ~" if row["noisy"] else ""),
                *(f"{ms[way]:.3f}" for way in ("draft", "loops", "joint")),
                f"{row['ratio']:.3f}",
                *(f"{row['searches'][way]['seconds']:.0f}" for way in ("loops", "joint")),
            ]
        )
    for kind, means in run["summary"].items():
        mean = f"**{means['ratio']:.3f}**"
        lines.append([f"**{kind}s, geometric mean**", "", "", "", mean, "", ""])
    budget = run["items"][0]["budget_s"]
    head = ["", "drafted ms", "loops alone ms", "joint ms", "loops alone / joint"]
    head += ["loops alone took s", "joint took s"]
    changes = table(["", "value", "draft", "tuned"], _changes(run), words=4)
    return (
        f"{threads_of(run['threads']).capitalize()}, {budget:.0f} s for each search from an empty "
        "database; best turns. Layers have channels first at both ends.\n\n"
        f"{table(head, lines)}{_noise(run['items'])}\n"
        f"What the joint search has chosen otherwise than the draft:\n\n{changes}"
    )


def _changes(run: Run) -> Iterable[list[str]]:
    for row in run["items"]:
        changes = row["changes"]
        for change in changes[:MOST_CHANGES]:
            values = (change[key] or MISSING for key in ("value", "draft", "tuned"))
            yield [row["name"], *values]
        if len(changes) > MOST_CHANGES:
            yield [row["name"], f"{len(changes) - MOST_CHANGES} more", "", ""]
        if not changes:
            yield [row["name"], "nothing", "", ""]


MOST_CHANGES = 6
"""Of one item: networks have many sites."""


def overhead(run: Run) -> str:
    """Where the time of searches goes."""
    lines = [
        [
            row["task"],
            str(row["trials"]),
            f"{row['trials_per_second']:.1f}",
            f"{100 * row['measuring']:.0f}",
            f"{row['ranked_per_second']:,.0f}",
        ]
        for row in run["tasks"]
    ]
    head = ["task", "trials", "trials a second", "% of the time measuring"]
    return table([*head, "points ranked a second"], lines)


def faults(run: Run) -> str:
    """A search that was disturbed beside one that was not."""
    outcomes = ", ".join(f"{count} {name}" for name, count in sorted(run["outcomes"].items()))
    problems = "; ".join(run["problems"]) or "none"
    kills, middle = len(run["records_behind_each_kill"]), run["kills_in_the_middle"]
    speed = run["speed_of_undisturbed"]
    return (
        f"{run['task']}: one candidate in four crashes, hangs, eats memory or lies, and the tuner "
        f"was killed {kills} times, {middle} of them before it was done. Its best has {speed:.3f} "
        f"of the speed of an undisturbed search's. Outcomes: {outcomes}. Problems of the database: "
        f"{problems}.\n"
    )


def _noise(rows: Iterable[Mapping[str, Any]]) -> str:
    noisy = any(row["noisy"] for row in rows)
    return "\n`~`: other processes used the machine meanwhile.\n" if noisy else ""


def _geomean(values: Iterable[float]) -> float:
    return float(np.exp(np.mean(np.log(list(values)))))
