"""Figures of whole models: times beside those of the peers, memory, compiling, loading."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from benchmarks.engines import LIMITS
from benchmarks.models.workload import ModelWorkload
from benchmarks.report import (
    SUBJECT,
    Row,
    aligned,
    complaints,
    geomean,
    lost_variants,
    noise,
    number,
)

__all__ = ["ModelRow", "brief", "summary", "table"]

YARDSTICK: Final = "onnxruntime"


@dataclass(frozen=True)
class ModelRow(Row):
    """One model at one thread count, with what it costs besides time per run."""

    footprints: dict[str, dict[str, Any]] = field(default_factory=dict)

    @property
    def bandwidth_gbps(self) -> float | None:
        """What this many threads can move from memory: the best turn of a stream in this row."""
        memory = self.outcomes.get("memory")
        return 1 / memory.min_s if memory and memory.state == "ok" else None

    @property
    def model_workload(self) -> ModelWorkload:
        assert isinstance(self.workload, ModelWorkload)
        return self.workload

    def ratio_to(self, engine: str, figure: str = "min_s") -> float | None:
        """Time of another engine over time of the subject."""
        own, other = self.outcomes.get(SUBJECT), self.outcomes.get(engine)
        if own is None or other is None or {own.state, other.state} != {"ok"}:
            return None
        return float(getattr(other, figure)) / float(getattr(own, figure))

    def share_of_bandwidth(self, engine: str) -> float | None:
        """Weights read per second over what memory can give; only where that is the limit."""
        outcome = self.outcomes.get(engine)
        if outcome is None or outcome.state != "ok" or self.bandwidth_gbps is None:
            return None
        if not self.model_workload.model.streams_weights:
            return None
        return self.workload.bytes / outcome.min_s / 1e9 / self.bandwidth_gbps

    def cost(self, engine: str, figure: str) -> float | None:
        """A figure of the footprint; None if it was not measured."""
        return self.footprints.get(engine, {}).get(figure)

    def compile_s(self, engine: str) -> float | None:
        """From the file to the first result."""
        outcome = self.outcomes.get(engine)
        return outcome.prepare_ms / 1e3 if outcome and outcome.state == "ok" else None

    def to_dict(self) -> dict[str, Any]:
        workload = self.model_workload
        engines = self.outcomes.keys() - set(LIMITS)
        return {
            **super().to_dict(),
            "model": workload.model_name,
            "sizes": workload.sizes,
            "dynamic": workload.dynamic,
            f"ratio_to_{YARDSTICK}_min": self.ratio_to(YARDSTICK),
            f"ratio_to_{YARDSTICK}_median": self.ratio_to(YARDSTICK, "median_s"),
            "errors": {n: o.error for n, o in self.outcomes.items() if n in engines},
            "compile_s": {name: self.compile_s(name) for name in engines},
            "footprints": self.footprints,
            "streamed_bytes": workload.weight_bytes if workload.model.streams_weights else None,
            "bandwidth_gbps": self.bandwidth_gbps,
            "share_of_bandwidth": {name: self.share_of_bandwidth(name) for name in engines},
        }


def brief(row: ModelRow) -> str:
    """A row in a few words, for a person who waits for the table."""
    outcome, best = row.outcomes.get(SUBJECT), row.best_peer()
    is_ok = outcome is not None and outcome.state == "ok"
    words = [f"{row.workload.name}: {_milliseconds(row, SUBJECT)}{' ms' * is_ok}"]
    if (ratio := row.ratio_to(YARDSTICK)) is not None:
        words.append(f"{ratio:.2f} of {YARDSTICK}")
    if best is not None and best[0] != YARDSTICK and (ratio := row.ratio()) is not None:
        words.append(f"{ratio:.2f} of {best[0]}")
    return ", ".join(words) + " (noisy)" * row.is_noisy


def summary(rows: Sequence[ModelRow]) -> list[dict[str, Any]]:
    """Per thread count: geometric means of the ratios, and how many models are faster."""
    return [_summarize(n, [r for r in rows if r.threads == n]) for n in _thread_counts(rows)]


def _thread_counts(rows: Sequence[ModelRow]) -> list[int]:
    return list(dict.fromkeys(row.threads for row in rows))


def _summarize(threads: int, rows: list[ModelRow]) -> dict[str, Any]:
    to_best = [(ratio, row.workload.name) for row in rows if (ratio := row.ratio()) is not None]
    to_yardstick = _known(rows, lambda row: row.ratio_to(YARDSTICK))
    return {
        "group": "models",
        "threads": threads,
        "rows": len(rows),
        "compared": len(to_best),
        "noisy": sum(row.is_noisy for row in rows),
        "geomean_min": geomean(ratio for ratio, _ in to_best),
        "geomean_median": geomean(_known(rows, lambda row: row.ratio("median_s"))),
        f"geomean_to_{YARDSTICK}": geomean(to_yardstick),
        f"faster_than_{YARDSTICK}": sum(ratio > 1 for ratio in to_yardstick),
        "worst": {"ratio": min(to_best)[0], "workload": min(to_best)[1]} if to_best else None,
    }


def _known(rows: Sequence[ModelRow], figure: Callable[[ModelRow], float | None]) -> list[float]:
    return [value for row in rows if (value := figure(row)) is not None]


def table(rows: Sequence[ModelRow], engines: Sequence[str]) -> str:
    """Text for people: speed, and below it what else a model costs."""
    parts = [*_speed(rows, engines), ""]
    if any(row.footprints for row in rows):
        parts += [*_costs(rows), ""]
    return "\n".join([*parts, *_footnotes(rows), *complaints(rows), *lost_variants(rows)])


def _speed(rows: Sequence[ModelRow], engines: Sequence[str]) -> list[str]:
    head = ["model", "thr", *engines, "vs ort", "vs best", "best peer", "error", "GFLOP", "% peak"]
    lines = [[*head, "best peer %", "% memory"]]
    for row in rows:
        best = row.best_peer()
        lines.append(
            [
                row.workload.name,
                str(row.threads),
                *(_milliseconds(row, engine) for engine in engines),
                number(row.ratio_to(YARDSTICK), digits=2),
                number(row.ratio(), digits=2),
                best[0] if best else "-",
                _error(row),
                number(row.workload.flops, 1e-9, 2),
                number(row.share_of_peak(SUBJECT), 100, 1),
                number(row.share_of_peak(best[0]) if best else None, 100, 1),
                number(row.share_of_bandwidth(SUBJECT), 100, 1) + (" ~" if row.is_noisy else ""),
            ]
        )
    return aligned(lines)


def _costs(rows: Sequence[ModelRow]) -> list[str]:
    """Compiling and loading in seconds, memory in MB: the subject first, then the yardstick."""
    head = ["model", "thr", "compile s", "again s", "load ms", "ort load ms"]
    head += ["run MB", "ort run MB", "peak MB", "ort peak MB", "file MB"]
    return aligned([head, *map(_cost_line, rows)])


def _cost_line(row: ModelRow) -> list[str]:
    both = (SUBJECT, YARDSTICK)
    return [
        row.workload.name,
        str(row.threads),
        number(row.compile_s(SUBJECT), digits=2),
        number(row.cost(SUBJECT, "compile_again_s"), digits=2),
        *(number(row.cost(engine, "load_s"), 1e3, 1) for engine in both),
        *(number(row.cost(engine, "resident_bytes"), 1e-6, 1) for engine in both),
        *(number(row.cost(engine, "peak_bytes"), 1e-6, 1) for engine in both),
        number(row.cost(SUBJECT, "artefact_bytes"), 1e-6, 1),
    ]


def _footnotes(rows: Sequence[ModelRow]) -> list[str]:
    lines = [
        f"threads={item['threads']}: geomean {item['geomean_min']:.3f} of the best peer "
        f"(by medians {item['geomean_median']:.3f}), "
        f"{number(item[f'geomean_to_{YARDSTICK}'])} of {YARDSTICK}, over {item['compared']} of "
        f"{item['rows']}; worst {item['worst']['ratio']:.3f} ({item['worst']['workload']})"
        for item in summary(rows)
        if item["compared"]
    ]
    lines.append("times: best turn in ms; ratios: peer / tilewright, above 1 is faster")
    return lines + noise(rows)


def _milliseconds(row: ModelRow, engine: str) -> str:
    outcome = row.outcomes.get(engine)
    if outcome is None or outcome.state == "unsupported":
        return "-"
    return f"{outcome.min_s * 1e3:.3f}" if outcome.state == "ok" else outcome.state


def _error(row: ModelRow) -> str:
    """Of the subject; of the yardstick where there is no subject."""
    outcome = row.outcomes.get(SUBJECT) or row.outcomes.get(YARDSTICK)
    return f"{outcome.error:.0e}" if outcome and outcome.state in {"ok", "wrong"} else "-"
