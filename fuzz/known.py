"""Where an oracle is known to be wrong or to stand alone, with the reason.

A row is needed only where tilewright differs from the one oracle that runs a model, or from both of
them: everything else is explained by the oracles' disagreement.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
from onnx import TensorProto
from onnx.shape_inference import infer_shapes

from fuzz.case import Case
from fuzz.compare import Spread, difference
from fuzz.engines import Results
from fuzz.values import wide

__all__ = ["KNOWN", "MIXED", "Known", "excuse"]

MIXED: Final = "node by node"
"""The name of an oracle that is made of both, for models that neither runs as a whole."""


@dataclass(frozen=True)
class Known:
    """Models for which a difference from `oracle` says nothing, and why.

    `within` limits the difference, relative to results and absolute.
    """

    oracle: str
    reason: str
    holds: Callable[[Case], bool]
    within: float = np.inf


def _is_there(op: str) -> Callable[[Case], bool]:
    return lambda case: any(node.op_type == op for node in case.model.graph.node)


def _has(op: str, elem_type: int) -> Callable[[Case], bool]:
    """Models with an operator whose first input is of a type, as far as types are written."""

    def holds(case: Case) -> bool:
        types = {i.name: i.type.tensor_type.elem_type for i in case.model.graph.input}
        types |= {t.name: t.data_type for t in case.model.graph.initializer}
        inferred = infer_shapes(case.model).graph.value_info
        types |= {i.name: i.type.tensor_type.elem_type for i in inferred}
        return any(
            node.op_type == op and types.get(node.input[0]) == elem_type
            for node in case.model.graph.node
        )

    return holds


def _has_sums(case: Case) -> bool:
    return any(
        node.op_type == "LpNormalization"
        and any(a.name == "p" and a.i == 1 for a in node.attribute)
        for node in case.model.graph.node
    )


KNOWN: Final[tuple[Known, ...]] = (
    Known("reference", "Erf of f64 is rounded to f32", _has("Erf", TensorProto.DOUBLE), 1e-6),
    Known("reference", "Gelu of f64 has the Erf of f32", _has("Gelu", TensorProto.DOUBLE), 1e-6),
    Known(
        "reference",
        "HardSwish of f64 has a sixth of f32",
        _has("HardSwish", TensorProto.DOUBLE),
        1e-6,
    ),
    Known("reference", "coordinates are f64", _has("Resize", TensorProto.DOUBLE), 1e-4),
    Known("reference", "coordinates are f64", _has("GridSample", TensorProto.DOUBLE), 1e-4),
    *(
        Known(oracle, f"{op} of f64 is computed in f32", _has(op, TensorProto.DOUBLE), 1e-4)
        for oracle in ("reference", "onnxruntime")
        for op in ("GroupNormalization", "LayerNormalization", "RMSNormalization")
    ),
    Known("reference", "LpNormalization with p = 1 divides by a sum of signed values", _has_sums),
    Known("reference", "Loop joins what it should stack", _is_there("Loop")),
    Known("reference", "LRN goes over the batch instead of the channels", _is_there("LRN")),
)
"""The attribute `stash_type` of normalisations says f32 by default; tilewright keeps 64 bits.
Coordinates of images are f32 in tilewright, as in onnxruntime, so that both choose the same
elements."""


def excuse(case: Case, found: Results, answers: dict[str, Results]) -> str:
    """Why every oracle that answered is no judge of this case; empty if one is."""
    reasons = []
    for oracle, wanted in answers.items():
        rows = [row for row in KNOWN if oracle in {row.oracle, MIXED} and row.holds(case)]
        rows = [row for row in rows if not difference(found, wanted, _allowed(wanted, row.within))]
        if not rows:
            return ""
        reasons.append(f"{oracle}: {rows[0].reason}")
    return "; ".join(reasons)


def _allowed(wanted: Results, within: float) -> Spread:
    if np.isinf(within):
        return [[None for _ in run] for run in wanted]
    return [
        [within * (1 + np.abs(np.nan_to_num(wide(np.asarray(a))))) for a in run] for run in wanted
    ]
