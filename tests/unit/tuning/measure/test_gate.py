"""Builds give way to measurements, and are served in their order."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from tilewright.tuning.measure.build import Built
from tilewright.tuning.measure.gate import Gate

WAIT_S = 30


class Held:
    """A builder whose builds end when a test says so; a build is known by its schedule."""

    def __init__(self):
        self.begun, self.paused = [], []
        self._changed = threading.Condition()
        self._ended = set()

    def build(self, _task, _target, schedule="draft"):
        with self._changed:
            self.begun.append(schedule)
            self._changed.notify_all()
            assert self._changed.wait_for(lambda: schedule in self._ended, WAIT_S)
        return Built(schedule.encode())

    def end(self, *schedules):
        with self._changed:
            self._ended.update(schedules)
            self._changed.notify_all()

    def await_begun(self, count):
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.begun) >= count, WAIT_S)

    def pause(self, but):
        self.paused.append(but)

    def go_on(self):
        self.paused.append(None)

    def close(self):
        pass


@pytest.fixture
def held():
    made = Held()
    yield made
    made.end(*"abcdef")


@pytest.fixture
def threads():
    with ThreadPoolExecutor(8) as made:
        yield made


def _await_asked(gate, count):
    """Until so many builds wait for room."""
    done = threading.Event()
    while len(gate._queue) < count:
        done.wait(0.001)


def test_no_more_builds_than_there_is_room_for_go_on_at_once(held, threads):
    gate = Gate(held, 2)
    found = []
    for number, schedule in enumerate("abcd"):
        found.append(threads.submit(gate.build, None, None, schedule))
        if number < 2:
            held.await_begun(number + 1)
        else:
            _await_asked(gate, number - 1)
    assert held.begun == ["a", "b"]
    held.end("b")
    held.await_begun(3)
    assert held.begun == ["a", "b", "c"], "who asked first is served first"
    held.end("a", "c", "d")
    assert [each.result(WAIT_S).data for each in found] == [b"a", b"b", b"c", b"d"]


def test_beside_a_measurement_builds_are_paused_and_none_begins(held, threads):
    gate = Gate(held, 2)
    first = threads.submit(gate.build, None, None, "a")
    held.await_begun(1)
    with gate.measuring(0):
        assert held.paused == [0]
        second = threads.submit(gate.build, None, None, "b")
        _await_asked(gate, 1)
        held.end("a")
        assert first.result(WAIT_S).data == b"a"
        assert held.begun == ["a"]
    assert held.paused == [0, None]
    held.end("b")
    assert second.result(WAIT_S).data == b"b"


def test_a_measurement_leaves_room_on_other_processors(held, threads):
    gate = Gate(held, 2)
    held.end("a")
    with gate.measuring(1):
        assert threads.submit(gate.build, None, None, "a").result(WAIT_S).data == b"a"
