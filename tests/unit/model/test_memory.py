"""Which steps wait for which, and how long memory is in use."""

from __future__ import annotations

from itertools import combinations

from hypothesis import given, note
from hypothesis import strategies as st

from tilewright.model.memory import Touch, lifetimes, stretched, waits

NOTHING = Touch((), (), meets=True)
"""A step like a jump: all threads meet, no memory is touched."""


def step(text: str) -> Touch:
    """`ab>c` reads a and b and writes c; with `!` all threads meet in any case."""
    meets = text.endswith("!")
    reads, _, writes = text.removesuffix("!").partition(">")
    return Touch(tuple(reads), tuple(writes), meets=meets)


def steps(text: str) -> list[Touch]:
    return [step(part) for part in text.split()]


def test_reading_what_was_written_waits():
    assert waits(steps("x>a a>b x>c")) == [False, True, False]


def test_writing_what_is_read_or_written_waits():
    assert waits(steps("a>b x>a")) == [False, True]
    assert waits(steps("x>a y>a")) == [False, True]


def test_steps_that_have_nothing_to_do_with_each_other_run_on():
    assert waits(steps("x>a x>b y>c ab>d cx>e")) == [False, False, False, True, False]


def test_after_a_meeting_what_was_before_it_is_done():
    assert waits(steps("x>a >! a>b")) == [False, True, False]


def test_in_place_is_a_step_of_its_own():
    assert waits(steps("x>a a>a a>a")) == [False, True, True]


def test_a_buffer_lives_to_the_end_of_the_stretch_of_its_last_step():
    touches = steps("x>a x>b a>c b>d c>e")
    waiting = waits(touches)
    assert waiting == [False, False, True, False, True]
    lives = lifetimes(touches, waiting)
    assert {k: lives[k] for k in "abcde"} == {
        "a": (0, 3),
        "b": (0, 3),
        "c": (2, 4),
        "d": (2, 3),
        "e": (4, 4),
    }


def test_nothing_ends_inside_of_a_loop():
    lives = {"before": (0, 1), "into": (1, 3), "inside": (4, 4), "out of": (5, 8), "after": (8, 9)}
    assert stretched(lives, [(2, 6)]) == {
        "before": (0, 1),
        "into": (1, 6),
        "inside": (2, 6),
        "out of": (2, 8),
        "after": (8, 9),
    }


def test_a_loop_inside_of_a_loop():
    assert stretched({"a": (4, 4), "b": (2, 2)}, [(3, 5), (1, 7)]) == {"a": (1, 7), "b": (1, 7)}


# ---- for all programs

Program = list["Touch | Program"]  # type: ignore[misc]


def touches_of(names: str = "abcdefgh") -> st.SearchStrategy[Touch]:
    some = st.lists(st.sampled_from(names), max_size=2, unique=True).map(tuple)
    return st.builds(Touch, some, some, meets=st.integers(0, 5).map(lambda k: k == 0))


def programs() -> st.SearchStrategy[list[object]]:
    """Steps and loops, which are lists."""
    return st.lists(
        st.one_of(
            touches_of(),
            st.lists(st.one_of(touches_of(), st.lists(touches_of(), max_size=3)), max_size=4),
        ),
        min_size=1,
        max_size=8,
    )


def flat(program: list[object], loops: list[tuple[int, int]], start: int = 0) -> list[Touch]:
    """The steps in order; a loop begins and ends with a meeting of all threads."""
    found: list[Touch] = []
    for part in program:
        if isinstance(part, Touch):
            found.append(part)
            continue
        begin = start + len(found)
        found += [NOTHING, *flat(part, loops, begin + 1), NOTHING]  # type: ignore[arg-type]
        loops.append((begin, start + len(found) - 1))
    return found


def run(loops: list[tuple[int, int]], first: int, last: int) -> list[int]:
    """The steps as they run, every loop twice."""
    order: list[int] = []
    at = first
    while at <= last:
        inner = [loop for loop in loops if loop[0] == at and (first, last) != loop]
        if inner:
            (begin, end) = max(inner, key=lambda loop: loop[1])
            order += run(loops, begin, end) * 2
            at = end + 1
        else:
            order.append(at)
            at += 1
    return order


@given(program=programs())
def test_memory_that_is_shared_is_never_in_use_twice(program):
    """Of two buffers that may share memory all threads are done with one before the other."""
    loops: list[tuple[int, int]] = []
    touches = flat(program, loops)
    waiting = waits(touches)
    lives = stretched(lifetimes(touches, waiting), loops)
    order = run(loops, 0, len(touches) - 1)
    note(f"{touches}\n{waiting}\n{loops}\n{order}\n{lives}")
    stretch, when = 0, {what: [] for what in lives}
    for at in order:
        stretch += waiting[at]
        for what in {*touches[at].reads, *touches[at].writes}:
            when[what].append(stretch)
            assert lives[what][0] <= at <= lives[what][1]
    for a, b in combinations(lives, 2):
        apart = lives[a][1] < lives[b][0] or lives[b][1] < lives[a][0]
        done = max(when[a]) < min(when[b]) or max(when[b]) < min(when[a])
        assert done or not apart


@given(touches=st.lists(touches_of(), max_size=12))
def test_steps_of_one_stretch_do_not_depend_on_each_other(touches):
    waiting = waits(touches)
    stretch = 0
    seen: list[tuple[int, Touch]] = []
    for touch, wait in zip(touches, waiting, strict=True):
        stretch += wait
        for number, earlier in seen:
            if number == stretch:
                assert not set(earlier.writes) & {*touch.reads, *touch.writes}
                assert not set(earlier.reads) & set(touch.writes)
        seen.append((stretch, touch))
