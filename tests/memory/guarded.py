"""Runs with all memory between forbidden pages, so that a stray access ends the process.

    python -m tests.memory.guarded end nodes:gather* places graphs:20

Buffers end where a forbidden page begins (`end`), or begin where one ends (`start`); the rest of
their pages is looked at when they are freed. What is being run is printed before, so that the last
line names the culprit.
"""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import mmap
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from tilewright.dtypes import DTYPES
from tilewright.runtime import _native
from tilewright.runtime.arrays import empty

__all__ = ["GUARDS", "at_edge", "chosen", "guarded", "in_pages", "run_apart", "say", "surrounded"]

Case = TypeVar("Case")

GUARDS = {"none": 0, "end": 1, "start": 2}

LIBC = ctypes.CDLL(None, use_errno=True)
PROT_NONE = 0

REPOSITORY = Path(__file__).parents[2]


@contextlib.contextmanager
def guarded(guard: str) -> Iterator[None]:
    """Memory that is allocated meanwhile is guarded."""
    before = _native.guard_memory(GUARDS[guard])
    try:
        yield
    finally:
        _native.guard_memory(before)


def in_pages(value: Any) -> Any:
    """A copy of an array in memory of the library, which may be guarded."""
    known = {dtype.numpy: dtype for dtype in DTYPES.values()}
    if not isinstance(value, np.ndarray | np.generic) or value.dtype not in known:
        return value
    copy = empty(np.shape(value), known[value.dtype])
    copy[...] = value
    return copy


def at_edge(value: Any, edge: str) -> Any:
    """A copy of an array as a caller may have it: a forbidden page is its very neighbour.

    That page is behind its last byte, or in front of its first; without elements, the array lies
    between the two all the same.
    """
    array = np.ascontiguousarray(value)
    inside = -(-array.nbytes // mmap.PAGESIZE) * mmap.PAGESIZE
    pages = mmap.mmap(-1, inside + 2 * mmap.PAGESIZE)
    address = np.frombuffer(pages, np.uint8).ctypes.data
    for begin in (0, mmap.PAGESIZE + inside):
        forbidden = LIBC.mprotect(ctypes.c_void_p(address + begin), mmap.PAGESIZE, PROT_NONE)
        assert forbidden == 0, "mprotect"
    offset = mmap.PAGESIZE + (inside - array.nbytes if edge == "end" else 0)
    copy: Any = np.ndarray(np.shape(value), array.dtype, pages, offset)
    copy[...] = value
    return copy


def surrounded(value: Any, byte: int, margin: int = 4096) -> Any:
    """A copy of an array in the midst of many equal bytes."""
    array = np.ascontiguousarray(value)
    whole = np.full(array.nbytes + 2 * margin, byte, np.uint8)
    copy: Any = np.ndarray(np.shape(value), array.dtype, whole.data, margin)
    copy[...] = value
    return copy


def chosen(pattern: str, every: Sequence[tuple[Case, str]]) -> list[Case]:
    """Of cases with names those that are asked for: `Gather`, `/10` for every tenth, or both."""
    name, _, step = pattern.partition("/")
    return [case for case, own in every if name in own][:: int(step or 1)]


def say(what: str) -> None:
    """The last words, should the process end."""
    sys.stdout.write(f"{what}\n")
    sys.stdout.flush()


def run_apart(*arguments: str, timeout: int = 600) -> str:
    """This module in a process of its own; what it says, and an assertion that it survives."""
    command = [sys.executable, "-m", "tests.memory.guarded", *arguments]
    result = subprocess.run(
        command, cwd=REPOSITORY, capture_output=True, text=True, timeout=timeout, check=False
    )
    lines = [*result.stdout.splitlines(), "nothing"]
    assert result.returncode == 0, f"{lines[-2:]}\n{result.stderr[-3000:]}"
    return result.stdout


def main(arguments: list[str]) -> None:
    """Run kinds of cases under a guard."""
    from tests.memory import cases

    faulthandler.enable()
    guard, *wanted = arguments
    with guarded(guard):
        for text in wanted:
            kind, _, rest = text.partition(":")
            run: Callable[[str], int] = cases.KINDS[kind]
            say(f"{text}: {run(rest)} runs")


if __name__ == "__main__":
    main(sys.argv[1:])
