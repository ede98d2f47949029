"""The target with its calibrated model: kept from before, or measured now."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from tilewright import options
from tilewright.calibration import kept
from tilewright.calibration.grid import steady
from tilewright.errors import TilewrightError
from tilewright.target import MachineModel, Target
from tilewright.target.machine import nominal, unusable_model

__all__ = ["calibrated", "measured_model", "with_machine_model"]

_LOCK = threading.Lock()
_LOG = logging.getLogger("tilewright")


def with_machine_model(
    target: Target, tell: Callable[[], object] | None = None, *, anew: bool = False
) -> Target:
    """The target with the model that its costs are to ask, as TILEWRIGHT_MACHINE says.

    Other machines than this one have nominal figures, whatever is known of this one. `tell` and
    `anew` are as for `calibrated`.
    """
    wish = options.machine_model()
    if wish == "nominal" or target.model is not None or target != Target.host():
        return target
    if wish == "auto":
        return calibrated(target, None, tell, anew=anew)
    return replace(target, model=read_model(Path(wish)))


def read_model(path: Path) -> MachineModel:
    """The machine model of a file; T010 if it is none."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as problem:
        raise unusable_model(f"{path.name}: {problem}") from None
    return MachineModel.from_dict(data)


def calibrated(
    target: Target,
    folder: Path | None = None,
    tell: Callable[[], object] | None = None,
    *,
    anew: bool = False,
) -> Target:
    """The target with the model of this machine; `tell` is called before something is measured.

    `anew` measures even what is kept; figures that have moved by a step of their grid at most stay
    what they were. A folder that cannot be written costs a calibration in every process, and
    nothing else.
    """
    if target.model is not None:
        return target
    with _LOCK:  # threads of one process measure once
        model = kept.load(target, folder)
        if model is None or anew:
            with kept.alone(target, folder):  # and so do processes
                model = kept.load(target, folder)
                if model is None or anew:
                    model = _measured_and_kept(target, folder, tell or _say, model)
    return replace(target, model=model)


def _say() -> None:
    """One line, for those who wonder what their first compilation waits for."""
    _LOG.warning("tilewright measures this machine, once, for about 2 seconds")


def _measured_and_kept(
    target: Target,
    folder: Path | None,
    tell: Callable[[], object],
    before: MachineModel | None,
) -> MachineModel:
    tell()
    try:
        model = measured_model(target)
    except (ArithmeticError, MemoryError, OSError, TilewrightError) as problem:
        # Figures make code faster, never right: without them there are nominal ones.
        _LOG.warning("this machine cannot be measured (%s): nominal figures are used", problem)
        return nominal(target) if before is None else before
    if before is not None:
        model = steady(model, before)
    with suppress(OSError):
        kept.store(target, model, folder)
    return model


def measured_model(target: Target) -> MachineModel:
    """Measure now, in about two seconds."""
    from tilewright.calibration.figures import model_of
    from tilewright.calibration.measure import best_seconds
    from tilewright.calibration.probes import probes_of

    uncalibrated = replace(target, model=nominal(target))  # products are compiled, too
    return model_of(target, best_seconds(probes_of(uncalibrated)))
