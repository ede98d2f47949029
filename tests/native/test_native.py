"""Compiles the C library with each test program and runs it, also under the sanitizers."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

import pytest

HERE = Path(__file__).parent
NATIVE = HERE.parents[1] / "src/tilewright/runtime/native"
LIBRARY = ["barrier.c", "caller.c", "expression.c", "frame.c", "guard.c", "image.c"]
LIBRARY += ["memory.c", "plan.c", "pool.c", "program.c", "recall.c", "timer.c", "wait.c", "walk.c"]

COMMON = ["-std=c11", "-D_GNU_SOURCE", "-pthread", "-Wall", "-Wextra", "-Wconversion", "-Werror"]
SANITIZED = ["-O1", "-g", "-fno-omit-frame-pointer"]
FLAVOURS = {
    "plain": ["-O2"],
    "sleepy": ["-O2", "-DTW_SLEEPY"],  # every wait parks at once: lost wake-ups would hang
    "portable": ["-O2", "-DTW_NO_FUTEX"],  # what other systems than Linux get
    "thread": [*SANITIZED, "-fsanitize=thread"],
    "portable-thread": [*SANITIZED, "-fsanitize=thread", "-DTW_NO_FUTEX"],
    "address": [*SANITIZED, "-fsanitize=address,undefined", "-fno-sanitize-recover=all"],
}
UNSUPPORTED = {
    ("fork", "thread"): "ThreadSanitizer cannot follow threads started after a fork",
    ("fork", "portable-thread"): "ThreadSanitizer cannot follow threads started after a fork",
}
CC = shutil.which(os.environ.get("CC", "gcc")) or shutil.which("cc")


def build(program: str, flavour: str, folder: Path) -> Path:
    assert CC is not None, "the tests of the C library need a C compiler"
    target = folder / f"{program}-{flavour}"
    sources = [HERE / f"{program}.c", *(NATIVE / name for name in LIBRARY)]
    flags = [*COMMON, *FLAVOURS[flavour], f"-I{NATIVE}", f"-I{HERE}"]
    subprocess.run([CC, *flags, *sources, "-o", target], check=True)
    return target


def run(command: list[str | Path]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


@cache
def prefix_for(flavour: str) -> tuple[str, ...] | None:
    """The prefix with which an empty program of this flavour runs; None if it does not at all.

    ThreadSanitizer of older compilers cannot place its shadow memory when the kernel randomises
    addresses by more than 28 bits; `setarch -R` switches that off for one process.
    """
    with tempfile.TemporaryDirectory() as folder:
        source, program = Path(folder, "empty.c"), Path(folder, "empty")
        source.write_text("int main(void) { return 0; }\n")
        if run([CC or "cc", *FLAVOURS[flavour], source, "-o", program]).returncode != 0:
            return None
        if run([program]).returncode == 0:
            return ()
        fixed = ("setarch", "-R")
        works = shutil.which("setarch") and run([*fixed, program]).returncode == 0
        return fixed if works else None


@pytest.mark.parametrize("flavour", FLAVOURS)
@pytest.mark.parametrize("program", sorted(path.stem for path in HERE.glob("*.c")))
def test_program_passes(program, flavour, tmp_path):
    if reason := UNSUPPORTED.get((program, flavour)):
        pytest.skip(reason)
    prefix = prefix_for(flavour)
    if prefix is None:
        pytest.skip(f"the compiler or the system cannot run programs of flavour {flavour}")
    result = run([*prefix, build(program, flavour, tmp_path)])
    assert result.returncode == 0, result.stdout + result.stderr
    assert "ok test_" in result.stdout


def test_library_exports_nothing_but_the_module():
    """Hidden symbols cannot clash with those of other libraries in the process."""
    from tilewright.runtime import _native

    nm = shutil.which("nm")
    if nm is None:
        pytest.skip("needs nm")
    listing = run([nm, "-D", "--defined-only", _native.__file__]).stdout
    names = {line.split()[-1] for line in listing.splitlines()}
    assert {name for name in names if not name.startswith("_")} == {"PyInit__native"}
