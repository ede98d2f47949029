"""Where and with what a run was made, so that its numbers can be cited."""

from __future__ import annotations

import platform
import subprocess
from pathlib import Path
from typing import Any

from benchmarks.process import ROOT
from tilewright.target import Target

__all__ = ["commit", "describe"]


def describe() -> dict[str, Any]:
    """The machine: description, fingerprint, system."""
    target = Target.host()
    return {
        "fingerprint": target.fingerprint,
        "cpu": _cpu_model(),
        "system": platform.platform(),
        "python": platform.python_version(),
        "target": target.to_dict(),
    }


def commit() -> str:
    """The commit that is checked out, with `-dirty` if files differ from it; empty outside git."""
    try:
        return _git("rev-parse", "--short=12", "HEAD") + (
            "-dirty" if _git("status", "--porcelain") else ""
        )
    except (OSError, subprocess.CalledProcessError):
        return ""


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def _cpu_model() -> str:
    try:
        with Path("/proc/cpuinfo").open(encoding="utf-8") as lines:
            models = (line.partition(":")[2].strip() for line in lines if "model name" in line)
            return next(models, platform.processor())
    except OSError:
        return platform.processor()
