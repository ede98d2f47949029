"""The first run of a model: on arrays that are given, or made up to fit.

Sizes that nobody gives are chosen (`size_rules.py`). What only the run can tell is tried: a few
choices, until one runs. What was chosen is printed, with the option that changes it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from tilewright.errors import CallError, UserError
from tilewright.feeds.inputs import Wanted
from tilewright.feeds.size_rules import SizeRules, Values
from tilewright.model.module import Module
from tilewright.shown import shown

__all__ = ["FirstRun", "first_run"]

CHOICES: Final = 4
"""Choices of sizes that are run, if the model refuses the ones before."""
REFUSALS: Final = ("C024", "C025", "C302")
"""Errors of runs that other sizes may not have."""


@dataclass(frozen=True)
class FirstRun:
    """Arrays that a model takes, what it made of them, and its symbolic sizes."""

    feeds: dict[str, Any]
    results: list[Any]
    sizes: Mapping[str, int]
    chosen: tuple[str, ...]

    def facts(self) -> dict[str, Any]:
        """For programs."""
        return {"sizes": dict(self.sizes), "chosen_sizes": list(self.chosen)}

    @property
    def text(self) -> str:
        """For people; empty if nothing was chosen."""
        if not self.chosen:
            return ""
        return (
            f"sizes: {_listed(self.sizes)} (chosen; --size {shown(self.chosen[-1])}=N for others)"
        )


def first_run(
    module: Module, inputs: Sequence[str] = (), sizes: Sequence[str] = (), seed: int = 0
) -> FirstRun:
    """Run a model once, on arrays (`NAME=FILE`) and sizes (`NAME=N`) that are given as texts."""
    wanted = Wanted.of(module.inputs, inputs, sizes, module.settled, module.overridable)
    executable = getattr(module, "executable", None)  # none if versions are compiled by value
    rules = SizeRules.of(module.inputs, executable.program if executable is not None else None)
    known = rules.given(wanted.arrays) | rules.named(wanted.sizes)
    open_ones = [k for k in rules.labels if k not in known]
    tried: list[Values] = []
    refusal: CallError | None = None
    for start in range(CHOICES if open_ones else 1):
        values = rules.chosen(known, start)
        if values in tried:
            continue
        tried.append(values)
        feeds = wanted.with_shapes(rules.shapes(values), seed)
        try:
            results = module.run(feeds)
        except CallError as error:
            if error.code.id not in REFUSALS or not rules.labels:
                raise
            refusal = refusal or error
        else:
            chosen = tuple(rules.labels[k] for k in open_ones)
            return FirstRun(feeds, results, _by_name(rules, values), chosen)
    assert refusal is not None
    raise _with_sizes(refusal, _by_name(rules, tried[0]))


def _with_sizes(refusal: CallError, sizes: Mapping[str, int]) -> UserError:
    """What a run said, with the sizes that it had, and how to give others."""
    facts = {**refusal.facts, "sizes": _listed(sizes)}
    name = list(sizes)[-1]
    hint = f"give sizes that the model is made for, for example `--size {shown(name)}=64`"
    return type(refusal)(refusal.code, facts, hint=hint)


def _by_name(rules: SizeRules, values: Values) -> dict[str, int]:
    return {label: values[k] for k, label in rules.labels.items()}


def _listed(sizes: Mapping[str, int]) -> str:
    return ", ".join(f"{shown(name)}={value}" for name, value in sizes.items())
