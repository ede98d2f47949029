"""Cost models as JSON: columns, settings, and trees in LightGBM's own text. Nothing is pickled.

A file says what it is and what it was made with, and has a checksum: LightGBM's reader takes a
damaged text for granted. What cannot be used is refused with U011, and a tuner learns anew.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, Final

from tilewright.errors import Code, TuneError
from tilewright.tuning.cost_model.boosted import Boosted, Settings, lightgbm
from tilewright.tuning.cost_model.joined import Joined

__all__ = ["FORMAT", "from_data", "load", "save", "to_data"]

U011 = Code("U011", "the file has no cost model that can be used: {problem}")

FORMAT: Final = "tilewright-cost-model-1"

Model = Boosted | Joined


def save(model: Model, path: Path) -> None:
    """Write a model."""
    content = to_data(model)
    data = {"format": FORMAT, "digest": _digest(content), "model": content}
    path.write_text(json.dumps(data) + "\n", encoding="utf-8")


def load(path: Path) -> Model:
    """Read a model; U011 for anything else."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        if data["format"] != FORMAT:
            raise ValueError(f"its format is {data['format']!r}, not {FORMAT!r}")
        if data["digest"] != _digest(data["model"]):
            raise ValueError("it was changed since it was written")
        return from_data(data["model"])
    except (OSError, ValueError, KeyError, TypeError) as problem:
        raise _unusable(problem) from None


def to_data(model: Model) -> dict[str, Any]:
    """A model as data of JSON."""
    if isinstance(model, Joined):
        parts = {"shared": to_data(model.shared), "own": to_data(model.own)}
        own = {"samples": model.samples, "is_of_use": model.is_of_use}
        return {**parts, "columns": list(model.columns), **own}
    trees = None if model.booster is None else model.booster.model_to_string()
    about = {"settings": asdict(model.settings), "names": list(model.names)}
    return {**about, "kinds": sorted(model.kinds), "trees": trees}


def from_data(data: Mapping[str, Any]) -> Model:
    """The inverse of `to_data`; a ValueError, KeyError or TypeError for anything else."""
    if "shared" in data:
        shared, own = _boosted(data["shared"]), _boosted(data["own"])
        about = int(data["samples"]), bool(data.get("is_of_use", True))
        return Joined(shared, own, tuple(map(str, data["columns"])), *about)
    return _boosted(data)


def _boosted(data: Mapping[str, Any]) -> Boosted:
    known = {f.name for f in fields(Settings)}
    if set(data["settings"]) != known:
        raise ValueError("it has other settings")
    model = Boosted(Settings(**data["settings"]), tuple(map(str, data["names"])))
    model.kinds = frozenset(map(str, data["kinds"]))
    if data["trees"] is not None:
        module = lightgbm()
        try:
            model.booster = module.Booster(model_str=str(data["trees"]))
        except module.basic.LightGBMError as problem:
            raise ValueError(str(problem)) from None
        if model.booster.num_feature() != len(model.names):
            raise ValueError("its trees look at other columns")
    return model


def _digest(content: Mapping[str, Any]) -> str:
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _unusable(problem: Exception) -> TuneError:
    text = f"no entry {problem}" if isinstance(problem, KeyError) else str(problem)
    return TuneError(U011, {"problem": text}, hint="remove the file: models are learned again")
