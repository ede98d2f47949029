"""Operators keep to the table of tolerances, on hard inputs; nothing else has tolerances."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import tilewright as tw
from benchmarks import numbers
from benchmarks.models import MODELS
from scripts import accuracy as script
from tests.numeric import special_values
from tests.numeric.accuracy_cases import cases, edges, factor_of
from tests.shared_kernels import shared_kernels
from tilewright.frontend.onnx import families
from tilewright.frontend.onnx.registry import HANDLERS
from tilewright.model.compilation import Chosen
from tilewright.model.compiler import choose_layouts
from tilewright.target import Target
from tilewright.testing import accuracy
from tilewright.testing.accuracy import limit
from tilewright.testing.operator_kinds import KINDS

CASES = {f"{case.op} {case.name}": case for case in cases()}

_shared = pytest.fixture(autouse=True, scope="module")(shared_kernels)  # both settings have most


@pytest.mark.parametrize("setting", ["default", "strict"])
@pytest.mark.parametrize("name", CASES)
def test_results_are_within_the_table(name, setting):
    case = CASES[name]
    module = tw.compile(case.model(), cache=False, threads=1, accuracy=setting)
    (found,) = module.run(dict(case.inputs))
    factor = factor_of(module.graph)
    assert case.error(found, factor) <= limit(case.family, setting)
    if setting == "strict":
        assert factor is None


@pytest.mark.parametrize("name", [name for name in CASES if CASES[name].family == "winograd"])
def test_cases_of_winograd_are_computed_by_it(name):
    """On a machine for which it pays; elsewhere the same cases are convolved directly."""
    target = Target.named("x86-64-v3")
    chosen = choose_layouts(CASES[name].model(), target, 1, lambda _: None)
    assert isinstance(chosen, Chosen)
    assert factor_of(chosen.choice.graph) is not None


def test_cases_would_notice_less_precision():
    """Results rounded to 11 bits of mantissa are outside of every limit but those of long sums.

    Limits of minimal filters are for the worst data; those for ordinary data are in
    `test_convolutions`.
    """
    noticed = set()
    for case in CASES.values():
        with np.errstate(all="ignore"):
            rounded = case.judged()[0].astype(np.float32)
        coarse = (rounded.view(np.uint32) & np.uint32(0xFFFFF000)).view(np.float32)
        if not case.error(coarse) <= limit(case.family):
            noticed.add(case.family)
    assert {"arithmetic", "sum", "softmax", *accuracy.FUNCTION_OPS} <= noticed


@pytest.mark.parametrize(
    "op", ["Add", "Sub", "Mul", "Div", "Neg", "Sqrt", "Floor", "Ceil", "Round"]
)
def test_zeros_keep_their_sign(op):
    case = CASES[f"{op} all sizes"]
    (found,) = tw.compile(case.model(), cache=False, threads=1).run(dict(case.inputs))
    with np.errstate(all="ignore"):
        exact = case.judged()[0].astype(np.float32)
    zero = exact == 0
    assert zero.sum() >= 2
    np.testing.assert_array_equal(np.signbit(found[zero]), np.signbit(exact[zero]))


def test_inputs_have_subnormal_numbers_and_both_zeros():
    x = edges()
    assert {*np.signbit(x[x == 0])} == {True, False}
    tiny = np.finfo(np.float32).tiny
    assert ((np.abs(x) < tiny) & (x != 0)).sum() >= 4


def test_the_table_names_operators_that_exist():
    assert {("", op) for op in accuracy.FUNCTION_OPS} <= HANDLERS.keys()
    assert {case.family for case in CASES.values()} == {*accuracy.FAMILIES, *accuracy.FUNCTION_OPS}


@pytest.mark.parametrize("family", accuracy.FAMILIES)
def test_every_operator_that_the_table_names_is_measured(family):
    named = re.findall(r"\b[A-Z]\w*[a-z]\b", accuracy.FAMILIES[family].operators)
    measured = {case.op for case in CASES.values() if case.family == family}
    assert measured == set(named)


def test_the_page_is_made_of_the_table():
    page = Path(script.__file__).parents[1] / "docs" / "accuracy.md"
    text = page.read_text(encoding="utf-8")
    assert text.startswith(script.INTRODUCTION + script.promised())
    for case in CASES.values():
        assert f"| {case.op} | {case.name} | {limit(case.family):g} |" in text


def test_the_page_says_what_special_values_give():
    page = Path(script.__file__).parents[1] / "docs" / "accuracy.md"
    assert script.SPECIAL + special_values.table() in page.read_text(encoding="utf-8")


def test_every_operator_has_a_kind_of_error():
    families.load()
    handled = sorted(op for domain, op in HANDLERS if not domain)
    assert sorted(op for kind in KINDS for op in kind.operators) == handled


def test_benchmarks_have_the_tolerances_of_the_table():
    """They hold them as numbers: what runs other engines does not import tilewright."""
    assert numbers.TOLERANCE == accuracy.OPERATORS
    assert numbers.CONVOLUTION_TOLERANCE == accuracy.CONVOLVED
    assert max(one.largest for one in accuracy.CONVOLUTIONS.values()) <= accuracy.CONVOLVED
    for model in MODELS.values():
        expected = accuracy.MODELS.get(model.family, accuracy.MODELS["models"])
        assert model.tolerance == expected, model.name
