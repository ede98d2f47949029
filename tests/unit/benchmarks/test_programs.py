"""The benchmark programs mean what the float64 reference says."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.numbers import TOLERANCE, error_of, inputs, reference
from benchmarks.programs import PROGRAMS
from benchmarks.workloads import Workload
from tilewright.tensor.interpret import interpret

SHAPES = {
    "matmul": (3, 4, 5),
    "batched": (2, 3, 4, 5),
    "attention": (1, 2, 3, 4, 5),
}


@pytest.mark.parametrize("op", PROGRAMS)
def test_program_means_the_reference(op):
    shape = SHAPES.get(op, (3, 7))
    workload = Workload("test", op, shape)
    arrays = inputs(workload)
    program = PROGRAMS[op](*shape)
    assert {*program.inputs, *program.constants} == set(arrays)
    results = interpret(program.func, arrays)
    output = program.func.params[-1].name
    assert error_of(np.asarray(results[output]), reference(workload, arrays)) <= TOLERANCE
