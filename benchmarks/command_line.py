"""Arguments that the benchmarks of operators and of models have in common."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Sequence

__all__ = ["default_threads", "names_among", "thread_counts"]


def default_threads() -> list[int]:
    """One, and all there are."""
    return sorted({1, len(os.sched_getaffinity(0))})


def thread_counts(text: str) -> list[int]:
    """`1,2` as numbers that this machine has."""
    counts = [int(item) for item in text.split(",")]
    available = len(os.sched_getaffinity(0))
    if not all(1 <= count <= available for count in counts):
        raise argparse.ArgumentTypeError(f"thread counts go from 1 to {available} here")
    return counts


def names_among(known: Sequence[str]) -> Callable[[str], list[str]]:
    """A parser of names between commas."""

    def parse(text: str) -> list[str]:
        names = [name for name in text.split(",") if name]
        if unknown := set(names) - set(known):
            raise argparse.ArgumentTypeError(f"unknown: {', '.join(sorted(unknown))}")
        return names

    return parse
