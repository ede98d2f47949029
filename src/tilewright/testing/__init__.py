"""What tests of tensor programs need: random programs, random inputs, comparison of results."""

from tilewright.testing.compare import assert_same, tolerance
from tilewright.testing.inputs import random_array, random_inputs

__all__ = ["assert_same", "random_array", "random_inputs", "tolerance"]
