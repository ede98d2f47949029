"""The target with its calibrated model: kept from before, or measured now."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from tilewright import options
from tilewright.calibration import kept
from tilewright.target import MachineModel, Target
from tilewright.target.machine import nominal, unusable_model

__all__ = ["calibrated", "measured_model", "with_machine_model"]

_LOCK = threading.Lock()


def with_machine_model(target: Target, tell: Callable[[], object] | None = None) -> Target:
    """The target with the model that its costs are to ask, as TILEWRIGHT_MACHINE says.

    Other machines than this one have nominal figures, whatever is known of this one.
    """
    wish = options.machine_model()
    if wish == "nominal" or target.model is not None or target != Target.host():
        return target
    if wish == "auto":
        return calibrated(target, None, tell)
    return replace(target, model=read_model(Path(wish)))


def read_model(path: Path) -> MachineModel:
    """The machine model of a file; T010 if it is none."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as problem:
        raise unusable_model(f"{path.name}: {problem}") from None
    return MachineModel.from_dict(data)


def calibrated(
    target: Target, folder: Path | None = None, tell: Callable[[], object] | None = None
) -> Target:
    """The target with the model of this machine; `tell` is called before something is measured.

    A folder that cannot be written costs a calibration in every process, and nothing else.
    """
    if target.model is not None:
        return target
    with _LOCK:  # threads of one process measure once
        model = kept.load(target, folder)
        if model is None:
            if tell is not None:
                tell()
            model = measured_model(target)
            try:
                kept.store(target, model, folder)
            except OSError:
                return replace(target, model=model)
    return replace(target, model=model)


def measured_model(target: Target) -> MachineModel:
    """Measure now, in about two seconds."""
    from tilewright.calibration.figures import model_of
    from tilewright.calibration.measure import best_seconds
    from tilewright.calibration.probes import probes_of

    uncalibrated = replace(target, model=nominal(target))  # products are compiled, too
    with probes_of(uncalibrated) as probes:
        return model_of(target, best_seconds(probes))
