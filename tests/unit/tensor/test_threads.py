"""Programs are written by several threads at once: what one reads is no input of another's."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

import tilewright as tw
from tilewright.tensor.same import always_the_same

THREADS = 8


@pytest.fixture
def restless():
    """The interpreter lets another thread go on after every few instructions."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def at_once(work: Callable[[int], object]) -> list[object]:
    """What each of several threads gives that begin together."""
    barrier = threading.Barrier(THREADS)

    def begin(number: int) -> object:
        barrier.wait()
        return work(number)

    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(begin, range(THREADS)))


@pytest.mark.usefixtures("restless")
def test_every_thread_gets_its_own_program():
    def work(number: int) -> list[tuple[str, ...]]:
        params = []
        for _ in range(100):
            x, y = (tw.placeholder(f"{name}{number}", (4, 4)) for name in "xy")
            z = tw.compute("z", (4, 4), lambda i, j, x=x, y=y: x[i, j] * y[j, i] + x[j, i])
            params.append(tuple(p.name for p in tw.func("f", [x, y], [z]).params))
        return params

    for number, params in enumerate(at_once(work)):
        assert params == [(f"x{number}", f"y{number}", "z")] * 100


@pytest.mark.usefixtures("restless")
def test_what_is_always_the_same_is_so_for_all_threads():
    made: list[int] = []

    @always_the_same
    def slowly(key: int) -> object:
        made.append(key)
        time.sleep(0.01)
        return object()

    for key in range(5):
        found = at_once(lambda _, key=key: slowly(key))
        assert all(one is found[0] for one in found)
        assert slowly(key) is found[0]
    count = len(made)
    slowly(0)
    assert len(made) == count, "it is made once, unless threads meet"
