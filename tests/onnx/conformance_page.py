"""The page `docs/conformance.md`: what becomes of the node tests of the `onnx` package."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

import onnx

from tests.onnx.conformance import Outcome, by_operator

__all__ = ["COMMAND", "KINDS", "case_rows", "operator_rows", "page", "read_page", "shares"]
__all__ += ["summary_rows"]

COMMAND = "python scripts/conformance.py --page docs/conformance.md"

KINDS = ("native", "reference", "failing")
NAMES = {"native": "native", "reference": "by reference", "failing": "failing"}

INTRODUCTION = """\
# Conformance

Made by `{command}`.

ONNX tests backends with a tiny model for each use of an operator, with inputs and expected outputs.
Each of them is compiled and run by `tilewright.backend`, and its results are compared with the
tolerances of the case. These are the cases of onnx {version}, up to opset {opset}:

| | cases | share |
|---|---|---|
{summary}

*Native*: all of the model is native code. *By reference*: right, but a node, or the model as a
whole, runs on ONNX's reference implementation. Many of these cases take axes, shapes or scales as
inputs, which models have as constants: `--constants` runs them that way.

Half-precision results may differ by two units of the last place. Results of `Bernoulli` are random:
only their shapes and types are compared. `test_dft_inverse` and `test_dft_inverse_opset19` cannot
pass with exact results: where sums are zero they expect the rounding error of the transform that
made them, 1.9e-7, with a tolerance of 1e-7.
"""


def page(found: Sequence[Outcome]) -> str:
    """The summary, a table of all operators, why some are not native, and every case."""
    introduction = INTRODUCTION.format(
        command=COMMAND,
        version=onnx.__version__,
        opset=onnx.defs.onnx_opset_version(),
        summary="\n".join(summary_rows(found)),
    )
    parts = [introduction, "## Operators", "", *operator_rows(found), ""]
    parts += ["## Why by reference", "", *_reasons(found), ""]
    parts += ["## Every test", "", *case_rows(found)]
    return "\n".join(parts) + "\n"


def shares(found: Sequence[Outcome]) -> dict[str, float]:
    """The share of each kind among the cases, in percent."""
    tally = Counter(outcome.kind for outcome in found)
    return {kind: 100 * tally[kind] / len(found) for kind in KINDS}


def summary_rows(found: Sequence[Outcome]) -> list[str]:
    """A row of the summary for each kind, and one for all of them."""
    tally, share = Counter(outcome.kind for outcome in found), shares(found)
    rows = [f"| {NAMES[k]} | {tally[k]:,} | {share[k]:.1f} % |" for k in KINDS]
    return [*rows, f"| all | {len(found):,} | |"]


def operator_rows(found: Sequence[Outcome]) -> list[str]:
    """A row for each operator; a number that is zero is left out."""
    rows = by_operator(found)
    lines = ["| operator | native | by reference | failing |", "|---|---|---|---|"]
    for name, row in rows.items():
        lines.append(f"| {name} | " + " | ".join(str(row[k] or "") for k in KINDS) + " |")
    return lines


def _reasons(found: Sequence[Outcome]) -> list[str]:
    """What the compiler says of what is not native, and how often."""
    reasons = Counter(_without_names(o.why) for o in found if o.kind == "reference")
    lines = ["| cases | reason |", "|---|---|"]
    return lines + [f"| {n} | {_cell(why)} |" for why, n in sorted(reasons.items())]


def _without_names(why: str) -> str:
    """A reason that does not depend on how a model calls its values and nodes."""
    return re.sub(r" \(\w+\(\w+\)\)", "", re.sub(r"(the input )?`\w+`", "an input", why))


def case_rows(found: Sequence[Outcome]) -> list[str]:
    """A row for each case: how it runs, and why not natively."""
    lines = ["| test | operator | runs | because |", "|---|---|---|---|"]
    return lines + [
        f"| `{o.name}` | {o.operator} | {NAMES[o.kind]} | {_cell(o.why)} |" for o in found
    ]


def read_page(text: str) -> list[Outcome]:
    """The cases that a page lists, without their reasons."""
    kinds = {name: kind for kind, name in NAMES.items()}
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \| ([a-z ]+) \| .*\|$", text, re.MULTILINE)
    return [Outcome(name, operator, kinds[runs]) for name, operator, runs in rows]


def _cell(text: str) -> str:
    return re.sub(r"([|<>*_])", r"\\\1", text)
