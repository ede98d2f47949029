"""Runners by the names that commands take: `local`, `ray`, `ray:HOST:PORT`."""

from __future__ import annotations

from tilewright.errors import Code, TuneError
from tilewright.tuning.measure.trial import Runner

__all__ = ["runner_named"]

U055 = Code("U055", "there is no runner `{name}`")


def runner_named(name: str) -> Runner:
    """The runner of a name, started; whoever asks closes it. U055 for any other name."""
    kind, colon, address = name.partition(":")
    if kind == "ray" and bool(colon) == bool(address):
        from tilewright.tuning.measure.ray_runner import RayRunner

        return RayRunner(address or None)
    if name == "local":
        from tilewright.tuning.measure.local import LocalRunner

        return LocalRunner()
    facts = {"name": name, "expected": "local, ray, or ray:HOST:PORT"}
    raise TuneError(U055, facts, hint="`local` measures on this machine")
