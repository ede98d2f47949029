"""Answers that are found once, and what a branch of a cache knows."""

from __future__ import annotations

import pytest

from tests.expect import raises_code
from tilewright.schedule import Schedule
from tilewright.tensor import library
from tilewright.tensor.parser import parse
from tilewright.tensor.validate import ValidationCache, validate
from tilewright.tensor.validate import memo as memos
from tilewright.tensor.validate.memo import Memo


def counted(answers: list[object], result: object):
    def answer() -> object:
        answers.append(result)
        return result

    return answer


def test_asked_once_for_the_same_objects():
    memo, asked, subject = Memo(), [], object()
    assert memo.once("size", (subject,), counted(asked, 3)) == 3
    assert memo.once("size", (subject,), counted(asked, 4)) == 3
    assert asked == [3]


def test_questions_and_objects_are_told_apart():
    memo, asked = Memo(), []
    first, second = [1], [1]
    assert first == second
    memo.once("a", (first,), counted(asked, 1))
    memo.once("b", (first,), counted(asked, 2))
    memo.once("a", (second,), counted(asked, 3))
    memo.once("a", (first, second), counted(asked, 4))
    assert asked == [1, 2, 3, 4]


def test_objects_live_as_long_as_answers():
    """An id is not given to another object while an answer is remembered under it."""
    memo, asked = Memo(), []
    for number in range(1000):
        memo.once("it", ([number],), counted(asked, number))
    assert asked == list(range(1000))


def test_refusals_are_not_remembered():
    memo, subject = Memo(), object()

    def refuse() -> object:
        raise ValueError("refused")

    for _ in range(2):
        with pytest.raises(ValueError, match="refused"):
            memo.once("it", (subject,), refuse)
    assert memo.once("it", (subject,), lambda: 1) == 1


def test_it_forgets_when_it_is_full(monkeypatch):
    monkeypatch.setattr(memos, "_MOST", 4)
    memo, subjects = Memo(), [object() for _ in range(9)]
    for number, subject in enumerate(subjects):
        assert memo.once("it", (subject,), lambda n=number: n) == number
        assert len(memo._answers) <= 4


def test_a_branch_learns_on_its_own():
    func = library.matmul(4, 5, 6, relu=True)
    cache = ValidationCache()
    validate(func, cache)
    branch = cache.branch()
    known = len(cache._nests), len(cache.maps._answers)
    assert (len(branch._nests), len(branch.maps._answers)) == known
    validate(library.softmax(4, 5), branch)
    assert (len(cache._nests), len(cache.maps._answers)) == known


def test_schedules_of_one_program_do_not_disturb_each_other():
    func = library.matmul(8, 8, 8)
    first, second = Schedule(func), Schedule(func)
    first.split("i", 4)
    first.parallel("i_0")
    assert str(second.func) == str(Schedule(func).func)
    second.split("i", 2)
    assert first.loops("C") == ("i_0", "i_1", "j", "k")


PARTS = """
def f(A: f32[8]{param}):
    {alloc}
    for i in range(4):
        with block("T", v=S(8, i)):
            T[v] = A[v]
"""


def test_what_the_caller_sees_is_asked_in_each_program():
    """A block may compute a part of an intermediate buffer, but not of an output."""
    inner = parse(PARTS.format(param="", alloc="T = alloc(f32[8])"))
    cache = ValidationCache()
    validate(inner, cache)
    alloc = inner.body
    outer = inner.with_fields(params=(*inner.params, alloc.buffer), body=alloc.body)
    with raises_code("V101"):
        validate(outer, cache)
