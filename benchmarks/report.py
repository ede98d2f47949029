"""From outcomes to figures: ratios to the best peer, geometric means, share of the FMA peak.

Convolutions are told in GFLOP/s, counted as if every product were made, and by family.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from benchmarks.kinds import AnyWorkload
from benchmarks.kinds import tolerance as tolerance_of
from benchmarks.turns import Outcome
from benchmarks.workloads import Workload

__all__ = ["SUBJECT", "Row", "aligned", "complaints", "geomean", "lost_variants", "number"]
__all__ += ["noise", "summary", "table"]

SUBJECT: Final = "tilewright"
QUIET_CPUS: Final = 0.1
"""A row is noisy if other processes kept more than this many CPUs busy while it was measured."""


@dataclass(frozen=True)
class Row:
    """One workload at one thread count. Ratios above one: the subject is faster than all peers."""

    workload: AnyWorkload
    threads: int
    outcomes: dict[str, Outcome]
    peers: frozenset[str]
    foreign_cpus: float = 0.0

    @property
    def is_noisy(self) -> bool:
        """Something else used the machine: the figures may favour any side."""
        return self.foreign_cpus > QUIET_CPUS

    def best_peer(self, figure: str = "min_s") -> tuple[str, float] | None:
        times = [
            (getattr(outcome, figure), name)
            for name, outcome in self.outcomes.items()
            if name in self.peers and outcome.state == "ok"
        ]
        return (min(times)[1], min(times)[0]) if times else None

    def ratio(self, figure: str = "min_s") -> float | None:
        """Time of the best peer over time of the subject."""
        best, own = self.best_peer(figure), self.outcomes.get(SUBJECT)
        if best is None or own is None or own.state != "ok":
            return None
        return best[1] / float(getattr(own, figure))

    def peak_gflops(self, figure: str = "min_s") -> float | None:
        """The FMA-only loop during this row: its best turn, or the median one."""
        peak = self.outcomes.get("peak")
        if peak is None or peak.state != "ok":
            return None
        return peak.flops / float(getattr(peak, figure)) / 1e9

    @property
    def families(self) -> tuple[str, ...]:
        """Of convolutions: where the layer is from."""
        return self.workload.families if isinstance(self.workload, Workload) else ()

    def gflops(self, engine: str) -> float | None:
        """Of the engine's best turn."""
        outcome = self.outcomes.get(engine)
        if outcome is None or outcome.state != "ok" or not self.workload.flops:
            return None
        return self.workload.flops / outcome.min_s / 1e9

    def share_of_peak(self, engine: str) -> float | None:
        """GFLOP/s of the engine over the peak of the same row."""
        peak, own = self.peak_gflops(), self.gflops(engine)
        return None if peak is None or own is None else own / peak

    def to_dict(self) -> dict[str, Any]:
        best = self.best_peer()
        return {
            "workload": self.workload.name,
            "group": self.workload.group,
            "threads": self.threads,
            "flops": self.workload.flops,
            "bytes": self.workload.bytes,
            "families": self.families,
            "tolerance": tolerance_of(self.workload),
            "engines": {name: asdict(outcome) for name, outcome in self.outcomes.items()},
            "best_peer": best[0] if best else None,
            "ratio_min": self.ratio("min_s"),
            "ratio_median": self.ratio("median_s"),
            "peak_gflops": self.peak_gflops(),
            "share_of_peak": self.share_of_peak(SUBJECT),
            "foreign_cpus": round(self.foreign_cpus, 3),
            "noisy": self.is_noisy,
        }


def summary(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Per group or family, and thread count: geometric means of the ratios, and the worst row."""
    keys = dict.fromkeys((name, row.threads) for row in rows for name in _groups(row))
    return [
        _summarize(*key, [r for r in rows if key in {(name, r.threads) for name in _groups(r)}])
        for key in keys
    ]


def _groups(row: Row) -> list[str]:
    group = row.workload.group
    return [group, *(f"{group} {family}" for family in row.families)]


def _summarize(group: str, threads: int, rows: list[Row]) -> dict[str, Any]:
    known = [(ratio, row.workload.name) for row in rows if (ratio := row.ratio()) is not None]
    medians = [ratio for row in rows if (ratio := row.ratio("median_s")) is not None]
    return {
        "group": group,
        "threads": threads,
        "rows": len(rows),
        "compared": len(known),
        "noisy": sum(row.is_noisy for row in rows),
        "geomean_min": geomean(ratio for ratio, _ in known),
        "geomean_median": geomean(medians),
        "worst": {"ratio": min(known)[0], "workload": min(known)[1]} if known else None,
    }


def geomean(ratios: Iterable[float]) -> float | None:
    """The geometric mean; None without figures."""
    logs = [math.log(ratio) for ratio in ratios]
    return math.exp(sum(logs) / len(logs)) if logs else None


def table(rows: Sequence[Row], engines: Sequence[str]) -> str:
    """Text for people: the best turn by engine, ratios to the best peer, share of the peak."""
    kinds = [[r for r in rows if not r.families], [r for r in rows if r.families]]
    parts = [[*_figures(kind, engines), ""] for kind in kinds if kind]
    notes = [*_footnotes(rows), *complaints(rows), *lost_variants(rows)]
    return "\n".join([*(line for part in parts for line in part), *notes])


def _figures(rows: Sequence[Row], engines: Sequence[str]) -> list[str]:
    """A table of rows that are all convolutions, or none of them is."""
    head = ["workload", "thr", *engines, "best peer", "ratio", "median", "% peak", "best peer %"]
    lines = [head]
    for row in rows:
        best = row.best_peer()
        lines.append(
            [
                row.workload.name,
                str(row.threads),
                *(_figure(row, engine) for engine in engines),
                best[0] if best else "-",
                number(row.ratio("min_s")),
                number(row.ratio("median_s")),
                number(row.share_of_peak(SUBJECT), 100, 1),
                number(row.share_of_peak(best[0]) if best else None, 100, 1)
                + (" ~" if row.is_noisy else ""),
            ]
        )
    return aligned(lines)


def aligned(lines: Sequence[Sequence[str]]) -> list[str]:
    """The first column to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return [
        "  ".join([line[0].ljust(widths[0]), *map(str.rjust, line[1:], widths[1:])])
        for line in lines
    ]


def _footnotes(rows: Sequence[Row]) -> list[str]:
    lines = [
        f"{item['group']}, threads={item['threads']}: geomean {item['geomean_min']:.3f} "
        f"(by medians {item['geomean_median']:.3f}) of the best peer over {item['compared']} of "
        f"{item['rows']}; worst {item['worst']['ratio']:.3f} ({item['worst']['workload']})"
        for item in summary(rows)
        if item["compared"]
    ]
    lines.append("times: best turn in µs; ratio: best peer / tilewright, above 1 is faster")
    if any(row.families for row in rows):
        lines.append("convolutions: GFLOP/s of the best turn, every product counted")
    return lines + noise(rows)


def noise(rows: Sequence[Row]) -> list[str]:
    """A warning, if rows have the mark of being noisy."""
    busy = sum(row.is_noisy for row in rows)
    text = f"~ other processes used the machine during {busy} of {len(rows)} rows: no claim"
    return [text] if busy else []


def complaints(rows: Sequence[Row]) -> list[str]:
    """What went wrong, where and why."""
    return [
        f"{row.workload.name}: {name} {outcome.state} "
        f"({outcome.why or f'relative error {outcome.error:.2e}'})"
        for row in rows
        for name, outcome in row.outcomes.items()
        if outcome.state in {"wrong", "failed", "gone"}
    ]


def lost_variants(rows: Sequence[Row]) -> list[str]:
    """Each lost variant once: it tends to be lost for every workload."""
    lost = {
        f"{name} ran without {variant}"
        for row in rows
        for name, outcome in row.outcomes.items()
        for variant in outcome.lost_variants
    }
    return sorted(lost)


def _figure(row: Row, engine: str) -> str:
    """GFLOP/s of a convolution, else µs."""
    outcome = row.outcomes.get(engine)
    if outcome is None or outcome.state == "unsupported":
        return "-"
    if outcome.state != "ok":
        return outcome.state
    return number(row.gflops(engine), digits=1) if row.families else f"{outcome.min_s * 1e6:.1f}"


def number(value: float | None, scale: float = 1, digits: int = 3) -> str:
    """A figure as text, `-` if there is none."""
    return "-" if value is None else f"{value * scale:.{digits}f}"
