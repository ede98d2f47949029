"""What limits a kernel, on a machine whose rates are known."""

from __future__ import annotations

import dataclasses

import pytest

from tilewright.model.limits import Limits, step_times
from tilewright.runtime.profile import Event, Profile
from tilewright.runtime.program import Call, Jump, KernelCode, Program
from tilewright.target import Bandwidth, Cache, Measured, Rate, Target

LEVELS = tuple(
    Bandwidth(name, Rate(one, two), Rate(one, two), Rate(one, two))
    for name, one, two in (("L1", 100.0, 200.0), ("L2", 50.0, 100.0), ("DRAM", 10.0, 12.0))
)
MACHINE = dataclasses.replace(
    Target.named("x86-64-v3"),
    cores=2,
    caches=(Cache(1, 1000), Cache(2, 10_000)),
    measured=Measured(Rate(100.0, 180.0), LEVELS),
)


@pytest.mark.parametrize(
    ("flops", "moved", "parallel", "what", "seconds"),
    [
        (10**9, 10, True, "FMA", 1 / 180),
        (10**9, 10, False, "FMA", 1 / 100),
        (0, 900, False, "L1", 900 / 100e9),
        (0, 1900, True, "L1", 1900 / 200e9),
        (0, 5000, False, "L2", 5000 / 50e9),
        (0, 10**9, True, "DRAM", 1 / 12),
        (0, 10**9, False, "DRAM", 1 / 10),
    ],
)
def test_the_slower_of_arithmetic_and_memory_is_the_limit(flops, moved, parallel, what, seconds):
    limit = Limits(MACHINE, 2).of(flops, moved, parallel=parallel)
    assert limit.what == what
    assert limit.seconds == pytest.approx(seconds)


def test_steps_of_a_loop_count_together_and_steering_is_left_out():
    steps = (Call(0, (), label="a"), Call(1, (), label="b"), Jump(0))
    kernels = (KernelCode("k0", 0, parallel=True), KernelCode("k1", 0, parallel=False))
    program = Program("m", (), (), (), (), kernels, steps)

    def profile(scale: int) -> Profile:
        events = (
            Event(0, "a", "k0", 0, 10 * scale, 5, 7),
            Event(1, "b", "k1", 10, 10 + scale, 0, 3),
            Event(1, "b", "k1", 20, 20 + scale, 0, 3),
            Event(2, "jump", "jump", 30, 31),
        )
        return Profile("m", events)

    first, second = step_times(program, [profile(1), profile(100), profile(2)])
    assert (first.label, first.times, first.flops, first.parallel) == ("a", 1, 5, True)
    assert (second.label, second.times, second.moved_bytes, second.parallel) == ("b", 2, 6, False)
    assert first.seconds == pytest.approx(20e-9)  # the median of 10, 20 and 1000
    assert second.seconds == pytest.approx(4e-9)
