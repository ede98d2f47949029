"""Random graphs compiled with results in place of inputs and without compute the same, bit by bit.

Where every buffer is, is looked at as well: of two that share memory one is dead before the other
is written, or a kernel has shown that it may write one over the other.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given, note
from hypothesis import strategies as st

from tests.examples import examples
from tests.graphs import graphs
from tests.levels import targets
from tilewright.dtypes import f32
from tilewright.graph import Builder, Value
from tilewright.graph.passes.pipeline import optimise
from tilewright.model.assemble import Assembled, assemble
from tilewright.model.kernels import KernelTask
from tilewright.model.module import Module, parts_of
from tilewright.pipeline import Compiled
from tilewright.runtime.program import Call, Place
from tilewright.tensor import ir as tir
from tilewright.tensor.build import call
from tilewright.tensor.visit import walk_stmts


@dataclass
class Watched:
    """A store of kernels that keeps nothing but what they are."""

    kernels: dict[str, Compiled] = field(default_factory=dict)

    def find(self, task: KernelTask) -> Compiled | None:
        return self.kernels.get(task.key)

    def keep(self, task: KernelTask, kernel: Compiled) -> None:
        self.kernels[task.key] = kernel

    def tidy(self) -> None:
        """There is no bound."""


@dataclass(frozen=True)
class Use:
    """A buffer as a step uses it: (address, bytes), and which of them are results."""

    reads: dict[int, int]
    writes: dict[int, int]


def uses_of(made: Assembled) -> list[Use]:
    """Buffers of the calls of a program without jumps, by the number of their parameter."""
    calls = [step for step in made.program.steps if isinstance(step, Call)]
    assert len(calls) == len(made.program.steps) == len(made.tasks)
    found = []
    for step, task in zip(calls, made.tasks, strict=True):
        own = {v for v in task.params if v in _results(task)}
        reads = {k: b for k, b in enumerate(step.buffers) if task.params[k] not in own}
        writes = {k: b for k, b in enumerate(step.buffers) if task.params[k] in own}
        found.append(Use(reads, writes))
    return found


def _results(task: KernelTask) -> set[Value]:
    written = {r.buffer for r in _regions(task.program)}
    return {v for v, p in zip(task.params, task.program.params, strict=True) if p in written}


def _regions(program: tir.Func) -> list[tir.Region]:
    return [r for s in walk_stmts(program) if isinstance(s, tir.Block) for r in s.writes]


def check_places(made: Assembled, kernels: dict[str, Compiled], module: Module) -> int:
    """No two live buffers overlap, but for the pairs that kernels allow; how many those are."""
    places = module.executable._places()
    uses = uses_of(made)
    first, last = {}, {}
    for at, use in enumerate(uses):
        for buffer in (*use.reads.values(), *use.writes.values()):
            first.setdefault(buffer, at)
            last[buffer] = at
    temporary = {
        b
        for b in first
        if made.program.buffers[b].place in (Place.ARENA, Place.PART) and places[b][0]
    }
    allowed = 0
    for a in temporary:
        for b in temporary - {a}:
            if first[a] > first[b] or not _overlap(places[a], places[b]):
                continue
            if last[a] < first[b]:
                continue
            assert last[a] == first[b], (made.program.buffers[a], made.program.buffers[b])
            use, pairs = uses[last[a]], kernels[made.tasks[last[a]].key].interface.in_place
            sources = [k for k, buffer in use.reads.items() if buffer == a]
            results = [k for k, buffer in use.writes.items() if buffer == b]
            assert sources
            assert places[a] == places[b]
            assert all((x, y) in pairs for x in sources for y in results[-1:])
            allowed += 1
    return allowed


def _overlap(a: tuple[int, int], b: tuple[int, int]) -> bool:
    return a[0] < b[0] + b[1] and b[0] < a[0] + a[1]


@pytest.mark.parametrize("threads", [1, 2])
@given(random=graphs(nodes=9), seed=st.integers(0, 9), target=targets())
@examples(8)
def test_results_are_the_same_in_place(random, seed, target, threads):
    graph, feeds, store = optimise(random.graph), random.feeds(seed), Watched()
    note(str(graph))
    found = []
    for in_place in (True, False):
        made = assemble(graph, target, threads, store, in_place=in_place)
        module = Module.of(made, parts_of(made, target, {}), threads, graph)
        found.append(module.run(feeds))
        steps = made.program.steps  # sizes that may be zero make jumps, whose ways are not followed
        is_straight = bool(steps) and all(isinstance(step, Call) for step in steps)
        count = check_places(made, store.kernels, module) if is_straight else 0
        assert in_place or not count
    for a, b in zip(*found, strict=True):
        assert np.array_equal(a, b, equal_nan=True)


@st.composite
def towers(draw: st.DrawFn) -> tuple[Builder, Value, list[Value]]:
    """Sums with earlier values behind products: many of them may take an input's place."""
    b, n = Builder("tower"), tir.Var("n")
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    width = draw(st.sampled_from([4, 19, 24]))
    values = [b.input("x", f32, (n, width))]

    def product(value: Value) -> Value:
        array = rng.uniform(-0.3, 0.3, (width, width)).astype(np.float32)
        return b.matmul(value, b.constant(array))

    for _ in range(draw(st.integers(2, 7))):
        left = draw(st.sampled_from(values[-3:]))
        right = draw(st.sampled_from(values[-3:]))
        made = b.map(tir.Add, product(left), right)
        if draw(st.booleans()):
            made = b.map(lambda v: call("tanh", v), made)
        if draw(st.booleans()):
            made = b.map(lambda u, v: u * 0.5 - v, made, draw(st.sampled_from(values[-2:])))
        values.append(made)
    return b, values[-1], draw(st.lists(st.sampled_from(values[1:]), max_size=1))


@pytest.mark.parametrize("threads", [1, 2])
@given(tower=towers(), rows=st.lists(st.integers(0, 70), min_size=1, max_size=3), target=targets())
@examples(8)
def test_towers_of_sums(tower, rows, target, threads):
    b, top, more = tower
    graph, store = b.graph([top, *(v for v in more if v is not top)]), Watched()
    note(str(graph))
    modules = []
    for in_place in (True, False):
        made = assemble(graph, target, threads, store, in_place=in_place)
        modules.append((made, Module.of(made, parts_of(made, target, {}), threads, graph)))
    width = graph.inputs[0].shape[1]
    for count in rows:
        rng = np.random.default_rng(count)
        feeds = {"x": rng.standard_normal((count, tir.int_value(width))).astype(np.float32)}
        found = [module.run(feeds) for _, module in modules]
        for a, c in zip(*found, strict=True):
            np.testing.assert_array_equal(a, c)
        for made, module in modules:
            check_places(made, store.kernels, module)
