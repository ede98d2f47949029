"""Where schedules come from: the draft, a trace, nothing, or somebody who knows better."""

from __future__ import annotations

import json
from dataclasses import asdict, replace

import numpy as np
import pytest

from tests.background import wait_for_writers
from tests.expect import raises_code
from tests.small import expected, rows, two_outputs
from tilewright.build import build
from tilewright.model.compiler import Compiling, compile_parts
from tilewright.model.kernel_store import KernelStore
from tilewright.model.kernels import KernelTask, compile_task
from tilewright.model.sources import Sources
from tilewright.pipeline import Pipeline
from tilewright.runtime.cache import Cache, default_caches
from tilewright.schedule import Schedule, Trace
from tilewright.schedule.draft import draft
from tilewright.schedule.recipes.contraction.space import ContractionPoint
from tilewright.schedule.recipes.scattered import ScatteredPoint
from tilewright.schedule.source import (
    DRAFT,
    POINTS_FORMAT,
    Draft,
    Fixed,
    Points,
    Unscheduled,
    Workload,
    points_from,
    source_of,
)
from tilewright.target import Target
from tilewright.tensor import library
from tilewright.tensor.regions import sizes
from tilewright.tensor.structural import structural_hash

HOST = Target.host()
PRODUCT = library.matmul(32, 48, 16)


class Records:
    """A source that knows the trace of one program, and drafts the others."""

    def __init__(self, known: dict[str, Trace]) -> None:
        self.known, self.asked = known, []

    @property
    def digest(self) -> str:
        return "+".join(self.digest_of_key(key) for key in sorted(self.known))

    def digest_of_key(self, key: str) -> str:
        return Fixed(self.known[key]).digest if key in self.known else ""

    def digest_of(self, workload: Workload) -> str:
        return self.digest_of_key(structural_hash(workload.program))

    def schedule(self, workload: Workload) -> Schedule:
        self.asked.append(workload)
        trace = self.known.get(structural_hash(workload.program))
        return (DRAFT if trace is None else Fixed(trace)).schedule(workload)


def reordered() -> Trace:
    schedule = Schedule(PRODUCT)
    i, j, k = schedule.loops("C")
    schedule.reorder(i, k, j)
    return schedule.trace


def task_of(program=PRODUCT) -> KernelTask:
    return KernelTask(program, (), frozenset(), sizes(program), 1, structural_hash(program))


def test_the_draft_is_the_analytic_one():
    workload = Workload(PRODUCT, HOST, 2, frozenset({"B"}))
    assert DRAFT.schedule(workload).trace == draft(PRODUCT, HOST, 2, {"B"}).trace


def test_words_traces_and_sources_are_sources():
    trace = reordered()
    assert source_of("draft") is DRAFT
    assert source_of("none").schedule(Workload(PRODUCT, HOST)).trace == Trace()
    assert source_of(trace) == Fixed(trace)
    records = Records({})
    assert source_of(records) is records


@pytest.mark.parametrize("wrong", ["best", None, 3, Draft, "x" * 100], ids=str)
def test_source_rejects_anything_else(wrong):
    with raises_code("K003"):
        source_of(wrong)


def test_digests_tell_sources_apart():
    workload = Workload(PRODUCT, HOST)
    found = [Draft(), Unscheduled(), Fixed(Trace()), Fixed(reordered())]
    assert len({source.digest for source in found}) == len(found)
    assert all(source.digest_of(workload) == source.digest for source in found)
    assert DRAFT.digest == "", "what the compiler decides alone is in every key already"


POINT = ContractionPoint(6, 2, 8, 3, 16, 0)


def test_points_go_to_json_and_back():
    points = Points({"C": POINT, "pool": ScatteredPoint(3)})
    assert Points.from_json(points.to_json()) == points
    assert points.digest != Points({"C": replace(POINT, tile_rows=4)}).digest
    assert source_of(points) is points


@pytest.mark.parametrize(
    "points",
    [
        ["contraction.space.ContractionPoint", {"tile_rows": 6}],
        ["contraction.space.ContractionPoint", {**asdict(POINT), "lanes": "8"}],
        ["contraction.space.lru_cache", {}],
        ["nowhere.Point", {}],
        ["contraction.space.ContractionPoint"],
        {},
    ],
    ids=str,
)
def test_points_reject_anything_else(points):
    text = json.dumps({"format": POINTS_FORMAT, "points": {"C": points}})
    with raises_code("S006"):
        Points.from_json(text)


def test_points_reach_the_draft(monkeypatch):
    """Of the source, of the task, or of both, on whatever way a kernel is compiled."""
    seen = []

    def watched(*args):
        seen.append(args[-1])
        return draft(*args)

    monkeypatch.setattr("tilewright.schedule.source.draft", watched)
    source, task = Points({"C": POINT}), task_of()
    Pipeline(HOST, trace=source).run(PRODUCT, until="scheduled")
    compile_task(task.with_points({"D": POINT}), HOST)
    compile_task(task.with_points({"D": POINT}), HOST, source)
    assert seen == [{"C": POINT}, {"D": POINT}, {"C": POINT, "D": POINT}]


def test_points_are_part_of_the_key_of_a_kernel():
    task = task_of()
    given = task.with_points({"C": POINT})
    assert len({task.key, given.key, task.with_points({"D": POINT}).key}) == 3
    assert given.with_points({"C": POINT}).key == given.key
    workload = given.workload(HOST)
    assert points_from(DRAFT, workload) == {"C": POINT}
    assert points_from(Points({"D": POINT}), workload) == {"C": POINT, "D": POINT}
    assert points_from(Unscheduled(), workload) is None


def test_build_asks_a_source(rng):
    records = Records({structural_hash(PRODUCT): reordered()})
    kernel = build(PRODUCT, threads=1, trace=records)
    assert kernel.report.trace == reordered()
    assert [workload.program for workload in records.asked] == [PRODUCT]
    a, b = (rng.standard_normal(shape, np.float32) for shape in ((32, 16), (16, 48)))
    np.testing.assert_allclose(kernel(a, b), a @ b, rtol=1e-4, atol=1e-5)


def test_kernels_of_models_ask_a_source():
    fixed, drafted = (compile_task(task_of(), HOST, s) for s in (Fixed(reordered()), DRAFT))
    assert fixed.code != drafted.code
    assert compile_task(task_of(), HOST) == drafted
    text = Pipeline(HOST, trace=reordered()).run(PRODUCT, until="scheduled").text
    assert text == Pipeline(HOST, trace=Fixed(reordered())).run(PRODUCT, until="scheduled").text


def test_a_record_changes_the_key_of_its_kernel_alone(tmp_path):
    cache = Cache(tmp_path, 1 << 20, ".kernel")
    other = library.matmul(32, 48, 17)
    drafted = KernelStore(cache, HOST)
    for program in (PRODUCT, other):
        drafted.keep(task_of(program), compile_task(task_of(program), HOST))
    records = Records({structural_hash(PRODUCT): reordered()})
    store = KernelStore(cache, HOST, records)
    assert store.find(task_of()) is None
    assert store.find(task_of(other)) == drafted.find(task_of(other))
    store.keep(task_of(), compile_task(task_of(), HOST, records))
    assert store.find(task_of()).code != drafted.find(task_of()).code


def test_a_whole_model_gets_its_schedules_from_a_source():
    source = Records({})
    made = compile_parts(two_outputs(), HOST, 1, None, lambda _: None, schedules=source)
    assert {w.threads for w in source.asked} == {1}
    assert len(source.asked) == len({task.key for task in made.made.tasks})
    scores, _ = made.module().run({"x": rows(3)})
    np.testing.assert_allclose(scores, expected(rows(3))[0], rtol=1e-5, atol=1e-6)


def test_what_a_source_knows_is_part_of_the_key_of_a_model(tmp_path):
    """A module that was compiled without records is not taken for one with."""
    model, caches = two_outputs(), default_caches(tmp_path)
    about = HOST, 1, "default", "auto", caches, Sources.of(model, caches)

    def is_compiled(how: Compiling) -> bool:
        told: list[str] = []
        how.module(model, lambda progress: told.append(progress.stage))
        wait_for_writers()
        return bool(told)

    assert is_compiled(Compiling(*about))
    assert not is_compiled(Compiling(*about)), "it is found"
    assert is_compiled(Compiling(*about, schedules=Unscheduled())), "it is another one"
    assert not is_compiled(Compiling(*about, schedules=Unscheduled()))
