"""What a run that ends because of its sizes says about a version that would do."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tilewright.dtypes import f32
from tilewright.runtime.failures import FALSE_HERE, OR_ONE, TRUE_HERE
from tilewright.runtime.meetings import GuardError, Meetings, Wanted
from tilewright.runtime.program import Port, Program, Size, SizeExpr, SizeOp
from tilewright.runtime.sizes import compared

ONE = ((SizeOp.CONST, 1),)
CHECK = ((SizeOp.EQ, 0), (SizeOp.FLOORDIV, 0))


def size(number: int) -> SizeExpr:
    return ((SizeOp.SIZE, number),)


LESS: SizeExpr = (*size(0), *ONE, (SizeOp.SUB, 0))


def program(*checks: tuple[SizeExpr, SizeExpr], name: str = f"a = b{OR_ONE}") -> Program:
    sizes = [Size(name) for name in "nmk"]
    sizes += [Size(name, (*ONE, *a, *b, *CHECK)) for a, b in checks]
    inputs = [Port(name, f32, (-1 - k,), (name,), k) for k, name in enumerate("nmk")]
    return Program("p", tuple(inputs), (), tuple(sizes), (), (), ())


def ones(found: Program, which: int, *sizes: int) -> frozenset[str] | None:
    known = (*sizes, *[0] * (len(found.sizes) - len(sizes)))
    try:
        Meetings(found).require_made_for(which, known)
    except GuardError as met:
        return met.wanted.ones
    return None


@pytest.mark.parametrize("second", [size(1), LESS, (*LESS, *size(2), (SizeOp.MAX, 0))])
def test_both_sides_of_a_check(second: SizeExpr) -> None:
    assert compared((*ONE, *size(0), *second, *CHECK)) == (size(0), second)
    assert compared(second) is None
    assert compared(None) is None


def test_only_what_is_one_and_meets_another_is_said() -> None:
    found = program((size(0), size(1)), (size(1), size(2)))
    assert ones(found, 3, 1, 3, 3) == {"n"}
    assert ones(found, 3, 3, 1, 3) == {"m"}
    assert ones(found, 3, 1, 3, 1) == {"n", "k"}
    assert ones(found, 3, 2, 3, 1) is None


def test_what_no_input_has_is_said_by_nothing() -> None:
    found = program((LESS, size(1)))
    assert ones(found, 3, 2, 3) == frozenset()
    assert ones(found, 3, 3, 3) is None


def test_other_checks_and_numbers_are_not_broadcast() -> None:
    assert ones(program((size(0), size(1)), name="a = b"), 3, 1, 3) is None
    assert ones(program((size(0), ONE)), 3, 3) is None


def test_what_is_compared_before_data_tell_is_one_as_well() -> None:
    """n meets m and has to be k, and m is known in a later segment."""
    sizes = [Size("n"), Size("k"), Size("n = k", (*ONE, *size(0), *size(1), *CHECK))]
    sizes += [Size("m", None, 1), Size(f"m = n{OR_ONE}", (*ONE, *size(3), *size(0), *CHECK), 1)]
    inputs = [Port(name, f32, (-1 - k,), (name,), k) for k, name in enumerate("nk")]
    found = Program("p", tuple(inputs), (), tuple(sizes), (), (), ())
    assert ones(found, 2, 1, 3) == {"n"}
    assert ones(found, 2, 3, 1) is None
    assert ones(found, 4, 1, 1, 1, 3) == {"n"}


def guarded_program(*guards: tuple[str, SizeExpr]) -> Program:
    sizes = [Size(name) for name in "nmk"]
    sizes += [Size(name, (*ONE, *value, (SizeOp.FLOORDIV, 0))) for name, value in guards]
    inputs = [Port(name, f32, (-1 - k,), (name,), k) for k, name in enumerate("nmk")]
    return Program("p", tuple(inputs), (), tuple(sizes), (), (), ())


def wanted(found: Program, which: int, *sizes: int) -> Wanted:
    with pytest.raises(GuardError) as caught:
        Meetings(found).require_made_for(which, (*sizes, *[0] * (len(found.sizes) - len(sizes))))
    return caught.value.wanted


def is_(number: int, value: int) -> SizeExpr:
    return (*size(number), (SizeOp.CONST, value), (SizeOp.EQ, 0))


NOT: SizeExpr = ((SizeOp.NOT, 0),)


def test_a_guard_that_fails_says_what_a_version_must_know() -> None:
    found = guarded_program(
        (f"n == 1{FALSE_HERE}", (*is_(0, 1), *NOT)),
        (f"m == 2{FALSE_HERE}", (*is_(1, 2), *NOT)),
        (f"k == 1{TRUE_HERE}", is_(2, 1)),
    )
    assert wanted(found, 3, 1, 3, 1) == Wanted(frozenset("n"))
    assert wanted(found, 4, 3, 2, 1) == Wanted(flipped=frozenset({"m == 2"}))
    assert wanted(found, 5, 3, 3, 3) == Wanted(flipped=frozenset({"k == 1"}))
    assert wanted(found, 3, 1, 2, 3) == Wanted(frozenset("n"), frozenset({"m == 2", "k == 1"}))


def test_a_guard_says_what_it_is_for() -> None:
    found = guarded_program((f"n == 1{FALSE_HERE}", (*is_(0, 1), *NOT)))
    with pytest.raises(GuardError, match="`n == 1` is true, which decides ranks or axes"):
        Meetings(found).require_made_for(3, (1, 2, 2, 0))


def test_programs_that_may_meet_other_sizes() -> None:
    assert Meetings(guarded_program((f"a{TRUE_HERE}", is_(0, 1)))).are_any
    plain = guarded_program()
    assert not Meetings(plain).are_any
    assert not Meetings(plain).share_names
    twice = replace(plain, inputs=(*plain.inputs, plain.inputs[0]))
    assert Meetings(twice).share_names
