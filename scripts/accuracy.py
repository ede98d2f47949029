"""Measure the accuracy of operators on hard inputs, and print the table or write docs/accuracy.md.

`python scripts/accuracy.py` prints what it measures; `--page docs/accuracy.md` writes the page.
What is promised comes from `tilewright.testing.accuracy`, the inputs from the tests, with fixed
seeds.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

import tilewright as tw
from scripts import winograd_errors
from tests.numeric import special_values
from tests.numeric.accuracy_cases import Case, cases, factor_of
from tilewright.testing.accuracy import CONVOLVED, FAMILIES, FUNCTION_OPS, MODELS, OPERATORS, limit
from tilewright.testing.operator_kinds import KINDS

INTRODUCTION = """\
# Accuracy

Made by `python scripts/accuracy.py --page docs/accuracy.md`.

Results are those of floating point: sums are taken in another order than on paper, and functions
are computed to a few units of the last place. This page says how far results may be from exact
ones. Tests keep to the same table (`tilewright/testing/accuracy.py`), with the inputs of the
measurement below.

`tw.compile(model)` has `accuracy="default"`, which allows for algorithms with fewer operations and
somewhat larger errors. There is one kind so far, Winograd's minimal filters for convolutions
([below](#convolutions)): `accuracy="strict"` computes these directly. Everything else is the same
for both settings. The limits hold for every number of threads; equal inputs give equal bits, on
however many threads.

The difference to another engine is within the sum of both errors. Where onnxruntime is less
accurate (the last table shows where: `Sigmoid` and `Tanh` of some arguments, for example), results
differ by that.

## What is promised

u is the unit roundoff: 2⁻²⁴ for `f32`, 2⁻⁵³ for `f64`. `f16` and `bf16` are storage types: the
arithmetic inside of a kernel is that of `f32`, and each result that is stored is rounded once more.
Infinities and NaN come out as in exact arithmetic that is rounded at the end, except beside
elements that minimal filters mix with them; subnormal numbers and the sign of zero are kept.

"""

READING = """\
For sums the unit is what rounding every partial sum would add up to at the worst; real errors are a
small part of it. It says nothing relative to a result whose terms cancel: no order of summation
can. Minimal filters mix neighbouring pixels, so that a small result beside a large one has an error
that is small beside the large one only; their unit is a bound for all data, of which ordinary data
reach less than a hundredth. Data of a very wide range within one picture ask for
`accuracy="strict"`.
"""

SPECIAL = """
## Special values

NaN, infinities, zeros of both signs, subnormal numbers and the ends of integer types come out as
the standard says, or as NumPy does where it says nothing: in every type, whatever the length of a
vector, and for constants alike. Subnormal numbers are never flushed, and integers wrap. The setting
of `accuracy` changes none of this, but for elements beside NaN and infinities in convolutions
([below](#convolutions)).

"""

MEASUREMENT = """
## What was measured

With {machine}, in the units above, the largest error over all elements. Inputs have fixed seeds:
ordinary numbers, sizes that differ by many powers of ten, sums that cancel; for functions of
elements also subnormal numbers, zeros of both signs and the ends of the range. The last column is
the error with `accuracy="default"` relative to the largest result.

"""


@dataclass(frozen=True)
class Measured:
    """The errors of one case in units; `relative` is to the largest exact result, by default."""

    case: Case
    default: float
    strict: float
    relative: float
    peer: float | None


def promised() -> str:
    """The tables of limits, which a test compares with the page."""
    lines = ["| operators | unit of the error | default | strict |", "|---|---|---|---|"]
    for family in FAMILIES.values():
        unit = family.unit.replace("|", "\\|")
        lines.append(f"| {family.operators} | {unit} | {family.default:g} | {family.strict:g} |")
    functions = ", ".join(f"{op} {limit(op):g}" for op in FUNCTION_OPS)
    lines += [
        "",
        f"Functions of elements, in ulp of the result: {functions}.",
        "All functions, and where they are defined: [functions.md](functions.md).",
        "",
        "Whole models are compared with onnxruntime, relative to the largest value of each output:",
        f"{MODELS['models']:g}, and {MODELS['vision']:g} for networks that see pictures. Single",
        f"operators of the benchmarks are compared with exact results, likewise: {OPERATORS:g},",
        f"and {CONVOLVED:g} for convolutions.",
    ]
    lines += ["", "| error | operators |", "|---|---|"]
    for kind in KINDS:
        error = kind.error.replace("|", "\\|")
        lines.append(f"| {error} | {', '.join(kind.operators)} |")
    return "\n".join(lines) + "\n"


def measure() -> Iterator[Measured]:
    """All cases, on one thread."""
    for case in cases():
        model, feeds = case.model(), dict(case.inputs)
        modules = {
            accuracy: tw.compile(model, cache=False, threads=1, accuracy=accuracy)
            for accuracy in ("default", "strict")
        }
        found = {accuracy: module.run(feeds)[0] for accuracy, module in modules.items()}
        factor, peer = factor_of(modules["default"].graph), _by_onnxruntime(case)
        yield Measured(
            case,
            case.error(found["default"], factor=factor),
            case.error(found["strict"], "strict"),
            case.relative(found["default"]),
            None if peer is None else case.error(peer, factor=factor),
        )


def _by_onnxruntime(case: Case) -> np.ndarray | None:
    try:
        import onnxruntime
    except ImportError:
        return None
    payload = case.model().SerializeToString()
    session = onnxruntime.InferenceSession(payload, providers=["CPUExecutionProvider"])
    result: np.ndarray = session.run(None, dict(case.inputs))[0]
    return result


def table(rows: Sequence[Measured]) -> str:
    """What was measured."""
    lines = [
        "| operator | inputs | limit | default | strict | onnxruntime | of the largest result |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        case = row.case
        peer = "-" if row.peer is None else f"{row.peer:.2g}"
        cells = (
            case.op, case.name, f"{limit(case.family):g}", f"{row.default:.2g}",
            f"{row.strict:.2g}", peer, f"{row.relative:.1e}",
        )  # fmt: skip
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def page(rows: Sequence[Measured]) -> str:
    """The whole page."""
    target = tw.Target.host()
    features = [f.upper() for f in ("avx2", "avx512f", "fma", "neon") if f in target.features]
    machine = " and ".join(features) or target.arch
    special = SPECIAL + special_values.table() + "\n"
    measured = MEASUREMENT.format(machine=machine)
    texts = [promised(), "\n", READING, special, measured, table(rows)]
    return INTRODUCTION + "".join(texts) + "\n" + winograd_errors.section()


def main() -> None:
    """Measure, then print or write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--page", type=Path, help="write the page to this file")
    options = parser.parse_args()
    rows = list(measure())
    if options.page is None:
        print(table(rows), end="")
    else:
        options.page.write_text(page(rows), encoding="utf-8")


if __name__ == "__main__":
    main()
