"""What `compile` takes: models from where they come, and words that must be known."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from tilewright.errors import Code, UserError
from tilewright.model.sources import Source
from tilewright.shown import listed, quoted

if TYPE_CHECKING:
    import onnx

    from tilewright.layouts.forms import Form

__all__ = [
    "ACCURACIES",
    "AUTO",
    "K020",
    "require_accuracy",
    "require_layouts",
    "with_dims",
]
__all__ += ["require_no_database", "source_of"]

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


def require_no_database(database: object) -> None:
    """Refuse what a tuner would read."""
    if database is not None:
        facts = {"argument": "database", "found": repr(database)}
        raise UserError(K020, facts, hint="there is no tuner yet: leave it out")
