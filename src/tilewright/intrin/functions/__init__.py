"""Math functions as tensor IR: each call expands into arithmetic that vectorises like any other.

`EXPANSIONS[name](args)` gives an expression of the same dtype, scalar or vector. `FUNCTIONS` says
what error is declared for a function; its meaning (NumPy in double precision) is in
`tensor/functions.py`. Range reduction splits constants so that products with small integers are
exact, which holds with and without FMA; there is no branch: special values fall out of the
arithmetic or are selected at the end.
"""

from tilewright.intrin.functions import (  # noqa: F401  (each registers its functions)
    error_function,
    exponential,
    hyperbolic,
    inverse_hyperbolic,
    inverse_trigonometric,
    logarithm,
    power,
    remainder,
    trigonometric,
)
from tilewright.intrin.functions.registry import (
    EXPANSIONS,
    FUNCTIONS,
    NATIVE,
    MathFunction,
    define_function,
)

__all__ = ["EXPANSIONS", "FUNCTIONS", "NATIVE", "MathFunction", "define_function"]
