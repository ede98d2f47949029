"""Engines by turns: every round gives each of them one short turn, in a new random order.

Only one engine runs at any moment, and drift of the machine meets all of them alike. An engine that
offers several variants tries them in a few rounds of their own and goes on with its fastest. A peer
that takes long and is far behind rests after those rounds, which are then what counts for it.
"""

from __future__ import annotations

import random
import statistics
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from benchmarks.kinds import AnyWorkload
from benchmarks.process import LOAD_SECONDS, EngineGoneError, EngineProcess

__all__ = ["Outcome", "Settings", "compete"]


FAR_BEHIND: Final = 5.0
"""A peer so many times slower than the fastest one, even in its best turn, will not be the best."""


@dataclass(frozen=True, slots=True)
class Settings:
    """How long to measure."""

    rounds: int = 30
    trial_rounds: int = 3
    turn_seconds: float = 0.02


@dataclass
class Contestant:
    """One variant of one engine, and what its turns took (seconds per call)."""

    process: EngineProcess
    variant: str
    facts: dict[str, Any]
    mins: list[float] = field(default_factory=list)
    medians: list[float] = field(default_factory=list)
    rests: bool = False

    @property
    def median(self) -> float:
        return statistics.median(self.medians)

    def turn(self, seconds: float) -> None:
        answer = self.process.ask("turn", variant=self.variant, seconds=seconds)
        self.mins.append(answer["min"])
        self.medians.append(answer["median"])


@dataclass(frozen=True)
class Outcome:
    """How an engine did on a workload; `state` is ok, wrong, failed, gone or unsupported."""

    state: str
    why: str = ""
    variant: str = ""
    error: float = 0.0
    prepare_ms: float = 0.0
    flops: int = 0
    min_s: float = 0.0
    median_s: float = 0.0
    turn_medians_s: tuple[float, ...] = ()
    lost_variants: tuple[str, ...] = ()


class Contest:
    """One workload: load it everywhere, let the variants take turns, keep score."""

    def __init__(self, processes: dict[str, EngineProcess], settings: Settings) -> None:
        self.processes, self.settings = processes, settings
        self.contestants: list[Contestant] = []
        self.outcomes: dict[str, Outcome] = {}
        self.lost: dict[str, tuple[str, ...]] = {}

    def load(self, workload: AnyWorkload, reference: str | None) -> None:
        for name, process in list(self.processes.items()):
            try:
                answer = process.ask(
                    "load", timeout=LOAD_SECONDS, workload=workload.to_dict(), reference=reference
                )
            except EngineGoneError as gone:
                self._drop(name, gone)
                continue
            good = [
                Contestant(process, variant, facts)
                for variant, facts in answer["variants"].items()
                if facts["state"] == "ok"
            ]
            self.contestants += good
            self.lost[name] = _lost(answer["variants"])
            if not good:
                self.outcomes[name] = _excuse(answer["variants"])

    def rounds(self, count: int, rng: random.Random) -> None:
        for _ in range(count):
            for contestant in rng.sample(self.contestants, len(self.contestants)):
                name = contestant.process.name
                if name not in self.processes or contestant.rests:
                    continue
                try:
                    contestant.turn(self.settings.turn_seconds)
                except EngineGoneError as gone:
                    self._drop(name, gone)

    def keep_fastest_variants(self) -> None:
        """One contestant per engine from here on; its trial turns do not count if others follow."""
        by_speed = sorted(self.contestants, key=lambda c: c.median)
        fastest = {c.process.name: c for c in reversed(by_speed)}
        self.contestants = list(fastest.values())
        peers = [c for c in self.contestants if c.process.hello["peer"]]
        limit = FAR_BEHIND * min((min(c.mins) for c in peers), default=0.0)
        limit = max(limit, self.settings.turn_seconds)  # else there is no time to be won
        for contestant in self.contestants:
            contestant.rests = contestant in peers and min(contestant.mins) > limit
            if not contestant.rests:
                contestant.mins.clear()
                contestant.medians.clear()

    def finish(self) -> dict[str, Outcome]:
        for contestant in self.contestants:
            name = contestant.process.name
            try:
                check = contestant.process.ask("check", variant=contestant.variant)
                contestant.process.ask("unload")
            except EngineGoneError as gone:
                self._drop(name, gone)
            else:
                self.outcomes[name] = _score(contestant, check, self.lost[name])
        return self.outcomes

    def _drop(self, name: str, gone: EngineGoneError) -> None:
        self.processes.pop(name).close()
        self.contestants = [c for c in self.contestants if c.process.name != name]
        self.outcomes[name] = Outcome("gone", str(gone))


def compete(
    processes: dict[str, EngineProcess],
    workload: AnyWorkload,
    reference: str | None,
    settings: Settings,
) -> dict[str, Outcome]:
    """Outcomes by engine; an engine that is lost on the way is removed from `processes`."""
    contest = Contest(processes, settings)
    contest.load(workload, reference)
    rng = random.Random(workload.name)
    contest.rounds(settings.trial_rounds, rng)
    contest.keep_fastest_variants()
    contest.rounds(settings.rounds, rng)
    return contest.finish()


def _excuse(variants: dict[str, dict[str, Any]]) -> Outcome:
    """Why an engine has no contestant: it offers none, or none of them is right."""
    states: Iterable[dict[str, Any]] = variants.values()
    if wrong := [facts for facts in states if facts["state"] == "wrong"]:
        return Outcome("wrong", error=min(facts["error"] for facts in wrong))
    failures = _lost(variants)
    return Outcome("failed", "; ".join(failures)) if failures else Outcome("unsupported")


def _lost(variants: dict[str, dict[str, Any]]) -> tuple[str, ...]:
    """Variants that do not take part, with the reason: a peer may not be at its best without."""
    return tuple(
        f"{name}: {facts.get('why') or 'wrong'}"
        for name, facts in variants.items()
        if facts["state"] != "ok"
    )


def _score(contestant: Contestant, check: dict[str, Any], lost: tuple[str, ...]) -> Outcome:
    is_ok = check["state"] == "ok"
    return Outcome(
        state=check["state"],
        why="" if is_ok else f"relative error {check['error']:.2e} after its turns",
        variant=contestant.variant,
        error=check["error"],
        prepare_ms=contestant.facts["prepare_ms"],
        flops=contestant.facts["flops"],
        min_s=min(contestant.mins),
        median_s=contestant.median,
        turn_medians_s=tuple(contestant.medians),
        lost_variants=lost,
    )
