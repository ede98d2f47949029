"""Running a program whose parameters may have other layouts than they had at first."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tilewright.tensor import ir as tir
from tilewright.tensor.interpret import interpret
from tilewright.tensor.packing import packing_of
from tilewright.tensor.regions import outputs
from tilewright.testing.inputs import shape_of

Arrays = dict[str, np.ndarray]


def packed_inputs(func: tir.Func, logical: Mapping[str, np.ndarray]) -> Arrays:
    """The arrays for the inputs of `func`, from those of the program before its layouts changed."""
    written = outputs(func)
    packed: Arrays = {}
    for param in func.params:
        if param in written:
            continue
        packing = packing_of(param)
        if packing is None:
            packed[param.name] = logical[param.name]
        else:
            guests = [logical[guest.name] for guest in packing.guests]
            packed[param.name] = packing.pack(logical[param.name], *guests)
    return packed


def packed_run(
    original: tir.Func,
    func: tir.Func,
    logical: Mapping[str, np.ndarray],
    sizes: Mapping[tir.Var, int] | None = None,
    *,
    seed: int | None = None,
) -> Arrays:
    """Interpret `func` on packed inputs and unpack what it returns; `seed` shuffles threads.

    Whatever the layout adds to an output (zeros, copies) must be there: packing again gives back
    exactly what the program has written.
    """
    found = interpret(func, packed_inputs(func, logical), sizes, seed=seed)
    shapes = {p.name: shape_of(p, sizes or {}) for p in original.params}
    result: Arrays = {}
    for param in outputs(func):
        array, packing = found[param.name], packing_of(param)
        if packing is not None:
            unpacked = packing.unpack(array, shapes[param.name])
            np.testing.assert_array_equal(packing.pack(unpacked), array, err_msg=param.name)
            array = unpacked
        result[param.name] = array
    return result
