"""Memory that probes stream through, and the shapes of products for every kind of machine."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice

import pytest

from tilewright.calibration import streams
from tilewright.calibration.products import panel_tile, refilled, streamed, updated
from tilewright.calibration.streams import Memory
from tilewright.target import Target, names


def test_nobody_reads_what_another_has_just_read():
    memory = Memory(1 << 20)
    size, other = 64 << 10, 24 << 10
    large = memory.pieces(size, range((1 << 20) // size))
    small = memory.pieces(other, range((1 << 20) // other))
    spans = []
    for _ in range(30):
        spans += [(n * size, (n + 1) * size) for n in islice(large, 2)]
        spans += [(n * other, (n + 1) * other) for n in islice(small, 3)]
    for number, (start, end) in enumerate(spans):
        recent = spans[max(0, number - 8) : number]
        assert all(end <= s or e <= start for s, e in recent)
    assert all(end <= 1 << 20 for _, end in spans)


def test_memory_is_aligned_and_near_memory_is_apart():
    memory = Memory(1 << 20)
    near = memory.near(8192)
    assert memory.bytes.ctypes.data % 4096 == near.ctypes.data % 4096 == 0
    assert memory.near(4096).ctypes.data == near.ctypes.data
    first = memory.bytes.ctypes.data
    assert not first <= near.ctypes.data < first + (1 << 20)


def test_many_cores_do_not_need_much_memory(monkeypatch):
    monkeypatch.setattr(streams, "usable_cpus", lambda: 256)
    target = replace(Target.host(), cores=256)
    memory = streams.Memory(64 << 20)
    probes = dict(streams.streams(target, memory))
    assert {"L1 one", "L1 all", "DRAM one", "DRAM all"} <= probes.keys()
    assert probes["DRAM all"].units <= len(memory.bytes) // 4


@pytest.mark.parametrize("name", names()[1:])
def test_products_fit_every_machine(name):
    target = Target.named(name)
    rows, vectors = panel_tile(target)
    assert rows >= 1
    assert rows * vectors + vectors + 1 <= target.vector_registers
    first, second = target.cache(1).size_bytes, target.cache(2).share_bytes
    for shape in (streamed(target), refilled(target)):
        rows, columns, steps = shape
        assert 4 * (rows + columns) * steps <= first
    rows, columns, tiles = updated(target)
    assert 4 * rows * columns >= 2 * second
    assert tiles >= rows // panel_tile(target)[0]
