"""Compiles the C library with each test program and runs it, also under the sanitizers."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from functools import cache
from pathlib import Path

import pytest

HERE = Path(__file__).parent
NATIVE = HERE.parents[1] / "src/tilewright/runtime/native"
LIBRARY = ["barrier.c", "caller.c", "digest.c", "expression.c", "frame.c", "guard.c", "image.c"]
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
THREADED = ("digest", "fork", "pool", "program", "timer")
"""Programs with several threads; of the others all flavours but two run with `--long` only, and so
does what other systems get of these."""

QUICK_ROUNDS = {"pool": 400, "program": 60}
"""How often threads meet, unless there is time for as many meetings as the programs say."""

CC = shutil.which(os.environ.get("CC", "gcc")) or shutil.which("cc")


@pytest.fixture(scope="module")
def objects(tmp_path_factory):
    """The objects of the C library in a flavour, compiled once."""

    @cache
    def compiled(flavour: str) -> list[Path]:
        assert CC is not None, "the tests of the C library need a C compiler"
        folder = tmp_path_factory.mktemp(flavour)
        sources = [NATIVE / name for name in LIBRARY]
        flags = [*COMMON, *FLAVOURS[flavour], f"-I{NATIVE}", "-c"]
        subprocess.run([CC, *flags, *sources], check=True, cwd=folder)
        return sorted(folder.glob("*.o"))

    return compiled


def build(
    program: str, flavour: str, folder: Path, objects: list[Path], rounds: int | None
) -> Path:
    target = folder / f"{program}-{flavour}"
    flags = [*COMMON, *FLAVOURS[flavour], f"-I{NATIVE}", f"-I{HERE}"]
    flags += [] if rounds is None else [f"-DROUNDS={rounds}"]
    subprocess.run([str(CC), *flags, HERE / f"{program}.c", *objects, "-o", target], check=True)
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


def every_flavour():
    for program in sorted(path.stem for path in HERE.glob("*.c")):
        for flavour in FLAVOURS:
            threaded = program in THREADED and "portable" not in flavour
            quick = threaded or flavour in ("plain", "address")
            yield pytest.param(program, flavour, marks=() if quick else pytest.mark.slow)


@pytest.mark.parametrize(("program", "flavour"), list(every_flavour()))
def test_program_passes(program, flavour, tmp_path, objects, request):
    if reason := UNSUPPORTED.get((program, flavour)):
        pytest.skip(reason)
    prefix = prefix_for(flavour)
    if prefix is None:
        pytest.skip(f"the compiler or the system cannot run programs of flavour {flavour}")
    rounds = None if request.config.getoption("--long") else QUICK_ROUNDS.get(program)
    result = run([*prefix, build(program, flavour, tmp_path, objects(flavour), rounds)])
    assert result.returncode == 0, result.stdout + result.stderr
    assert "ok test_" in result.stdout


LARGE = ["nodes:*/25", "places:Scatter"]
WATCHED = {
    "address": (("libasan.so", "libubsan.so"), ["refused", "networks", "nodes:*/150"], 125),
    "thread": (("libtsan.so",), ["refused", "networks"], 110),
}


@pytest.fixture(scope="module", params=WATCHED)
def watched(request, tmp_path_factory):
    """How a process begins that loads the extension as a sanitizer watches it, and the cases."""
    prefix = prefix_for(request.param)
    if prefix is None:
        pytest.skip(f"the compiler or the system cannot run programs of flavour {request.param}")
    preloaded, cases, least = WATCHED[request.param]
    libraries = [run([CC or "cc", f"-print-file-name={name}"]).stdout.strip() for name in preloaded]
    if not all(Path(library).is_absolute() for library in libraries):
        pytest.skip("the runtime of the sanitizer is not a library that can be loaded first")
    library = tmp_path_factory.mktemp("watched") / "_native.so"
    flags = [flag for flag in COMMON if flag != "-Wconversion"]
    flags += ["-DPy_LIMITED_API=0x030B0000", "-shared", "-fPIC"]
    flags += [*FLAVOURS[request.param], f"-I{sysconfig.get_path('include')}"]
    subprocess.run([CC or "cc", *flags, *sorted(NATIVE.glob("*.c")), "-o", library], check=True)
    environment = {**os.environ, "LD_PRELOAD": " ".join(libraries)}
    environment["ASAN_OPTIONS"] = "detect_leaks=0"  # the interpreter keeps what it has
    environment["TSAN_OPTIONS"] = "exitcode=66 halt_on_error=1"
    return (
        [*prefix, sys.executable, "-m", "tests.native.sanitized", library, request.param],
        environment,
        cases,
        least,
    )


def run_watched(watched, *more: str, timeout: int = 600) -> int:
    """How many runs of models there were, without a word of the sanitizer."""
    command, environment, cases, _ = watched
    done = subprocess.run(
        [*command, *(more or cases)],
        cwd=HERE.parents[1],
        env=environment,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout[-500:]}\n{done.stderr[-5000:]}"
    assert "Sanitizer" not in done.stderr, done.stderr[-5000:]
    return sum(int(n) for n in re.findall(r": (\d+) runs$", done.stdout, re.MULTILINE))


@pytest.mark.slow
def test_models_run_clean_with_a_library_that_is_watched(watched):
    """With what binds it to Python: arguments, files, several callers and threads at once."""
    assert run_watched(watched) >= watched[3]


@pytest.mark.slow
def test_what_a_kernel_does_wrong_would_be_noticed(watched):
    """A stray access, or threads that write to one place."""
    kind = {"address": "stray", "thread": "racing"}[watched[0][-1]]
    with pytest.raises(AssertionError, match=r"ERROR: AddressSanitizer|data race"):
        run_watched(watched, kind)


@pytest.mark.slow
def test_many_operators_run_clean_with_a_library_that_is_watched(watched):
    assert run_watched(watched, *LARGE, timeout=3000) >= 100


def test_library_exports_nothing_but_the_module():
    """Hidden symbols cannot clash with those of other libraries in the process."""
    from tilewright.runtime import _native

    nm = shutil.which("nm")
    if nm is None:
        pytest.skip("needs nm")
    listing = run([nm, "-D", "--defined-only", _native.__file__]).stdout
    names = {line.split()[-1] for line in listing.splitlines()}
    assert {name for name in names if not name.startswith("_")} == {"PyInit__native"}
