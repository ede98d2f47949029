"""Targets by name: `name[+feature…][,±feature…]`, such as `x86-64-v3,-fma` or `aarch64+dotprod`.

A feature brings along what it stands on, and takes along what stands on it. Names are the rows of
`known.KNOWN`, processors and products with the core of a row (`known.SAME_CORE`), and `host`.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable
from dataclasses import replace

from tilewright.errors import Code, TargetError
from tilewright.target.description import Target
from tilewright.target.isa import ARCHES
from tilewright.target.known import KNOWN, LLVM_CPU, SAME_CORE, find

__all__ = ["names", "parse"]

T001 = Code("T001", "there is no target named `{name}`")
T002 = Code("T002", "`{arch}` has no feature `{feature}`")
T003 = Code("T003", "`{text}` is not a target")

CORES = 4
"""Cores to assume for a machine that is not at hand; `build(threads=...)` says how many run."""

_FORM = re.compile(r"(?P<name>[\w.-]+)(?P<switches>([+,][\w.+-]+)*)")


def names() -> list[str]:
    """All names, `host` first."""
    return ["host", *KNOWN, *SAME_CORE]


def parse(text: str, host: Callable[[], Target] = Target.host) -> Target:
    """The target meant by `text`; `TargetError` with close matches when there is none.

    `host` is the machine that the name `host` stands for.
    """
    form = _FORM.fullmatch(text.strip())
    if form is None:
        hint = "write a name and switches, for example `x86-64-v3` or `aarch64+dotprod,-fullfp16`"
        raise TargetError(T003, {"text": text}, hint=hint)
    target = host() if form["name"] == "host" else _base(form["name"])
    for sign, feature in _switches(form["switches"]):
        target = _switch(target, feature, on=sign == "+")
    return replace(target, name=text.strip()) if form["switches"] else target


def _base(name: str) -> Target:
    row = find(name)
    if row is None:
        raise TargetError(T001, {"name": name}, hint=_did_you_mean(name, names()))
    vector_bytes, vector_registers = row.arch.vector_shape(row.features)
    return Target(
        name=name,
        triple=row.arch.triple,
        arch=row.arch.name,
        cpu=LLVM_CPU.get(name, name),
        llvm_features=",".join(f"+{feature}" for feature in sorted(row.features)),
        features=row.features,
        vector_bytes=vector_bytes,
        vector_registers=vector_registers,
        fma=row.arch.has_fma(row.features),
        core=row.core,
        caches=row.caches(CORES),
        cores=CORES,
        core_of=row.cpu,
    )


def _switches(text: str) -> Iterable[tuple[str, str]]:
    for item in filter(None, text.split(",")):
        if item.startswith("-"):
            yield "-", item[1:]
        else:
            yield from (("+", feature) for feature in item.split("+") if feature)


def _switch(target: Target, feature: str, *, on: bool) -> Target:
    arch = ARCHES[target.arch]
    if feature not in arch.needs and feature not in target.features:
        hint = _did_you_mean(feature, sorted(arch.needs))
        raise TargetError(T002, {"arch": target.arch, "feature": feature}, hint=hint)
    if on:
        features = target.features | arch.closure([feature])
        changed = [f"+{f}" for f in sorted(features - target.features)]
    else:
        features = arch.without(target.features, feature)
        changed = [f"-{f}" for f in sorted(target.features - features)]
    vector_bytes, vector_registers = arch.vector_shape(features)
    return replace(
        target,
        features=features,
        # LLVM reads the list in order, so that later entries win.
        llvm_features=",".join(filter(None, [target.llvm_features, *changed])),
        vector_bytes=vector_bytes,
        vector_registers=vector_registers,
        fma=arch.has_fma(features),
        measured=None,
    )


def _did_you_mean(word: str, known: list[str]) -> str:
    close = difflib.get_close_matches(word, known, n=3, cutoff=0.5)
    if close:
        return "did you mean " + " or ".join(f"`{name}`" for name in close) + "?"
    return "known: " + ", ".join(known)
