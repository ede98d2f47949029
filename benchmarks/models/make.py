"""The files of the models in a folder of their own, made once."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks.models.spec import Exported, Model
from tilewright import options

__all__ = ["NotMade", "default_folder", "file_of", "make"]


class NotMade(Exception):  # noqa: N818 (says what happened)
    """A model has no file, for a reason that a person can do something about."""


def default_folder() -> Path:
    """In the cache of tilewright, outside of any repository."""
    return options.cache_dir() / "models"


@dataclass(frozen=True, slots=True)
class Choice:
    """Which of the files of a model."""

    dynamic: bool = False
    exporter: str = ""
    """Empty: the default of the model."""


def file_of(model: Model, folder: Path, choice: Choice) -> Path:
    """`resnet18.onnx`, `resnet18.dynamic.onnx`, `resnet18.dynamic.script.onnx`, …"""
    exporter = choice.exporter if model.exporters and choice.exporter != model.exporters[0] else ""
    parts = [model.name, "dynamic" if choice.dynamic else "", exporter, "onnx"]
    return folder / ".".join(filter(None, parts))


def make(model: Model, folder: Path, choice: Choice, tell: Callable[[str], None]) -> Path:
    """The file, made now unless it is there; `NotMade` says why there is none."""
    path = file_of(model, folder, choice)
    if path.exists():
        return path
    exporter = _exporter(model, choice)
    from benchmarks.models.export import write

    folder.mkdir(parents=True, exist_ok=True)
    start = time.perf_counter()
    tell(f"making {path.name} ...")
    with tempfile.TemporaryDirectory(dir=folder, prefix=".making-") as scratch:
        made = Path(scratch) / path.name
        try:
            write(model, made, dynamic=choice.dynamic, exporter=exporter)
        except ImportError as problem:
            raise NotMade(f"{model.name}: {problem}") from problem
        made.replace(path)
    tell(
        f"made {path.name}: {path.stat().st_size / 1e6:.1f} MB, {time.perf_counter() - start:.1f} s"
    )
    return path


def _exporter(model: Model, choice: Choice) -> str:
    if choice.dynamic and not model.dynamic:
        raise NotMade(f"{model.name}: all its sizes are fixed")
    if not isinstance(model.source, Exported):
        return ""
    exporter = choice.exporter or model.exporters[0]
    if exporter not in model.exporters:
        raise NotMade(f"{model.name}: the exporter `{exporter}` cannot make it")
    return exporter
