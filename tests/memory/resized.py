"""Operators whose inputs get other sizes than they agreed on, one dimension at a time.

All dimensions are symbolic, so that only a run tells; each becomes nothing, one, less and more.
What comes out is a result or an error of ours. The caller's arrays lie at the edge of forbidden
pages, to the byte, also those without elements; and what else lies beside an array is of no
consequence to any result.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import tilewright as tw
from tests.memory.guarded import at_edge, chosen, guarded, say, surrounded
from tests.memory.operators import OPERATORS, Operator
from tests.onnx.small_models import one_node
from tilewright.errors import TilewrightError

__all__ = ["resized"]

Feeds = dict[str, Any]

BESIDE = (0x00, 0x40, 0xFF)
"""Bytes beside arrays: zeros, floats of 3.0 and large integers, NaN and -1."""


def resized(pattern: str) -> int:
    """Operators by name: `Gather`, or `/5` for every fifth; how many runs there were."""
    return sum(_runs(op) for op in chosen(pattern, [(op, op.name) for op in OPERATORS]))


def _runs(operator: Operator) -> int:
    say(f"{operator.name} as it is")
    subject = _Subject.of(operator)
    assert subject.run(subject.feeds) is not None, f"{operator.name} is refused as it is"
    count = 0
    for what, feeds in subject.variants():
        say(f"{operator.name} with {what}")
        for edge in ("end", "start"):
            with guarded(edge):
                subject.run({name: at_edge(a, edge) for name, a in feeds.items()})
        found = [
            subject.run({name: surrounded(a, byte) for name, a in feeds.items()}) for byte in BESIDE
        ]
        for other in found[1:]:
            _require_same(found[0], other, f"{operator.name} with {what}")
        count += 1
    return count


def _require_same(a: list[Any] | None, b: list[Any] | None, what: str) -> None:
    assert (a is None) == (b is None), what
    for x, y in zip(a or (), b or (), strict=True):
        np.testing.assert_array_equal(x, y, err_msg=f"{what}: memory beside an array is read")


@dataclass(frozen=True)
class _Subject:
    """A compiled operator and inputs that it takes; some of their dimensions are numbers to it."""

    module: Any
    feeds: Feeds
    sized: Mapping[str, Sequence[int]] = field(default_factory=dict)

    @classmethod
    def of(cls, operator: Operator) -> _Subject:
        model, feeds = one_node(operator.op, operator.inputs, **operator.options())
        sized: dict[str, Sequence[int]] = {}
        for info in model.graph.input:
            number = int(info.name.removeprefix("in"))
            dims = info.type.tensor_type.shape.dim
            sized[info.name] = operator.sized(number, len(dims))
            for k, dim in enumerate(dims):
                if k in sized[info.name]:
                    dim.dim_value = feeds[info.name].shape[k]
                else:
                    dim.dim_param = f"{info.name}_{k}"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that something runs by reference is said below
            module = tw.compile(model, threads=1, cache=False)
        assert not module.by_reference, f"{operator.name}: {module.by_reference}"
        return cls(module, feeds, sized)

    def run(self, feeds: Feeds) -> list[Any] | None:
        """The results, None for an error of ours; whatever else is raised is a mistake."""
        try:
            return list(self.module.run(feeds))
        except TilewrightError:
            return None

    def variants(self) -> Iterator[tuple[str, Feeds]]:
        """The inputs as they are, and with one dimension of one of them changed."""
        yield "nothing changed", self.feeds
        for name, array in self.feeds.items():
            for k in sorted({*range(array.ndim)} - {*self.sized[name]}):
                n = array.shape[k]
                for size in sorted({0, 1, n // 2, n + 1, 2 * n} - {n}):
                    shape = (*array.shape[:k], size, *array.shape[k + 1 :])
                    changed = np.resize(array, shape) if size else np.zeros(shape, array.dtype)
                    yield f"{size} of {n} in {name}, dimension {k}", {**self.feeds, name: changed}
