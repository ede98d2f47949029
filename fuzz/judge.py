"""What a case shows: that all agree, that the oracles do not, or a fault of tilewright.

A difference counts as ours if tilewright differs from both oracles, or from one where the other
refuses. Where the oracles differ from each other and tilewright agrees with one of them, there is
nothing to explain. A refusal of what an oracle runs is a finding as well.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any, Final

import onnx

from fuzz.case import Case
from fuzz.compare import Place, differences, spread
from fuzz.engines import ORACLES, Results, run_tilewright
from fuzz.known import MIXED, excuse
from fuzz.stepwise import run_stepwise

__all__ = ["FINDINGS", "Verdict", "judge", "one_line"]

FINDINGS: Final = ("wrong", "refused", "crashed", "hung")
"""What counts; other kinds are `same`, `explained`, `rounding`, `invalid` and `unjudged`."""

SECOND_OPINIONS: Final = {
    ("onnxruntime", "reference"): "agrees node by node, with onnxruntime wherever it runs one",
    ("wide", "reference", "onnxruntime"): "agrees with the reference in 64 bits, rounded once",
}
"""Asked where tilewright differs from all: onnxruntime may refuse a model because of one node, and
the reference sums up in the type it is given. By the order of engines for each node."""

Stage = Callable[[str], None]


@dataclass(frozen=True)
class Verdict:
    """`kind`, why, what the oracles said, and which operators ran by reference."""

    kind: str
    detail: str = ""
    oracles: dict[str, str] = field(default_factory=dict)
    by_reference: list[str] = field(default_factory=list)

    @property
    def is_finding(self) -> bool:
        return self.kind in FINDINGS

    @property
    def signature(self) -> str:
        """Equal for what is probably the same fault; values and names do not matter."""
        text = re.sub(r"`[^`]*`|'[^']*'|\([\d, ]*\)|[-\d.]+(e[-+]?\d+)?", "…", self.detail)
        return self.kind if self.kind == "wrong" else f"{self.kind}: {text[:80]}"

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def judge(
    case: Case, stage: Stage = lambda _: None, without: frozenset[str] = frozenset()
) -> Verdict:
    """Run all engines and compare; `stage` is told which one is about to run."""
    stage("checker")
    try:
        onnx.checker.check_model(case.model, full_check=True)
    except Exception as problem:  # noqa: BLE001  (a checker may raise anything)
        return Verdict("invalid", one_line(problem))
    answers: dict[str, Results] = {}
    said: dict[str, str] = {}
    for name, run in ORACLES.items():
        if name in without:
            said[name] = "crashed"
            continue
        stage(name)
        try:
            answers[name] = run(case.model, case.runs)
        except Exception as problem:  # noqa: BLE001  (an oracle may raise anything)
            said[name] = one_line(problem)
    if not answers:
        stage(MIXED)
        mixed = _node_by_node(case, ("reference", "onnxruntime"))
        if mixed is not None:
            answers[MIXED] = mixed
    stage("tilewright")
    try:
        found, by_reference = run_tilewright(case)
    except Exception as problem:  # noqa: BLE001  (whatever it is, it is a finding)
        kind = "refused" if answers else "unjudged"
        return Verdict(kind, one_line(problem), said)
    stage("comparison")
    return _compared(case, found, answers, said, by_reference)


def _compared(
    case: Case,
    found: Results,
    answers: dict[str, Results],
    said: dict[str, str],
    by_reference: list[str],
) -> Verdict:
    if not answers:
        return Verdict("unjudged", "no oracle runs it", said, by_reference)
    told = {name: differences(found, theirs) for name, theirs in answers.items()}
    said = said | {name: next(iter(texts.values()), "") for name, texts in told.items()}
    differing = [name for name in answers if said[name]]
    if not differing:
        return Verdict("same", "", said, by_reference)
    text = "; ".join(f"{name}: {said[name]}" for name in differing)
    left = set.intersection(*(set(texts) for texts in told.values()))
    kind, reason = "explained", "the oracles differ"
    for opinion in (_second_opinions, _by_rounding, _by_knowledge):
        if left:
            kind, reason, agreed = opinion(case, found, answers, left)
            left -= agreed
    if not left:
        return Verdict(kind, f"{reason}; {text}", said, by_reference)
    first = min(left)
    text = "; ".join(f"{name}: {texts[first]}" for name, texts in told.items())
    return Verdict("wrong", text, said, by_reference)


Opinion = tuple[str, str, set[Place]]
"""A kind of verdict, the reason, and the places that it settles."""


def _second_opinions(
    case: Case, found: Results, answers: dict[str, Results], left: set[Place]
) -> Opinion:
    agreed: set[Place] = set()
    reasons = []
    for order, reason in SECOND_OPINIONS.items():
        other = None if order[0] in answers else _node_by_node(case, order)
        if other is not None and left - agreed:
            more = left - agreed - set(differences(found, other))
            reasons += [reason] if more else []
            agreed |= more
    return "explained", "; ".join(reasons), agreed


def _by_rounding(
    case: Case, found: Results, answers: dict[str, Results], left: set[Place]
) -> Opinion:
    allowed = spread(case)
    if allowed is None:
        return "rounding", "", set()
    opinions = (_node_by_node(case, order) for order in SECOND_OPINIONS if order[0] not in answers)
    wanted = [*answers.values(), *(other for other in opinions if other is not None)]
    near = [left - set(differences(found, theirs, allowed)) for theirs in wanted]
    return "rounding", "errors of single operators grow so far", set().union(*near)


def _by_knowledge(
    case: Case, found: Results, answers: dict[str, Results], left: set[Place]
) -> Opinion:
    reason = excuse(case, found, answers, left, spread(case))
    return "explained", reason, left if reason else set()


def _node_by_node(case: Case, order: tuple[str, ...]) -> Results | None:
    """Each node by the first engine of `order` that runs it."""
    names = [output.name for output in case.model.graph.output]
    try:
        values = [run_stepwise(case.model, feeds, None, order) for feeds in case.runs]
    except Exception:  # noqa: BLE001  (then there is no such opinion)
        return None
    return [[v[n] for n in names] for v in values]


def one_line(problem: BaseException) -> str:
    """An exception as text for a table."""
    return " ".join(f"{type(problem).__name__}: {problem}".split())[:400]
