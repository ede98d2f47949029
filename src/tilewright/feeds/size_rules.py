"""Symbolic sizes of a model's inputs, and a search for values that its own equations accept.

A compiled model knows which sizes follow from which, which must be equal, and how large its buffers
become (`runtime/program.py`). So a guess can be judged without a run. One that is refused is mended
where it failed: of the sizes that the failed equation depends on, other values are tried until it
holds and nothing before it fails. Equations of branches count, too, but a run may do without. Sizes
that would be broadcast are made equal, for which no other version of the model is needed. What only
data tell is left to the run.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Self

from numpy.typing import NDArray

from tilewright.feeds.usual_sizes import BATCH, COMMON, usual_sizes
from tilewright.model.info import TensorInfo
from tilewright.runtime.program import Program, Size, SizeExpr, SizeOp
from tilewright.runtime.sizes import evaluate, extents

__all__ = ["SizeRules", "Values"]

MOST_BYTES: Final = 1 << 31
"""Bytes of a buffer beyond which a guess is too large."""
MOST_ROUNDS: Final = 64
MOST_LOOKS: Final = 1 << 13
"""Guesses of one round that are judged by the failed equation alone."""
MOST_TRIALS: Final = 1 << 8
"""Guesses of one round that are judged by all equations."""
MOST_PAIRS: Final = 1 << 11
"""Guesses of one round that change several sizes."""
LARGEST: Final = 1 << 11
"""Up to here every number is tried where no usual one fits."""

Values = dict[int, int]
Array = NDArray[Any]


@dataclass(frozen=True)
class SizeRules:
    """The sizes of a model by number; a dimension is a number, or that of a size as -1 - k.

    `labels` are the sizes that inputs tell, in the words of their shapes, and `usual` guesses.
    """

    sizes: Sequence[Size]
    inputs: Mapping[str, tuple[int, ...]]
    labels: Mapping[int, str]
    usual: Mapping[int, tuple[int, ...]]
    buffers: Sequence[SizeExpr] = ()

    @classmethod
    def of(cls, infos: Sequence[TensorInfo], program: Program | None = None) -> Self:
        """Those of a compiled program; without one, a name is a size and there are no equations."""
        shapes = {info.name: tuple(_names_of(info)) for info in infos}
        if program is None:
            names = list(dict.fromkeys(d for s in shapes.values() for d in s if isinstance(d, str)))
            sizes: Sequence[Size] = [Size(name) for name in names]
            inputs = {
                name: tuple(-1 - names.index(d) if isinstance(d, str) else d for d in shape)
                for name, shape in shapes.items()
            }
            buffers: list[SizeExpr] = []
        else:
            sizes, inputs = program.sizes, {port.name: port.dims for port in program.inputs}
            buffers = [buffer.bytes for buffer in program.buffers if buffer.segment == 0]
        labels: dict[int, str] = {}
        usual: dict[int, tuple[int, ...]] = {}
        for info in infos:
            for axis, dim in enumerate(inputs[info.name]):
                if dim < 0 and sizes[-1 - dim].value is None:
                    labels.setdefault(-1 - dim, str(shapes[info.name][axis]))
                    usual.setdefault(-1 - dim, usual_sizes(info, axis))
        return cls(sizes, inputs, labels, usual, buffers)

    def given(self, arrays: Mapping[str, Array]) -> Values:
        """Sizes that arrays tell."""
        return {
            -1 - dim: extent
            for name, array in arrays.items()
            for dim, extent in zip(self.inputs.get(name, ()), array.shape, strict=False)
            if -1 - dim in self.labels
        }

    def named(self, wanted: Mapping[str, int]) -> Values:
        """Values of sizes by number, from those by name."""
        return {k: wanted[label] for k, label in self.labels.items() if label in wanted}

    def chosen(self, known: Values, start: int = 0) -> Values:
        """Values of all sizes of inputs, those that are `known` included.

        `start` says with which of the usual values the search begins.
        """
        free = [k for k in self.labels if k not in known]
        values = known | {k: self.usual[k][min(start, len(self.usual[k]) - 1)] for k in free}
        given_up: set[int] = set()
        for _ in range(MOST_ROUNDS):
            failed = self._failed(values, given_up)
            if failed is None:
                break
            mended = self._mended(failed, values, free, given_up)
            if mended is None:
                given_up.add(failed)
            else:
                values = mended
        return values

    def shapes(self, values: Values) -> dict[str, tuple[int, ...]]:
        """Shapes of the inputs; a size that cannot be computed is zero, as the run will say."""
        known, _ = self._computed(values)
        return {name: extents(dims, known) for name, dims in self.inputs.items()}

    def _computed(
        self, values: Values, needed: Collection[int] | None = None
    ) -> tuple[list[int], list[int]]:
        """Sizes that follow from those of the inputs, and those of them that have no value."""
        known, failed = [0] * len(self.sizes), []
        for k in self._following:
            value = self.sizes[k].value
            if needed is not None and k not in needed:
                continue
            if value is None:
                known[k] = values.get(k, 0)
                continue
            try:
                known[k] = evaluate(value, known)
            except ZeroDivisionError:
                failed.append(k)
        return known, failed

    @cached_property
    def _following(self) -> list[int]:
        """The sizes that inputs tell, and all that follow from them alone."""
        found: set[int] = set()
        for k, size in enumerate(self.sizes):
            is_told = (
                k in self.labels if size.value is None else found.issuperset(_used(size.value))
            )
            if is_told:
                found.add(k)
        return sorted(found)

    def _failed(self, values: Values, given_up: Collection[int]) -> int | None:
        """The most important equation that does not hold: a size, or a buffer behind all sizes."""
        known, failed = self._computed(values)
        buffers = (
            n for n, size_bytes in enumerate(self.buffers) if not _has_room(size_bytes, known)
        )
        wrong = {*failed, *(len(self.sizes) + n for n in buffers)}.difference(given_up)
        return min(wrong, key=self._rank, default=None)

    def _rank(self, equation: int) -> tuple[bool, int]:
        """Equations of a branch, which a run may not take, come last."""
        is_late = equation < len(self.sizes) and self.sizes[equation].segment != 0
        return is_late, equation

    def _mended(
        self, failed: int, values: Values, free: Sequence[int], given_up: Collection[int]
    ) -> Values | None:
        """Values that the failed equation accepts, and all before it; None if none are found."""
        cone = self._cone(failed)
        trials = 0
        guesses = self._guesses([k for k in free if k in cone], values)
        for guess in itertools.islice(guesses, MOST_LOOKS):
            changed = values | guess
            if not self._holds(failed, changed, cone):
                continue
            later = self._failed(changed, given_up)
            if later is None or self._rank(later) > self._rank(failed):
                return changed
            trials += 1
            if trials == MOST_TRIALS:
                break
        return None

    def _holds(self, equation: int, values: Values, cone: Collection[int]) -> bool:
        known, failed = self._computed(values, cone)
        buffer = equation - len(self.sizes)
        return not failed and (buffer < 0 or _has_room(self.buffers[buffer], known))

    def _cone(self, equation: int) -> set[int]:
        """All sizes that an equation depends on."""
        buffer = equation - len(self.sizes)
        found: set[int] = {equation} if buffer < 0 else set()
        ahead = [equation] if buffer < 0 else [*_used(self.buffers[buffer])]
        while ahead:
            k = ahead.pop()
            found.add(k)
            ahead += [used for used in _used(self.sizes[k].value or ()) if used not in found]
        return found

    def _guesses(self, free: Sequence[int], values: Values) -> Iterator[Values]:
        """Other values: of one size, of several together, then of one whatever is usual.

        A batch, which is one wherever it can be, changes last.
        """
        free = sorted(free, key=lambda k: self.usual[k] == BATCH)
        lists = {k: list(dict.fromkeys((values[k], *self.usual[k], *COMMON))) for k in free}
        for k in free:
            yield from ({k: value} for value in lists[k])
        for ranks in itertools.islice(_ranks([len(lists[k]) for k in free]), MOST_PAIRS):
            yield {k: lists[k][rank] for k, rank in zip(free, ranks, strict=True)}
        for k in free:
            yield from ({k: value} for value in range(1, LARGEST + 1))


def _names_of(info: TensorInfo) -> Iterator[int | str]:
    """Dimensions with a name for each that has no number; files may say -1 for it."""
    for axis, dim in enumerate(info.shape):
        yield f"{info.name}_{axis}" if isinstance(dim, int) and dim < 0 else dim


def _ranks(counts: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """All places in lists of such lengths; together, they go down the lists step by step."""
    for total in range(sum(counts)):
        yield from _summing(total, counts)


def _summing(total: int, counts: Sequence[int]) -> Iterator[tuple[int, ...]]:
    if not counts:
        if total == 0:
            yield ()
        return
    for first in range(min(total, counts[0] - 1) + 1):
        for rest in _summing(total - first, counts[1:]):
            yield first, *rest


def _has_room(size_bytes: SizeExpr, known: Sequence[int]) -> bool:
    return 0 <= _number(size_bytes, known) <= MOST_BYTES


def _number(value: SizeExpr, known: Sequence[int]) -> int:
    try:
        return evaluate(value, known)
    except ZeroDivisionError:
        return -1


def _used(value: SizeExpr) -> list[int]:
    return [number for op, number in value if op is SizeOp.SIZE]
