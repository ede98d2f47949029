"""`import_model`: the graph of a model, as its sizes decide it."""

from __future__ import annotations

import contextlib

import onnx

from tilewright.errors import ModelError
from tilewright.frontend.onnx.imported import Imported
from tilewright.frontend.onnx.importer import Importer
from tilewright.frontend.onnx.registry import Unknown
from tilewright.frontend.onnx.settled import Settled

__all__ = ["import_model"]


def import_model(model: onnx.ModelProto, settled: Settled | None = None) -> Imported:
    """The graph of a model; `Unknown` if it has none.

    What is `settled` of inputs is part of the graph. Outputs may be sequences then. A model that
    cannot be a graph for sizes as most runs have them may be made for others, say a batch of one.
    """
    if settled is not None and settled.whole:
        raise Unknown("what its sizes decide differs within a run")
    importer = Importer(model, settled)
    try:
        return importer.run()
    except ModelError:
        for flipped in importer.guards.others():
            with contextlib.suppress(ModelError):
                return Importer(model, settled, flipped).run()
        raise
