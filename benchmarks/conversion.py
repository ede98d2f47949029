"""Files of ONNX turned into those of another engine, by a tool of its own in a process of its own.

Converters crash, hang and print at will: all that becomes a `ConversionError` with a reason. What
is made stays beside the file that it is made of, and is made once.
"""

from __future__ import annotations

import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

__all__ = ["MODEL", "ConversionError", "converted"]

SECONDS: Final = 240.0
MODEL: Final = "model.onnx"
"""The name of the source in the folder of a command, which may replace it."""

_failures: dict[Path, str] = {}


class ConversionError(Exception):
    """A tool did not convert a model; the message says how it ended."""


def converted(
    source: str, kind: str, command: Callable[[Path], Sequence[str]], results: Sequence[str]
) -> Path:
    """The folder with these results of a command, which finds the source as `MODEL`.

    The command is given the folder that it is run in. `kind` names the tool and its version. A tool
    that has failed is not tried again in this process.
    """
    folder = Path(f"{source}.{kind}")
    if folder.exists() and folder.stat().st_mtime >= Path(source).stat().st_mtime:
        return folder
    if folder not in _failures:
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".converting-") as scratch:
            why = _run(source, command, Path(scratch))
            if all((Path(scratch) / name).exists() for name in results):
                return _keep(Path(scratch), results, folder)
            _failures[folder] = why
    raise ConversionError(_failures[folder])


def _run(source: str, command: Callable[[Path], Sequence[str]], scratch: Path) -> str:
    """Run the command; how it ended, and its last words."""
    (scratch / MODEL).symlink_to(Path(source).absolute())
    output = scratch / "output.txt"
    with output.open("wb") as stream:
        try:
            done = subprocess.run(
                command(scratch),
                cwd=scratch,
                stdout=stream,
                stderr=subprocess.STDOUT,
                timeout=SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return f"the converter took more than {SECONDS:.0f} s"
    code = done.returncode
    how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
    lines = output.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return f"the converter ended with {how}; {' / '.join(lines[-2:]) or 'no message'}"


def _keep(scratch: Path, results: Sequence[str], folder: Path) -> Path:
    made = scratch / "made"
    made.mkdir()
    for name in results:
        (scratch / name).rename(made / name)
    shutil.rmtree(folder, ignore_errors=True)
    return made.rename(folder)
