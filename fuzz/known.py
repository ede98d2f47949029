"""Where an oracle is known to be wrong or to stand alone, with the reason.

A row is needed only where tilewright differs from the one oracle that runs a model, or from both of
them: everything else is explained by the oracles' disagreement.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import onnx
from onnx import TensorProto
from onnx.helper import get_attribute_value
from onnx.inliner import inline_local_functions
from onnx.shape_inference import infer_shapes

from fuzz.case import Case
from fuzz.compare import Place, Spread, differences
from fuzz.engines import Results
from fuzz.stepwise import run_stepwise
from fuzz.values import is_float, wide

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


def _where(op: str, holds: Callable[[onnx.NodeProto], bool]) -> Callable[[Case], bool]:
    """Models with a node of an operator, maybe in a function, of which something holds."""
    return lambda case: any(n.op_type == op and holds(n) for n in _inlined(case).graph.node)


def _inlined(case: Case) -> onnx.ModelProto:
    return inline_local_functions(case.model) if case.model.functions else case.model


def _is_there(op: str) -> Callable[[Case], bool]:
    return _where(op, lambda _: True)


def _has(op: str, elem_type: int) -> Callable[[Case], bool]:
    """Models with an operator whose first input is of a type, as far as types are written."""

    def holds(case: Case) -> bool:
        model = infer_shapes(_inlined(case))
        infos = (*model.graph.input, *model.graph.value_info, *model.graph.output)
        types = {i.name: i.type.tensor_type.elem_type for i in infos}
        types |= {t.name: t.data_type for t in model.graph.initializer}
        return any(
            node.op_type == op and types.get(node.input[0]) == elem_type
            for node in model.graph.node
        )

    return holds


def _attribute(node: onnx.NodeProto, name: str, default: Any) -> Any:
    return next((get_attribute_value(a) for a in node.attribute if a.name == name), default)


def _skips(node: onnx.NodeProto) -> bool:
    """Whether windows of a node that pads by itself step over elements, so that none are needed."""
    kernel = _attribute(node, "kernel_shape", [])
    gaps = _attribute(node, "dilations", [1] * len(kernel))
    steps = _attribute(node, "strides", [1] * len(kernel))
    reach = [(k - 1) * gap + 1 for k, gap in zip(kernel, gaps, strict=True)]
    pads = _attribute(node, "auto_pad", b"").startswith(b"SAME")
    return pads and any(s > r for s, r in zip(steps, reach, strict=True))


def _picks(node: onnx.NodeProto) -> bool:
    """Whether elements are taken as they are, by coordinates that are rounded."""
    return bool(_attribute(node, "mode", b"nearest") == b"nearest")


def _nodes_with_values(case: Case) -> Iterator[tuple[onnx.NodeProto, dict[str, Any]]]:
    """The nodes of all runs as far as oracles run them, with all values by name."""
    model = _inlined(case)
    for feeds in case.runs:
        try:
            values = run_stepwise(model, feeds, order=("onnxruntime", "reference"))
        except Exception:  # noqa: BLE001  (an oracle refuses a part: nothing is known)
            return
        yield from ((node, values) for node in model.graph.node)


def _overflows(op: str, power: int) -> Callable[[Case], bool]:
    """Models in which powers of integers may add up to more than their type holds, in some run."""

    def holds(case: Case) -> bool:
        for node, values in _nodes_with_values(case):
            x = np.asarray(values[node.input[0]]) if node.op_type == op else None
            if x is not None and x.dtype.kind in "iu":
                total = sum(abs(int(v)) ** power for v in x.flat)
                if total > np.iinfo(x.dtype).max:
                    return True
        return False

    return holds


def _scales_integers_too_far(case: Case) -> bool:
    """Whether a product of matrices of integers, scaled, is beyond their type, in some run."""
    for node, values in _nodes_with_values(case):
        if node.op_type == "Gemm" and np.asarray(values[node.input[0]]).dtype.kind in "iu":
            sizes = [np.abs(wide(np.asarray(values[n]))) for n in node.input if n]
            most = [float(np.max(size, initial=0)) for size in sizes]
            total = abs(_attribute(node, "alpha", 1.0)) * most[0] * most[1] * sizes[0].size
            total += abs(_attribute(node, "beta", 1.0)) * sum(most[2:])
            if total > np.iinfo(np.asarray(values[node.input[0]]).dtype).max:
                return True
    return False


def _order_of_factors_matters(case: Case) -> bool:
    """Whether some floats multiplied before others are beyond their type, in some run."""
    for node, values in _nodes_with_values(case):
        x = np.asarray(values[node.input[0]]) if node.op_type == "ReduceProd" else None
        if x is not None and is_float(x.dtype):
            with np.errstate(all="ignore"):
                exponents = np.log2(np.abs(wide(x)))
            exponents = exponents[np.isfinite(exponents)]
            most = 1022 if x.dtype == np.float64 else 126  # f16 and bf16 are multiplied as f32
            if max(exponents[exponents > 0].sum(), -exponents[exponents < 0].sum()) > most:
                return True
    return False


def _slopes_are_infinite(case: Case) -> bool:
    """Whether a slope of `PRelu` is no number by which zero could be multiplied, in some run."""
    return any(
        not np.isfinite(wide(np.asarray(values[node.input[1]]))).all()
        for node, values in _nodes_with_values(case)
        if node.op_type == "PRelu"
    )


def _quantizes_large_numbers(case: Case) -> bool:
    """Whether a quotient that is quantised has more than 31 bits, in some run."""
    for node, values in _nodes_with_values(case):
        if node.op_type == "QuantizeLinear":
            x, scale = (np.abs(wide(np.asarray(values[n]))) for n in node.input[:2])
            if np.max(x, initial=0) >= 2.0**31 * np.min(scale, initial=1):
                return True
    return False


def _means_of_no_integers(case: Case) -> bool:
    """Whether integers of which there are none are divided by their number, in some run."""
    return any(
        x.size == 0 and x.dtype.kind in "iu"
        for node, values in _nodes_with_values(case)
        if node.op_type == "ReduceMean"
        for x in [np.asarray(values[node.input[0]])]
    )


KNOWN: Final[tuple[Known, ...]] = (
    *(
        Known(oracle, "zero divided by zero has no integer", _means_of_no_integers)
        for oracle in ("reference", "onnxruntime")
    ),
    Known("reference", "Erf of f64 is rounded to f32", _has("Erf", TensorProto.DOUBLE), 1e-6),
    Known("reference", "Gelu of f64 has the Erf of f32", _has("Gelu", TensorProto.DOUBLE), 1e-6),
    Known(
        "onnxruntime",
        "Gelu of f64 is a function with constants of f32",
        _has("Gelu", TensorProto.DOUBLE),
        1e-6,
    ),
    *(
        Known(
            oracle,
            "HardSwish of f64 has a sixth of f32",
            _has("HardSwish", TensorProto.DOUBLE),
            1e-6,
        )
        for oracle in ("reference", "onnxruntime")
    ),
    Known("onnxruntime", "sums near zero are rounded", _has("STFT", TensorProto.DOUBLE), 1e-12),
    Known("onnxruntime", "sums near zero are rounded", _has("STFT", TensorProto.FLOAT), 3e-5),
    Known("reference", "samples are f32", _has("DeformConv", TensorProto.DOUBLE), 1e-5),
    Known("reference", "coordinates are f64", _has("Resize", TensorProto.DOUBLE), 1e-4),
    *(
        Known("reference", "another element is nearest by coordinates of f64", _where(op, _picks))
        for op in ("Resize", "Upsample")
    ),
    Known("reference", "coordinates are f64", _has("GridSample", TensorProto.DOUBLE), 1e-4),
    Known(
        "reference",
        "cubic samples beyond the border are taken at the border, and not each of their neighbours",
        _where(
            "GridSample",
            lambda n: (
                _attribute(n, "mode", b"") in (b"cubic", b"bicubic")
                and _attribute(n, "padding_mode", b"") == b"border"
            ),
        ),
    ),
    Known("reference", "accents are taken from letters", _is_there("StringNormalizer")),
    *(
        Known(oracle, f"{op} of f64 is computed in f32", _has(op, TensorProto.DOUBLE), 1e-4)
        for oracle in ("reference", "onnxruntime")
        for op in ("GroupNormalization", "LayerNormalization", "RMSNormalization")
    ),
    *(  # onnxruntime cuts, refuses or does as we do, as the operator and its type have it
        Known(oracle, f"{op} that pads by itself cuts images off", _where(op, _skips))
        for oracle in ("onnxruntime", "reference")
        for op in ("AveragePool", "LpPool", "MaxPool")
    ),
    *(
        Known(oracle, "means of i64 have the digits of f64", _has("ReduceMean", kind), 1e-15)
        for oracle in ("onnxruntime", "reference")
        for kind in (TensorProto.INT64, TensorProto.UINT64)
    ),
    Known(
        "reference",
        "AveragePool pads in front for windows that reach behind the end of an image",
        _where("AveragePool", lambda node: _attribute(node, "ceil_mode", 0) == 1),
    ),
    Known(
        "reference",
        "LpPool counts what lies behind the end of an image",
        _where("LpPool", lambda node: _attribute(node, "ceil_mode", 0) == 1),
    ),
    Known(
        "reference",
        "indices of MaxPool leave out the batch, and the channel along one dimension",
        _where("MaxPool", lambda node: len(node.output) > 1),
    ),
    Known("reference", "PRelu multiplies zeros as well", _slopes_are_infinite),
    Known("reference", "Gemm scales integers as floats", _scales_integers_too_far),
    *(
        Known(oracle, "QuantizeLinear takes numbers through i32", _quantizes_large_numbers)
        for oracle in ("onnxruntime", "reference")
    ),
    Known("onnxruntime", "means of integers are of sums that wrap", _overflows("ReduceMean", 1)),
    Known("onnxruntime", "squares of integers do not wrap", _overflows("ReduceSumSquare", 2)),
    *(
        Known(oracle, "other factors are multiplied first", _order_of_factors_matters)
        for oracle in ("onnxruntime", "reference")
    ),
    *(
        Known("reference", "squares of integers are those of i64 or u64", _overflows(op, 2))
        for op in ("ReduceL2", "ReduceSumSquare")
    ),
    *(
        Known("reference", f"{op} moves by the zero point before it rounds", _is_there(op))
        for op in ("QLinearConv", "QLinearMatMul")
    ),
    Known("reference", "LRN goes over the batch instead of the channels", _is_there("LRN")),
)
"""The attribute `stash_type` of normalisations says f32 by default; tilewright keeps 64 bits.
Coordinates of images are f32 in tilewright, as in onnxruntime, so that both choose the same
elements."""


def excuse(
    case: Case, found: Results, answers: dict[str, Results], left: set[Place], moved: Spread | None
) -> str:
    """Why no oracle that answered is a judge of the places that are `left`; empty if one is.

    `moved` is what rounding does besides.
    """
    reasons = []
    for oracle, wanted in answers.items():
        rows = [row for row in KNOWN if oracle in {row.oracle, MIXED} and row.holds(case)]
        rows = [
            row
            for row in rows
            if left.isdisjoint(differences(found, wanted, _allowed(wanted, row.within, moved)))
        ]
        if not rows:
            return ""
        reasons.append(f"{oracle}: {rows[0].reason}")
    return "; ".join(reasons)


def _allowed(wanted: Results, within: float, moved: Spread | None) -> Spread:
    if np.isinf(within):
        return [[None for _ in run] for run in wanted]
    allowed: Spread = []
    for number, run in enumerate(wanted):
        more = [np.zeros(())] * len(run) if moved is None else moved[number]
        sizes = [np.abs(np.nan_to_num(wide(np.asarray(a)))) for a in run]
        allowed.append(
            [None if m is None else within * (1 + s) + m for s, m in zip(sizes, more, strict=True)]
        )
    return allowed
