"""Columns and rows of symbolic sizes: every remainder of every vector, on every level."""

import numpy as np
import pytest

from tests.remainders import REMAINDERS, built


@pytest.mark.parametrize("case", REMAINDERS, ids=lambda case: case.name)
def test_every_remainder(case, level):
    kernel = built(case, level)
    for n in (*range(1, 71), 127, 128, 197, 256, 300):
        *inputs, result = case.arrays(n, seed=n)
        kernel(*inputs, result)
        wide = [x.astype(np.float64) for x in inputs]
        tolerance = 2e-3 if case.dtype.size_bytes == 2 else 2e-5
        np.testing.assert_allclose(
            result, case.expected(*wide), rtol=tolerance, atol=tolerance, err_msg=f"n = {n}"
        )
