"""Write docs/functions.md from the tables of math functions, so that it cannot go stale.

`python scripts/functions_page.py` writes the page; `functions_page()` is its text.
"""

from __future__ import annotations

import inspect
from pathlib import Path

import numpy as np

from tilewright.intrin.functions import FUNCTIONS, NATIVE
from tilewright.tensor import functions as meanings

PAGE = Path(__file__).parents[1] / "docs" / "functions.md"

MEANINGS = {
    "abs": "|x|, also of integers",
    "erf": "the error function",
    "erfc": "1 - erf(x), accurate for large x",
    "exp_bounded": "eˣ where it cannot overflow, as in a softmax; cheaper than `exp`",
    "fma": "x·y + z, rounded once (twice where the processor has no such instruction)",
    "gelu": "x·Φ(x) with the normal distribution Φ",
    "round": "the nearest whole number, ties to even",
    "rsqrt": "1/√x",
    "sigmoid": "1/(1 + e⁻ˣ)",
}
"""What is not a NumPy function of the same meaning, or deserves a word."""

INTRODUCTION = """\
# Math functions

Made by `python scripts/functions_page.py`.

`tw.call("exp", x)` applies a function to an element; numbers are taken for literals:

```python
import numpy as np
import tilewright as tw

X = tw.placeholder("X", (1000,))
Y = tw.compute("Y", (1000,), lambda i: tw.call("pow", tw.call("log1p", X[i]), 1.5))
kernel = tw.build(tw.func("curve", [X], [Y]))
x = np.linspace(0, 5, 1000, dtype=np.float32)
np.testing.assert_allclose(kernel(x), np.log1p(x) ** 1.5, rtol=1e-6)
```

A function means what NumPy computes in double precision, rounded to the type of its arguments.
Native code computes it without branches and without calls, in vectors like any other arithmetic,
and keeps to the error in the table, which is in units of the last place of the result. It holds for
`f32` and `f64`, with and without FMA instructions; `f16` and `bf16` are computed in `f32` and
rounded once. NaN, infinities, subnormal numbers and the sign of zero come out as they do in NumPy,
with these exceptions: what the table says of a domain, and the sign of zero from `gelu`.

## Expanded into arithmetic
"""

OWN = """
## A function of your own

`tilewright.intrin.define_function` gives a name a meaning, which the interpreter uses, and an
expansion, which native code uses. The expansion is written with the operators of expressions,
`tw.select` and `tw.call`, and works on vectors as it stands:

```python
from tilewright.intrin import define_function


@define_function("softplus", meaning=lambda x: np.logaddexp(0.0, x), ulp=4)
def softplus(x):
    positive = tw.select(x > 0, x, 0.0)
    return positive + tw.call("log1p", tw.call("exp", -tw.call("abs", x)))


Y = tw.compute("Y", (1000,), lambda i: tw.call("softplus", X[i]))
kernel = tw.build(tw.func("smooth", [X], [Y]))
np.testing.assert_allclose(kernel(x), np.logaddexp(0, x), rtol=1e-6)
```

Where a case is costly and hardly ever met, say so: code for `tw.select(tw.call("unlikely", cond),
rare, usual)` branches around `rare` as long as the condition holds in no lane. Sines of angles
beyond 2²⁷ are computed like that.

A function that has only a meaning (`tilewright.tensor.functions.register`) can be interpreted but
not compiled (T203).
"""


def functions_page() -> str:
    """The tables of functions, with an example of use and of a new function."""
    lines = [INTRODUCTION, "| function | meaning | error in ulp | domain |", "|---|---|---|---|"]
    for name in sorted(FUNCTIONS):
        declared = FUNCTIONS[name]
        row = (_call(name), _meaning(name), f"{declared.ulp:g}", declared.domain)
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |")
    lines += ["", "## With an instruction of their own", "", "| function | meaning |", "|---|---|"]
    lines += [
        f"| {_call(name)} | {_meaning(name)} |".replace("|x|", "\\|x\\|") for name in sorted(NATIVE)
    ]
    return "\n".join(lines) + "\n" + OWN


def _call(name: str) -> str:
    arguments = {"atan2": "y, x", "copysign": "size, sign"}
    default = ", ".join("xyz"[: meanings.FUNCTIONS[name].arity])
    return f"`{name}({arguments.get(name, default)})`"


def _meaning(name: str) -> str:
    evaluate = meanings.FUNCTIONS[name].evaluate
    if name in MEANINGS:
        return MEANINGS[name]
    assert isinstance(evaluate, np.ufunc), f"say in MEANINGS what {inspect.getsource(evaluate)} is"
    return f"`numpy.{evaluate.__name__}`"


def main() -> None:
    """Write the page."""
    PAGE.write_text(functions_page(), encoding="utf-8")


if __name__ == "__main__":
    main()
