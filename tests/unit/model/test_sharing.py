"""What a result may be written over, as far as the order of steps is concerned."""

from __future__ import annotations

from hypothesis import given, note
from hypothesis import strategies as st

from tests.unit.model.test_memory import flat, programs, run, step, steps
from tilewright.model.memory import lifetimes, stretched, waits
from tilewright.model.sharing import overwritten


def shared(text, wishes, loops=()):
    return overwritten(steps(text), loops, wishes)


def test_the_last_reader_may_write_over_what_it_reads():
    assert shared(">a a>b b>c", {1: [("a", "b")]}) == {"a": "b"}


def test_what_is_read_later_stays():
    assert shared(">a a>b ab>c", {1: [("a", "b")]}) == {}


def test_what_was_there_before_is_not_a_new_result():
    assert shared(">b >a a>b b>c", {2: [("a", "b")]}) == {}


def test_what_nobody_has_written_stays():
    """An input of the model."""
    assert shared("a>b b>c", {0: [("a", "b")]}) == {}


def test_a_chain_lives_in_its_last_result():
    wishes = {1: [("a", "b")], 2: [("b", "c")]}
    assert shared(">a a>b b>c c>", wishes) == {"a": "c", "b": "c"}


def test_one_input_for_one_result():
    wishes = {2: [("a", "c"), ("b", "c"), ("a", "d")]}
    assert shared(">a >b ab>cd cd>", wishes) == {"a": "c"}
    assert shared(">a >b ab>cd cd>", {2: [("a", "c"), ("b", "d")]}) == {"a": "c", "b": "d"}


def test_steps_of_a_loop_are_taken_again():
    wishes = {2: [("a", "b")]}
    assert shared(">! >a a>b b>c >!", wishes, [(0, 4)]) == {"a": "b"}
    assert shared(">a >! a>b b>c >!", wishes, [(1, 4)]) == {}, "read again by the next iteration"
    assert shared(">! >a a>b >! b>c", wishes, [(0, 3)]) == {}, "not looked at further"


def test_inside_of_a_loop_that_is_inside_of_another():
    text, wishes = ">! >a >! a>b >! b>c >!", {3: [("a", "b")]}
    assert shared(text, wishes, [(2, 4), (0, 6)]) == {}
    assert shared(text, wishes, [(0, 6)]) == {"a": "b"}


@given(program=programs(), data=st.data())
def test_whoever_reads_something_finds_it(program, data):
    """With memory shared, every read finds what was written last to it without sharing."""
    loops: list[tuple[int, int]] = []
    touches = flat(program, loops)
    wishes = {
        number: [(a, b) for a in touch.reads for b in touch.writes if a not in touch.writes]
        for number, touch in enumerate(touches)
        if data.draw(st.booleans())
    }
    found = overwritten(touches, loops, wishes)
    note(f"{touches}\n{loops}\n{wishes}\n{found}")
    plain: dict[object, int] = {}
    memory: dict[object, int] = {}
    for when, at in enumerate(run(loops, 0, len(touches) - 1)):
        for what in touches[at].reads:
            if what in plain:
                assert memory[found.get(what, what)] == plain[what]
        for what in touches[at].writes:
            plain[what] = memory[found.get(what, what)] = when * 10 + ord(str(what))
    renamed = [touch.renamed(found) for touch in touches]
    waiting = waits(renamed)
    lives = stretched(lifetimes(renamed, waiting), loops)
    for number, touch in enumerate(touches):
        for what in (*touch.reads, *touch.writes):
            first, last = lives[found.get(what, what)]
            assert first <= number <= last


def test_reading_and_writing_one_memory_is_a_step_of_its_own():
    """A reader beside the one that overwrites what both read must be done before."""
    touches = steps(">a a>x a>b bx>c")
    found = overwritten(touches, (), {2: [("a", "b")]})
    assert found == {"a": "b"}
    assert waits(touches) == [False, True, False, True]
    assert waits([touch.renamed(found) for touch in touches]) == [False, True, True, True]
    assert step("a>b").renamed({"a": "b"}) == step("b>b")
