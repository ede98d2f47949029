"""Random windows over channels-last data, and what NumPy says about them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

Draw = st.DrawFn


@dataclass(frozen=True)
class Windows:
    """Windows over space; `pads` are all beginnings, then all ends."""

    space: tuple[int, ...]
    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    pads: tuple[int, ...]

    @property
    def rank(self) -> int:
        return len(self.space)

    @property
    def reach(self) -> tuple[int, ...]:
        return tuple((k - 1) * d + 1 for k, d in zip(self.kernel, self.dilations, strict=True))

    @property
    def geometry(self) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
        return self.strides, self.dilations, self.pads

    def counts(self, pads: tuple[int, ...] | None = None) -> tuple[int, ...]:
        """How many windows there are."""
        border = pads or self.pads
        parts = zip(self.space, border, border[self.rank :], self.reach, self.strides, strict=False)
        return tuple((n + a + b - r) // s + 1 for n, a, b, r, s in parts)


@st.composite
def windows(
    draw: Draw, ranks: tuple[int, ...] = (1, 2, 3), *, largest: int = 7, dilated: bool = True
) -> Windows:
    """Windows that fit into their space."""
    rank = draw(st.sampled_from(ranks))
    most = {1: largest, 2: largest, 3: 4}[rank]
    numbers = {
        "space": st.integers(1, most),
        "kernel": st.sampled_from((1, 2, 3, 3, 5)),
        "strides": st.sampled_from((1, 1, 2, 3)),
        "dilations": st.sampled_from((1, 1, 2) if dilated else (1,)),
    }
    drawn = {
        name: tuple(draw(number, label=name) for _ in range(rank))
        for name, number in numbers.items()
    }
    pads = tuple(draw(st.integers(0, 2), label="pads") for _ in range(2 * rank))
    made = Windows(**drawn, pads=pads)
    missing = [max(0, 1 - count) for count in made.counts()]
    grown = tuple(n + m * s for n, m, s in zip(made.space, missing, made.strides, strict=True))
    return Windows(grown, *(drawn[n] for n in ("kernel", "strides", "dilations")), pads=pads)


def windows_of(x: np.ndarray, w: Windows, fill: float) -> np.ndarray:
    """(batch, space…, channels, window…): all windows of channels-last data."""
    border = [(w.pads[d], w.pads[w.rank + d]) for d in range(w.rank)]
    x = np.pad(x, [(0, 0), *border, (0, 0)], constant_values=fill)
    view = np.lib.stride_tricks.sliding_window_view(x, w.reach, axis=tuple(range(1, w.rank + 1)))
    steps = [slice(None, None, s) for s in w.strides]
    gaps = [slice(None, None, d) for d in w.dilations]
    return view[(slice(None), *steps, slice(None), *gaps)]


def convolved(x: np.ndarray, weights: np.ndarray, w: Windows, groups: int) -> np.ndarray:
    """A convolution, group by group."""
    seen = windows_of(x.astype(np.float64), w, 0)
    per, each = weights.shape[1], weights.shape[0] // groups
    results = []
    for g in range(groups):
        part = seen[(*(slice(None),) * (w.rank + 1), slice(g * per, (g + 1) * per))]
        axes = tuple(range(-w.rank - 1, 0))
        own = weights[g * each : (g + 1) * each].astype(np.float64)
        results.append(np.tensordot(part, own, axes=(axes, axes)))
    return np.concatenate(results, axis=-1)


def transposed(
    x: np.ndarray, weights: np.ndarray, w: Windows, extra: tuple[int, ...], groups: int
) -> np.ndarray:
    """Every element of the data adds a scaled window to the result."""
    per, each = x.shape[-1] // groups, weights.shape[1]
    whole = [
        (n - 1) * s + r + e for n, s, r, e in zip(w.space, w.strides, w.reach, extra, strict=True)
    ]
    y = np.zeros((x.shape[0], *whole, each * groups))
    for at in np.ndindex(*w.space):
        for r in np.ndindex(*w.kernel):
            places = zip(at, w.strides, r, w.dilations, strict=True)
            where = tuple(a * s + b * d for a, s, b, d in places)
            for g in range(groups):
                own = weights[(slice(g * per, (g + 1) * per), slice(None), *r)]
                step = x[(slice(None), *at, slice(g * per, (g + 1) * per))] @ own
                y[(slice(None), *where, slice(g * each, (g + 1) * each))] += step
    cut = [slice(w.pads[d], n - w.pads[w.rank + d]) for d, n in enumerate(whole)]
    return y[(slice(None), *cut)]
