"""Ctrl-C in the middle of what must not be broken off."""

from __future__ import annotations

import signal
import threading

import pytest

from tilewright.tuning.measure.interrupts import interrupts_wait


@pytest.fixture(autouse=True)
def _usual_handler():
    """What Python does with Ctrl-C, also where a shell has started the tests without."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_an_interrupt_comes_at_the_end():
    done = []

    def work():
        with interrupts_wait():
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGINT)
            done.append("all of it")

    with pytest.raises(KeyboardInterrupt):
        work()
    assert done == ["all of it"]
    with pytest.raises(KeyboardInterrupt):  # from then on at once
        signal.raise_signal(signal.SIGINT)


def test_an_error_comes_before_an_interrupt():
    def work():
        with interrupts_wait():
            signal.raise_signal(signal.SIGINT)
            raise OSError("full")

    with pytest.raises(OSError, match="full"):
        work()


def test_without_an_interrupt_nothing_happens_on_any_thread():
    before = signal.getsignal(signal.SIGINT)
    with interrupts_wait():
        pass
    found = []

    def elsewhere():
        with interrupts_wait():
            found.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert found == [before] == [signal.getsignal(signal.SIGINT)]
