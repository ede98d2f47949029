"""No rule without an oracle: every law goes to z3, every rule is run against plain evaluation.

A rule table that is not listed here, a rule that never fires on random forms, and a law that does
not hold all fail.
"""

from __future__ import annotations

import ast
import importlib
import itertools
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import z3

from tests.property.index_expressions import (
    NoTile,
    Values,
    evaluate,
    expression_from,
    scope_from,
)
from tilewright.tensor import arith
from tilewright.tensor.arith import Analyzer
from tilewright.tensor.arith.linear import Kind, Linear, constant, plus, scaled
from tilewright.tensor.arith.rebuild import expression
from tilewright.tensor.arith.rules import LAWS, TABLES, Law, Rule

SOURCES = Path(arith.__file__).parent

RULES = [(table.name, rule) for table in TABLES.values() for rule in table]
NAMES = [f"{table}.{rule.name}" for table, rule in RULES]


class _Translator(ast.NodeVisitor):
    """Python's notation to z3, with floor division and remainder as Python has them."""

    def __init__(self, constants: dict[str, int]) -> None:
        self.constants = constants

    def visit_Expression(self, tree: ast.Expression) -> object:
        return self.visit(tree.body)

    def visit_Constant(self, tree: ast.Constant) -> object:
        return z3.BoolVal(tree.value) if isinstance(tree.value, bool) else z3.IntVal(tree.value)

    def visit_Name(self, tree: ast.Name) -> object:
        if tree.id in self.constants:
            return z3.IntVal(self.constants[tree.id])
        return z3.Int(tree.id)

    def visit_UnaryOp(self, tree: ast.UnaryOp) -> object:
        assert isinstance(tree.op, ast.USub)
        return -self.visit(tree.operand)

    def visit_BoolOp(self, tree: ast.BoolOp) -> object:
        assert isinstance(tree.op, ast.And)
        return z3.And(*(self.visit(value) for value in tree.values))

    def visit_Compare(self, tree: ast.Compare) -> object:
        a, b = self.visit(tree.left), self.visit(tree.comparators[0])
        (kind,) = tree.ops
        table = {ast.Lt: a < b, ast.LtE: a <= b, ast.Gt: a > b, ast.GtE: a >= b, ast.Eq: a == b}
        return table[type(kind)]

    def visit_Call(self, tree: ast.Call) -> object:
        assert isinstance(tree.func, ast.Name)
        a, b = (self.visit(value) for value in tree.args)
        return z3.If(a <= b, *((a, b) if tree.func.id == "min" else (b, a)))

    def visit_BinOp(self, tree: ast.BinOp) -> object:
        a, b = self.visit(tree.left), self.visit(tree.right)
        match tree.op:
            case ast.Add():
                return a + b
            case ast.Sub():
                return a - b
            case ast.Mult():
                return a * b
            case ast.FloorDiv():
                return a / b  # z3 rounds down where the divisor is positive, as all are here
        assert isinstance(tree.op, ast.Mod)
        return a % b


def _constants(law: Law) -> Iterator[dict[str, int]]:
    """Values for the constants of a law and for its divisors: what remains is linear."""
    trees = [ast.parse(text, mode="eval") for text in (law.left, law.right, law.given)]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    names = {node.id for node in nodes if isinstance(node, ast.Name)}
    divided = [n.right for n in nodes if isinstance(n, ast.BinOp) and _divides(n)]
    divisors = {n.id for d in divided for n in ast.walk(d) if isinstance(n, ast.Name)}
    fixed = sorted(divisors | {name for name in names if name in "abcdefgh"})
    ranges = [(1, 2, 3, 4, 6) if name in divisors else (-2, -1, 0, 1, 3) for name in fixed]
    for values in itertools.product(*ranges):
        yield dict(zip(fixed, values, strict=True))


def _divides(node: ast.BinOp) -> bool:
    return isinstance(node.op, ast.FloorDiv | ast.Mod)


def refute(law: Law) -> str | None:
    """Values for which a law fails; None if there are none."""
    for constants in _constants(law):
        translate = _Translator(constants)
        texts = (law.left, law.right, law.given)
        left, right, given = (translate.visit(ast.parse(text, mode="eval")) for text in texts)
        solver = z3.Solver()
        solver.add(given, left != right)
        if solver.check() != z3.unsat:
            return f"{constants}, {solver.model()}"
    return None


@pytest.mark.parametrize("rule", [rule for _, rule in RULES], ids=NAMES)
def test_law_of_rule_holds_for_all_integers(rule):
    assert refute(rule.law) is None


@pytest.mark.parametrize("name", sorted(LAWS))
def test_law_of_function_holds_for_all_integers(name):
    for law in LAWS[name]:
        assert refute(law) is None, law


@pytest.mark.parametrize(
    "law",
    [
        Law("(x + y) // c", "x // c + y // c", "c > 0"),
        Law("(x % c) // d", "(x // d) % c", "c > 0 and d > 0"),
        Law("min(x, y)", "x", "x <= y + 1"),
        Law("x // c", "0", "x < c"),
    ],
    ids=str,
)
def test_wrong_law_is_refuted(law):
    assert refute(law) is not None


# How to run a rule of each table on a form: (operation, its two operands, the rule's answer).
Runs = Iterator[tuple[Callable[[int, int], int], Linear, Linear, Linear]]


def _first(a: int, _: int) -> int:
    return a


def _by_constant(divide: Callable[[int, int], int]) -> Callable[..., Runs]:
    def run(rule: Rule, space: Analyzer, form: Linear) -> Runs:
        for x in (form, *_symbolic_digits(space, form)):
            for c in (1, 2, 3, 4, 6, 8, 12):
                after = rule.apply(space, x, c)
                if after is not None:
                    yield divide, x, constant(c), after

    return run


def _symbolic_digits(space: Analyzer, form: Linear) -> Iterator[Linear]:
    """Quotients and remainders of a form by something with a size in it."""
    for size in space.sizes:
        divisor = scaled(space.linear(size), 6)
        yield space.floor_div(form, divisor)
        yield space.floor_mod(form, divisor)


def _by_form(divide: Callable[[int, int], int]) -> Callable[..., Runs]:
    def run(rule: Rule, space: Analyzer, form: Linear) -> Runs:
        for var in [*space.extents, *space.sizes]:
            plain = space.linear(var)
            for divisor in (plain, plus(plain, constant(2)), scaled(plain, 6)):
                if divisor.terms and space.never_negative(plus(divisor, constant(-1))):
                    more = plus(form, space.multiply(form, divisor))
                    digits = space.floor_mod(form, scaled(divisor, 3)), space.floor_div(form, 3)
                    coarse = plus(scaled(form, 4), constant(1))
                    for x in (form, more, plus(form, divisor, -1), *digits, coarse):
                        after = rule.apply(space, x, divisor)
                        if after is not None:
                            yield divide, x, divisor, after

    return run


def _in_sum(rule: Rule, space: Analyzer, form: Linear) -> Runs:
    for c in (2, 3, 4):
        quotient, remainder = space.floor_div(form, c), space.floor_mod(form, c)
        for total in (
            plus(remainder, quotient, c),
            plus(form, quotient, -c),
            plus(form, remainder, -1),
            plus(remainder, space.floor_mod(quotient, 2), c),
            plus(remainder, space.floor_mod(space.floor_mod(quotient, 5), 3), c),
            *_scaled_digits(space, form, c),
        ):
            for atom, k in total.terms.items():
                if atom.kind in (Kind.DIV, Kind.MOD, Kind.PRODUCT):
                    after = rule.apply(space, total, atom, k)
                    if after is not None:
                        yield _first, total, constant(0), after


def _scaled_digits(space: Analyzer, form: Linear, c: int) -> Iterator[Linear]:
    """Sums of the digits of a form, all of them times a size."""
    for size in space.sizes:
        z = space.linear(size)
        high, low = space.floor_div(form, c), space.floor_mod(form, c)
        yield plus(space.multiply(low, z), space.multiply(high, z), c)


WAYS: dict[str, Callable[..., Runs]] = {
    "floor_div": _by_constant(lambda a, b: a // b),
    "floor_mod": _by_constant(lambda a, b: a % b),
    "symbolic_div": _by_form(lambda a, b: a // b),
    "symbolic_mod": _by_form(lambda a, b: a % b),
    "sum": _in_sum,
}


def test_every_table_has_a_way_to_be_checked():
    assert WAYS.keys() == TABLES.keys()


def _forms(seed: int) -> Iterator[tuple[Analyzer, Linear, list[Values]]]:
    rng = random.Random(seed)
    scope = scope_from(seed, 1 + seed % 4)
    space = Analyzer(scope.extents)
    points = scope.points(seed, count=12)
    for _ in range(6):
        expr = expression_from(scope, rng.randrange(1 << 20), rng.randint(1, 3))
        yield space, space.linear(expr), points


@pytest.mark.parametrize(("table", "rule"), RULES, ids=NAMES)
def test_rule_agrees_with_evaluation(table, rule):
    fired = 0
    for seed in range(2500):
        for space, form, points in _forms(seed):
            for compute, x, y, after in WAYS[table](rule, space, form):
                fired += 1
                _check(compute, expression(x), expression(y), expression(after), points)
        if fired >= 60:
            return
    assert fired >= 5, f"{rule.name} fired {fired} times: it is not tested"


def _check(compute, x, y, after, points):
    for values in points:
        try:
            expected = compute(evaluate(x, values), evaluate(y, values))
        except NoTile:
            continue
        assert evaluate(after, values) == expected, (x, y, after, values)


# Rules that z3 cannot be asked about, and those that only try others: where they are checked.
ELSEWHERE = {
    "tiles.tile_step": "test_tile_rules.test_size_is_the_distance_of_starts",
    "tiles.tile_end": "test_tile_rules.test_no_tile_ends_behind_the_extent",
    "tiles.divided": "test_tile_rules.test_starts_and_sizes_divided",
    "tiles.start_bounds": "test_tile_rules.test_bounds_of_starts",
    "tiles._normal_atom": "test_tile_rules.test_normal_form_is_equal",
    "sweep._tile_end": "test_tile_rules.test_what_a_tile_sweeps",
    "recombine._first": "test_arith_laws.test_rule_agrees_with_evaluation",
    "nonneg._relaxed": "test_simplify_is_sound.test_what_is_proved_is_true",
}


def _rewrites() -> Iterator[str]:
    """Every function that turns a form into another one where it can, or into bounds of it.

    Iterator maps are compared with enumeration as a whole (`test_iter_maps.py`).
    """
    for path in sorted(SOURCES.glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef) and node.returns is not None:
                kind = ast.unparse(node.returns)
                if kind.endswith("Linear | None") or kind == "Iterator[Linear]":
                    yield f"{path.stem}.{node.name}"


def test_no_rewrite_is_without_a_check():
    """A rule that is in no table, has no law and is not listed above fails here."""
    tables = {f"{rule.apply.__module__.rpartition('.')[2]}.{rule.name}" for _, rule in RULES}
    found = set(_rewrites())
    assert len(found) > 30
    assert found - tables - LAWS.keys() - ELSEWHERE.keys() == set()
    assert ELSEWHERE.keys() <= found
    for place in ELSEWHERE.values():
        module, _, test = place.partition(".")
        assert callable(getattr(importlib.import_module(f"tests.property.{module}"), test))
