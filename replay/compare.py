"""Two recordings side by side: what is equal, what differs, and what only one of them has."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from difflib import unified_diff
from pathlib import Path
from typing import Final

from replay.folder import Index, Texts, read_index
from replay.stages import STAGES

__all__ = ["Comparison", "Place", "compare", "report"]

LINES: Final = 40
"""Lines of a difference that are shown."""

WIDTH: Final = 160
"""Characters of a line that is compared as a whole."""

NAMES: Final = 30
"""Records with a difference that are named."""

Place = tuple[str, str, str]
"""Record, target, stage."""


@dataclass
class Comparison:
    """Places in the order of the first recording; those of the second alone come last."""

    equal: list[Place] = field(default_factory=list)
    differing: list[Place] = field(default_factory=list)
    only_first: list[Place] = field(default_factory=list)
    only_second: list[Place] = field(default_factory=list)
    missing_first: list[str] = field(default_factory=list)
    missing_second: list[str] = field(default_factory=list)

    @property
    def is_null(self) -> bool:
        """Whether the recordings are the same."""
        return not (self.differing or self.only_first or self.only_second)

    def first_stages(self) -> list[Place]:
        """For each record and target the first stage that differs: the others follow from it."""
        found: dict[tuple[str, str], str] = {}
        for record, target, stage in self.differing:
            known = found.setdefault((record, target), stage)
            found[record, target] = min(known, stage, key=_position)
        return [(record, target, stage) for (record, target), stage in found.items()]


def compare(first: Index, second: Index) -> Comparison:
    """What is where, by hash."""
    made = Comparison(missing_first=first.missing, missing_second=second.missing)
    ours, theirs = dict(_places(first)), dict(_places(second))
    for place, digest in ours.items():
        if place not in theirs:
            made.only_first.append(place)
        elif theirs[place] == digest:
            made.equal.append(place)
        else:
            made.differing.append(place)
    made.only_second += [place for place in theirs if place not in ours]
    return made


def _places(index: Index) -> Iterator[tuple[Place, str]]:
    for record, targets in index.records.items():
        for target, stages in targets.items():
            for stage, digest in stages.items():
                yield (record, target, stage), digest


def _position(stage: str) -> int:
    return STAGES.index(stage) if stage in STAGES else len(STAGES)


def report(first: Path, second: Path, diffs: int = 3, lines: int = LINES) -> tuple[str, bool]:
    """The comparison of two folders as text, and whether they hold the same."""
    left, right = read_index(first), read_index(second)
    made = compare(left, right)
    parts = [
        *(f"{first} lacks an entry point: {text}" for text in made.missing_first),
        *(f"{second} lacks an entry point: {text}" for text in made.missing_second),
        _table(made),
        *_named("differ", made.differing),
        *_named(f"only in {first}", made.only_first),
        *_named(f"only in {second}", made.only_second),
    ]
    sides = _Side(left, Texts(first)), _Side(right, Texts(second))
    parts += _diffs(made, *sides, diffs, lines)
    texts = len(made.equal)
    parts.append(f"nothing differs in {texts:,} texts" if made.is_null else "there are differences")
    return "\n".join(parts), made.is_null


@dataclass(frozen=True)
class _Side:
    """One of two recordings."""

    index: Index
    texts: Texts

    def lines(self, place: Place) -> list[str]:
        record, target, stage = place
        text = self.texts.get(self.index.records[record][target][stage])
        return [part for line in text.splitlines() for part in _parts(line)]


def _parts(line: str) -> list[str]:
    """A line, or the arguments of a long one, so that a difference shows what differs in it."""
    return [line] if len(line) <= WIDTH else line.replace(", ", ",\n    ").splitlines()


def _table(made: Comparison) -> str:
    """Equal and unequal texts by stage and target."""
    groups = {"equal": made.equal, "differ": made.differing}
    groups["in one only"] = [*made.only_first, *made.only_second]
    counts = {kind: Counter((s, t) for _, t, s in places) for kind, places in groups.items()}
    every = [key for counter in counts.values() for key in counter]
    targets = list(dict.fromkeys(target for _, target in every))
    stages = sorted({stage for stage, _ in every}, key=_position)
    rows = [f"{'stage':<12}{'':<12}" + "".join(f"{target:>12}" for target in targets)]
    for stage in stages:
        for kind, counter in counts.items():
            numbers = [counter[stage, target] for target in targets]
            if any(numbers) or kind == "equal":
                rows.append(f"{stage:<12}{kind:<12}" + "".join(f"{n:>12,}" for n in numbers))
    return "\n".join(rows)


def _named(title: str, places: list[Place]) -> list[str]:
    """Records with their targets and stages, a line each."""
    found: dict[str, tuple[dict[str, None], dict[str, None]]] = {}
    for record, target, stage in places:
        targets, stages = found.setdefault(record, ({}, {}))
        targets[target], stages[stage] = None, None
    if not found:
        return []
    rows = [
        f"  {record}: {', '.join(stages)} ({', '.join(targets)})"
        for record, (targets, stages) in found.items()
    ]
    more = [f"  … and {len(rows) - NAMES} more"] if len(rows) > NAMES else []
    return [f"{title}: {len(rows)} records", *rows[:NAMES], *more]


def _diffs(made: Comparison, first: _Side, second: _Side, most: int, lines: int) -> Iterator[str]:
    """The first few differences; one that several targets share is shown once."""
    seen: set[str] = set()
    for place in made.first_stages():
        if len(seen) == most:
            return
        body = _diff(place, first, second, lines)
        if body not in seen:
            seen.add(body)
            yield f"\n{place[0]} for {place[1]}, {place[2]}:\n{body}"


def _diff(place: Place, first: _Side, second: _Side, lines: int) -> str:
    """How two texts differ, shortened."""
    texts = first.lines(place), second.lines(place)
    found = list(unified_diff(texts[0], texts[1], "before", "after", lineterm="", n=2))
    more = [f"… and {len(found) - lines} lines more"] if len(found) > lines else []
    return "\n".join([*found[:lines], *more])
