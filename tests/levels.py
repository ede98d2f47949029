"""The instruction-set levels that this machine can execute, so that it tests the code of all.

The fixture `level` runs a test for each of them, the strategy `targets` draws one for an example.
"""

from __future__ import annotations

from hypothesis import strategies as st

from tilewright.errors import TargetError
from tilewright.target import Target

__all__ = ["LEVELS", "targets"]

NAMES = ("x86-64-v2", "x86-64-v3", "x86-64-v4", "aarch64", "aarch64+dotprod+fullfp16")


def _runs_here(target: Target) -> bool:
    try:
        target.require_runs_on(Target.host())
    except TargetError:
        return False
    return True


LEVELS = tuple(target for name in NAMES if _runs_here(target := Target.named(name)))


def targets() -> st.SearchStrategy[Target]:
    """The host, or a level below it."""
    return st.sampled_from([Target.host(), *LEVELS])
