"""What `compile` takes: models from where they come, and words that must be known."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from tilewright import options
from tilewright.errors import Code, TilewrightWarning, TuneError, UserError
from tilewright.model.sources import Source
from tilewright.runtime.pool import default_threads
from tilewright.schedule.source import DRAFT, ScheduleSource
from tilewright.shown import listed, quoted
from tilewright.target import Target

if TYPE_CHECKING:
    import onnx

    from tilewright.layouts.forms import Form
    from tilewright.records import Database

__all__ = [
    "ACCURACIES",
    "AUTO",
    "K020",
    "require_accuracy",
    "require_layouts",
    "with_dims",
]
__all__ += ["schedules_of", "source_of"]

K020 = Code("K020", "`compile` cannot use {found} as {argument}")

ACCURACIES: Final = ("default", "strict")

AUTO: Final = "auto"
"""Layouts that are chosen for all kernels together."""


def source_of(model: object) -> Source:
    """What a model can be read from; whatever else is given ends in an error."""
    if isinstance(model, str | os.PathLike | bytes):
        return model
    if isinstance(model, bytearray | memoryview):
        return bytes(model)
    import onnx

    if isinstance(model, onnx.ModelProto):
        return model
    facts = {"argument": "model", "found": f"a value of type `{type(model).__name__}`"}
    hint = "give a path, the bytes of an ONNX file, or an `onnx.ModelProto`"
    raise UserError(K020, facts, hint=hint)


def with_dims(model: Source, dims: Mapping[str, object]) -> onnx.ModelProto:
    """The model that was read, with numbers for some of its symbolic dimensions."""
    from tilewright.frontend.onnx import read_model
    from tilewright.frontend.onnx.fixed_dims import fix_dims, symbolic_dims

    proto = read_model(model)
    names = symbolic_dims(proto)
    sizes: dict[str, int] = {}
    for name, size in dims.items():
        if name not in names:
            facts = {"argument": "dims", "found": f"a size of {quoted(name)}"}
            hint = f"symbolic dimensions of the model: {listed(names) or 'none'}"
            raise UserError(K020, facts, hint=hint)
        if type(size) is not int or not 0 <= size < 1 << 31:
            facts = {"argument": "dims", "found": f"{size!r} for {quoted(name)}"}
            raise UserError(K020, facts, hint="give a number of elements")
        sizes[name] = size
    return fix_dims(proto, sizes)


def require_accuracy(accuracy: str) -> None:
    """Refuse a word that is none of them."""
    if accuracy not in ACCURACIES:
        facts = {"argument": "accuracy", "found": repr(accuracy)}
        raise UserError(K020, facts, hint=f"one of: {', '.join(ACCURACIES)}")


def require_layouts(layouts: str) -> Form | None:
    """The layout for everything; None to choose. A name that is none ends in an error."""
    if layouts == AUTO:
        return None
    from tilewright.layouts.forms import Form

    return Form.named(str(layouts))


def schedules_of(database: object, target: Target, threads: int | None) -> ScheduleSource:
    """Where kernels get their schedules from: the records of a database, if it has any to use.

    None is the database that the environment names, or the default one, if it is there; False is
    none. A file that is damaged, or cannot be read now, is told of in a warning.
    """
    path = _path_of(database)
    if path is None:
        return DRAFT
    from tilewright.records import Database, Records

    try:
        if isinstance(path, Database):
            records = Records(path, target, threads or default_threads())
        else:
            with Database(path, readonly=True) as opened:
                records = Records(opened, target, threads or default_threads())
    except TuneError as problem:
        text = f"kernels are drafted, since records cannot be used: {problem}"
        warnings.warn(TilewrightWarning(text), stacklevel=3)
        return DRAFT
    return DRAFT if records.is_empty else records


def _path_of(database: object) -> Database | str | os.PathLike[str] | None:
    """The database, or where it is; None if there is none, K020 for what cannot be one."""
    if database is False:
        return None
    if database is None:
        known = options.database()
        return known if known is not None and known.exists() else None
    if isinstance(database, str | os.PathLike):
        if os.path.isfile(database):  # noqa: PTH113  (bytes are paths, too)
            return database
        facts = {"argument": "database", "found": f"{quoted(database)}, where there is no file"}
        raise UserError(K020, facts, hint="check the path; `tilewright db list` looks into one")
    from tilewright.records import Database

    if isinstance(database, Database):
        return database
    facts = {"argument": "database", "found": f"a value of type `{type(database).__name__}`"}
    hint = "give a path, a `Database` of `tilewright.records`, or False for none"
    raise UserError(K020, facts, hint=hint)
