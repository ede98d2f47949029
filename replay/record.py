"""Record the corpus: every program and model for every target, in several processes.

An item of the corpus is a program or a model; it becomes several records (threads, kernels). Items
do not depend on each other, so neither their order nor the number of processes changes a record.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from fnmatch import fnmatchcase
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Final

import tilewright
from replay.entry_points import entry, missing_entries
from replay.folder import Index, Records, Stages, Texts, write_index
from replay.modelled import model_stages
from replay.models import models
from replay.programs import programs
from replay.stages import add_failure, kernel_stages

__all__ = ["TARGETS", "THREADS", "items", "record", "record_item"]

TARGETS: Final = ("x86-64-v2", "x86-64-v3", "x86-64-v4", "aarch64")
THREADS: Final = (1, 8)
"""What programs are scheduled for: alone, and as the kernels of a model are."""

MODEL: Final = "models/"
PROGRAM: Final = "programs/"

Tell = Callable[[int, int], None]


def items(pattern: str = "*") -> list[str]:
    """The corpus by name, or what of it matches a pattern of the shell, anywhere in the name."""
    every = [*(f"{MODEL}{name}" for name in models()), *(f"{PROGRAM}{n}" for n in programs())]
    return [name for name in every if fnmatchcase(name, f"*{pattern}*")]


def record(
    folder: Path,
    names: Sequence[str],
    targets: Sequence[str] = TARGETS,
    workers: int | None = None,
    tell: Tell | None = None,
) -> Index:
    """Record items into a folder, in several processes (None: two).

    `tell` is called with how many are done, and how many there are.
    """
    folder.mkdir(parents=True, exist_ok=True)
    records: Records = {}
    job = partial(record_item, folder, tuple(targets))
    for done, made in enumerate(_results(job, names, workers), start=1):
        records |= made
        if tell is not None:
            tell(done, len(names))
    index = Index(records, str(Path(tilewright.__file__).parent), missing_entries())
    write_index(folder, index)
    return index


def _results(
    job: Callable[[str], Records], names: Sequence[str], workers: int | None
) -> Iterator[Records]:
    count = min(workers or 2, os.cpu_count() or 1, len(names))
    if count <= 1:
        yield from map(job, names)
        return
    with ProcessPoolExecutor(count, get_context("spawn"), _collect_seldom) as pool:
        yield from pool.map(job, names)


def _collect_seldom() -> None:
    """Programs are trees that hardly refer back; looking for cycles took a sixth of the time."""
    gc.set_threshold(100_000, 50, 100)


def record_item(folder: Path, targets: Sequence[str], name: str) -> Records:
    """Write the texts of one item, for all targets; the hashes of its records."""
    texts, records = Texts(folder), Records()
    for target in targets:
        for made, stages in _stages_of(name, target).items():
            if stages:
                records.setdefault(made, {})[target] = texts.put_all(stages)
    return records


def _stages_of(name: str, target: str) -> dict[str, Stages]:
    """Texts of the stages of an item, by record."""
    machine = entry("target").named(target)
    if name.startswith(MODEL):
        made = model_stages(models()[name.removeprefix(MODEL)], machine)
        return {f"{name}/{kernel}".rstrip("/"): stages for kernel, stages in made.items()}
    program = programs()[name.removeprefix(PROGRAM)]
    try:
        func = program.make()
    except Exception as problem:  # noqa: BLE001  (another commit may lack what it is built with)
        stages: Stages = {}
        add_failure(stages, problem, ("program",))
        return {name: stages}
    known: dict[str, Stages] = {}
    return {
        f"{name}/threads={threads}": kernel_stages(func, machine, threads, program.constants, known)
        for threads in THREADS
    }
