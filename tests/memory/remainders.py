"""Vectors that reach beyond the end of their buffers: lanes that are off touch nothing."""

from __future__ import annotations

import numpy as np

from tests.levels import LEVELS
from tests.memory.guarded import at_edge, chosen, say
from tests.remainders import REMAINDERS, built

__all__ = ["remainders"]


def remainders(pattern: str) -> int:
    """Kernels by name: `softmax`, or `/2` for every second, with a page at either end of arrays."""
    runs = 0
    for target in LEVELS:
        for case in chosen(pattern, [(case, case.name) for case in REMAINDERS]):
            kernel = built(case, target)
            for n in (1, 3, 8, 15, 17, 33, 63, 70):
                for edge in ("end", "start"):
                    say(f"{case.name} for {target.name}, n = {n}, pages at the {edge}")
                    expected = case.arrays(n)
                    kernel(*expected)
                    found = [at_edge(array, edge) for array in case.arrays(n)]
                    kernel(*found)
                    np.testing.assert_array_equal(found[-1], expected[-1])
                    runs += 1
    return runs
