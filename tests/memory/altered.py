"""Operators with one attribute changed: numbers from everywhere, lists that lost or gained one.

Tables that a handler makes of attributes hold places, too, and nothing but the handler knows
whether they agree with each other. What comes out is a result or an error of ours.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

import tilewright as tw
from tests.memory.guarded import at_edge, chosen, guarded, say
from tests.memory.operators import OPERATORS, Operator, f, i64, ml, node
from tests.onnx.small_models import one_node
from tilewright.errors import TilewrightError

__all__ = ["altered"]

NUMBERS = (-(2**63), -1, 0, 7, 2**31, 2**63 - 1)
MUCH = 1 << 24
"""Elements of a result that is not made: it would be right, and takes its time."""

ENDLESS = ("sampling_ratio",)
"""Attributes that say how often each element is computed: large ones are right, and never end."""


def _tensor(values: Sequence[float], kind: type) -> onnx.TensorProto:
    return numpy_helper.from_array(np.array(values, kind))


POSITIONS = {
    "nodes_featureids": [0, 1, 0],
    "nodes_modes": _tensor([0, 6, 0], np.uint8),
    "nodes_splits": _tensor([0.1, -0.2, 0.3], np.float32),
    "nodes_truenodeids": [1, 0, 2],
    "nodes_falsenodeids": [0, 1, 3],
    "nodes_trueleafs": [0, 1, 1],
    "nodes_falseleafs": [1, 1, 1],
    "membership_values": _tensor([0.5, 0.25, np.nan], np.float32),
    "leaf_targetids": [0, 1, 0, 1],
    "leaf_weights": _tensor([0.3, 0.7, 0.2, 0.5], np.float32),
    "tree_roots": [0, 2],
}

LISTS = [
    ml("TreeEnsemble", f(4, 2), **POSITIONS, n_targets=2),
    ml("LabelEncoder", i64(5, 4), keys_int64s=[1, 2, 3], values_int64s=[4, 5, 6]),
    ml("OneHotEncoder", i64(5, 4), cats_int64s=[1, 2, 3], zeros=1),
    ml("LinearClassifier", f(4, 2), outputs=2, classlabels_ints=[4, 5, 6],
       coefficients=[1.0] * 6, intercepts=[1.0] * 3),
    ml("SVMClassifier", f(4, 2), outputs=2, classlabels_ints=[4, 5, 6], rho=[0.1, 0.2, 0.3],
       vectors_per_class=[1, 1, 1], coefficients=[1.0] * 6, support_vectors=[1.0] * 6,
       prob_a=[0.1] * 3, prob_b=[0.2] * 3),
    node("TfIdfVectorizer", i64(5, 8), ngram_counts=[0, 3], ngram_indexes=[0, 1, 2, 3, 4],
         pool_int64s=[1, 2, 3, 1, 2, 2, 3], weights=[1.0] * 5, min_gram_length=1,
         max_gram_length=2, max_skip_count=1, mode="TFIDF"),
]  # fmt: skip


def altered(pattern: str) -> int:
    """Operators by name: `Tree`, or `/5` for every fifth; how many runs there were."""
    every = [(operator, operator.name) for operator in (*LISTS, *OPERATORS)]
    runs = 0
    for operator in chosen(pattern, every):
        for what, attributes in _variants(operator):
            say(f"{operator.name} with {what}")
            runs += _run(replace(operator, attributes=attributes))
    return runs


def _variants(operator: Operator) -> Iterator[tuple[str, dict[str, Any]]]:
    own = dict(operator.attributes)
    yield "nothing changed", own
    for name, value in own.items():
        for other in _others(value):
            if name in ENDLESS and other > MUCH:
                continue
            yield f"{name} = {str(other)[:60]}", {**own, name: other}


def _others(value: Any) -> Iterator[Any]:
    match value:
        case int():
            yield from NUMBERS
        case float():
            yield from (float("nan"), float("inf"), -1e38)
        case list() | tuple():
            if len(value) > 1:  # an empty list has no type
                yield value[:-1]
            yield [*value, value[-1]]
            for place in {0, len(value) - 1}:
                for other in _others(value[place]):
                    yield [*value[:place], other, *value[place + 1 :]]
        case onnx.TensorProto():
            array = numpy_helper.to_array(value)
            for other in _others(array.tolist()):
                with np.errstate(all="ignore"):
                    yield numpy_helper.from_array(np.array(other).astype(array.dtype))


def _run(operator: Operator) -> int:
    """Whether it ran, between forbidden pages on both sides."""
    model, feeds = one_node(operator.op, operator.inputs, **operator.options())
    for entry in model.opset_import:
        if entry.domain == "ai.onnx.ml":
            entry.version = 5 if operator.op == "TreeEnsemble" else 3
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            module = tw.compile(model, threads=1, cache=False)
            if module.by_reference or _is_large(module):
                return 0
            for edge in ("end", "start"):
                with guarded(edge):
                    module.run({name: at_edge(a, edge) for name, a in feeds.items()})
        except TilewrightError:
            return 0
    return 1


def _is_large(module: Any) -> bool:
    shapes = [[d for d in info.shape if isinstance(d, int)] for info in module.outputs]
    return any(np.prod(shape, dtype=float) > MUCH for shape in shapes)
