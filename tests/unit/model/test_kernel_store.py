"""Kernels that are kept come back as they were; changed ones do not come back at all."""

from __future__ import annotations

import dataclasses

import pytest

from tests.unit.runtime.test_cache import names
from tilewright.model.kernel_store import KernelStore, decode, encode
from tilewright.model.kernels import KernelTask, compile_task
from tilewright.runtime import keys
from tilewright.runtime.cache import Cache
from tilewright.target import Target
from tilewright.tensor import library
from tilewright.tensor.build import size
from tilewright.tensor.packing import Packing
from tilewright.tensor.regions import sizes
from tilewright.tensor.structural import structural_hash

HOST = Target.host()


def task_of(program, constants=(), threads=2):
    key = f"{structural_hash(program)}-{threads}-{','.join(constants)}"
    return KernelTask(program, (), frozenset(constants), sizes(program), threads, key)


TASKS = {
    "matmul": task_of(library.matmul(96, 128, 64), ("B",)),
    "rows": task_of(library.matmul(size("n"), 128, 64, bias=True), ("B", "bias")),
    "conv": task_of(library.conv2d(1, 16, 12, 12, 32, 3), ("W",)),
    "sum": task_of(library.add(96, 128), threads=1),
    "softmax": task_of(library.softmax(size("n"), size("m")), threads=1),
}


@pytest.fixture
def store(tmp_path):
    return KernelStore(Cache(tmp_path / "kernels", 1 << 20, ".kernel"), HOST)


@pytest.fixture(scope="module")
def kernels():
    return {name: compile_task(task, HOST) for name, task in TASKS.items()}


@pytest.mark.parametrize("name", TASKS)
def test_kernels_come_back_as_they_were(name, store, kernels):
    task, kernel = TASKS[name], kernels[name]
    assert store.find(task) is None
    store.keep(task, kernel)
    assert store.find(task) == kernel
    assert kernel.code


def test_layouts_come_back(kernels):
    packings = kernels["matmul"].interface.packings
    assert packings, "the draft packs a constant operand"
    assert decode(encode(kernels["matmul"])).interface.packings == packings


def test_what_may_be_overwritten_comes_back(kernels):
    interface = kernels["sum"].interface
    assert interface.in_place == ((0, 2), (1, 2))
    assert decode(encode(kernels["sum"])).interface.in_place == interface.in_place
    assert kernels["softmax"].interface.in_place == ()


def test_layout_of_symbolic_sizes_is_not_kept(store, kernels):
    interface = kernels["matmul"].interface
    ((number, packing),) = interface.packings.items()
    symbolic = Packing(packing.steps, (size("n"), 64), packing.physical_shape)
    params = list(interface.params)
    stored = dataclasses.replace(params[number].packing, packing=symbolic)
    params[number] = dataclasses.replace(params[number], packing=stored)
    changed = dataclasses.replace(interface, params=tuple(params))
    kernel = dataclasses.replace(kernels["matmul"], interface=changed)
    assert encode(kernel) is None
    store.keep(TASKS["matmul"], kernel)
    assert store.find(TASKS["matmul"]) is None


def test_other_tasks_targets_threads_and_compilers_find_nothing(store, kernels, monkeypatch):
    task = TASKS["matmul"]
    store.keep(task, kernels["matmul"])
    assert store.find(task_of(task.program, ("A",))) is None
    assert store.find(task_of(task.program, ("B",), threads=1)) is None
    assert store.find(task_of(library.matmul(96, 128, 65), ("B",))) is None
    assert KernelStore(store.cache, Target.named("x86-64-v2")).find(task) is None
    monkeypatch.setattr(keys, "compiler_state", lambda: "changed")
    assert store.find(task) is None


def test_damaged_kernels_are_not_found(store, kernels, rng):
    task, data = TASKS["softmax"], encode(kernels["softmax"])
    store.keep(task, kernels["softmax"])
    (entry,) = store.cache.entries()
    for _ in range(200):
        changed = bytearray(data[: rng.integers(len(data))] if rng.random() < 0.3 else data)
        if changed:
            changed[rng.integers(len(changed))] ^= 1 << rng.integers(8)
        entry.path.write_bytes(changed)
        entry.path.chmod(0o600)
        assert store.find(task) is None
        assert names(store.cache) == []


def test_tidy_keeps_the_limit(store, kernels):
    for name, task in TASKS.items():
        store.keep(task, kernels[name])
    assert len(store.cache.entries()) == len(TASKS)
    store.cache.limit = max(entry.size_bytes for entry in store.cache.entries())
    store.tidy()
    assert 1 <= len(store.cache.entries()) < len(TASKS)
