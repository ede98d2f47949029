"""A model that was read becomes a graph, or what stands for one that has none (yet).

A model that cannot be a graph before the values of some inputs are known is `Unsettled`; one whose
values are not all tensors runs by reference as a whole: as one node of a graph, or `NotCompiled`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from tilewright.frontend.onnx import Imported, import_model
from tilewright.frontend.onnx.beginnings import split_beginning
from tilewright.frontend.onnx.endings import Told, require_fit, split_endings
from tilewright.frontend.onnx.notes import require_reference
from tilewright.frontend.onnx.reference.whole import WholeModel
from tilewright.frontend.onnx.registry import Unknown
from tilewright.frontend.onnx.settled import bound, needs_of
from tilewright.model.compilation import (
    About,
    GraphModel,
    NotCompiled,
    Unsettled,
    warn_of_reference,
)
from tilewright.model.defaults import infos_of_defaults
from tilewright.model.endings import Ending
from tilewright.model.info import ModelMeta
from tilewright.model.whole import host_graph, reason_of

if TYPE_CHECKING:
    import onnx

    from tilewright.frontend.onnx.settled import Settled
    from tilewright.model.compiler import Compiling

__all__ = ["graph_of"]


def graph_of(
    whole: onnx.ModelProto, how: Compiling, settled: Settled | None, *, final: bool
) -> GraphModel | NotCompiled | Unsettled:
    """The graph of a model, with what is `settled` in place of inputs.

    With `final`, nothing more will be known: the model is taken as it is, and nothing is warned of.
    """
    proto, told = split_endings(whole)
    found: Imported | None = None
    try:
        found = _imported(proto, told, settled, final=final)
        obstacles, waits = found.by_reference, found.waits
    except Unknown as unknown:
        reason, obstacles, waits = unknown, unknown.nodes, False
    if (found is None or obstacles or waits) and not final:
        known = {} if settled is None else settled.values
        needs = needs_of(proto, obstacles, known, waits=waits and not obstacles)
        if needs is not None:
            return Unsettled(bound(whole, known) if known else whole, needs, how)
    if found is None:
        return _by_reference(whole, reason, settled, final=final)
    about = About(
        found.by_reference,
        ModelMeta.of(proto),
        None if settled is None else found.lengths,
        {name: Ending(*what) for name, what in told.items()},
        infos_of_defaults(whole),
        found.equal,
        found.guards,
    )
    return GraphModel(found.graph, about)


def _imported(
    proto: onnx.ModelProto, told: Mapping[str, Told], settled: Settled | None, *, final: bool
) -> Imported:
    """The graph of tensors; `Unknown` if there is none."""
    found = import_model(proto, settled)
    if not final and any(length is not None for length in found.lengths):
        raise Unknown("an output is not a tensor")
    require_fit(found.graph, told)
    return found


def _by_reference(
    whole: onnx.ModelProto, reason: Unknown, settled: Settled | None, *, final: bool
) -> GraphModel | NotCompiled:
    """A model that is no graph of tensors: one node that runs by reference, or not even that."""
    proto = whole if settled is None else bound(whole, settled.values)
    require_reference(proto)
    nodes = reason_of(reason, reason.nodes)
    is_of_any_rank = settled is not None and settled.whole
    if not is_of_any_rank:
        graph = host_graph(proto, () if settled is None else settled.apart)
        if graph is not None:
            about = About(nodes, ModelMeta.of(proto), defaults=infos_of_defaults(whole))
            return GraphModel(graph, about)
    halves = split_beginning(whole) if settled is None and not final else None
    if not final and halves is None:
        warn_of_reference(nodes)
    return NotCompiled(WholeModel(proto, str(reason), reason.nodes), halves)
