"""A site alone is the kernel that a model has which chose the alternative."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from tests import feature_maps
from tests.unit.layouts.test_sites import Network, residual
from tilewright.graph import Graph
from tilewright.graph.ir import Value
from tilewright.layouts.choose import Choice, choose
from tilewright.layouts.costs import Machine
from tilewright.layouts.forms import FIRST, LAST, Form, blocked
from tilewright.layouts.sites import Alternative, Settings, Site, sites_of
from tilewright.model.kernel_plan import plan_kernels
from tilewright.model.kernels import KernelTask
from tilewright.model.site_kernels import conversion_kernel, kernel_of, kernels_of
from tilewright.model.standalone import standalone
from tilewright.records import workload_key
from tilewright.target import Target
from tilewright.tensor import ir as tir

TARGET = Target.named("x86-64-v3")
SETTINGS = Settings(Machine(TARGET, 2))
THREADS = 8


def joined() -> Graph:
    """Two branches that are concatenated, and one that is added."""
    n = Network()
    first = n.relu(n.conv(n.x, 16))
    whole = n.b.concat([n.conv(first, 16, taps=1), n.conv(first, 16)], 1)
    return n.graph(n.b.map(lambda v, w: v + w, n.conv(whole, 16, stride=1), first))


GRAPHS = {"feature maps": feature_maps.graph, "residual": residual, "joined": joined}


def key_of(task: KernelTask) -> str:
    return workload_key(task.workload(TARGET))


def keys_in(choice: Choice) -> set[str]:
    planned = plan_kernels(choice.graph, THREADS, choice.groups)
    return {key_of(task) for task in planned.kernels}


def forced(graph: Graph, seed: int) -> Choice:
    """The choice in which each site has an alternative at random, as if it had been measured."""
    rng = random.Random(seed)
    found = {}
    for site in sites_of(graph, SETTINGS):
        best = rng.choice(site.alternatives)
        for a in site.alternatives:
            found[site.workload, a.key(site.results[0].rank)] = replace(
                a, cycles=0.0 if a is best else 1e12
            )
    return choose(graph, replace(SETTINGS, measured=found))


def sites_in(graph: Graph, choice: Choice) -> Iterator[tuple[Site, Alternative, dict[Value, Form]]]:
    """Sites that no conversion joined, and the forms in which they find their data."""
    forms = {value: a.result for site, a in choice.sites for value in site.results}
    converted = {conversion.value for conversion in choice.conversions}
    for site, alternative in choice.sites:
        read = [v for v in site.reads if v not in graph.constants]
        if not converted & {v.name for v in (*read, *site.results)}:
            yield site, alternative, {v: forms.get(v, LAST) for v in read}


@pytest.mark.parametrize("layouts", ["auto", "nhwc", "nchw", "nchw8c", "nchw4c", "nhwc/4x8"])
@pytest.mark.parametrize("make", GRAPHS.values(), ids=GRAPHS)
def test_kernels_are_those_of_the_model(make, layouts):
    graph = make()
    choice = choose(graph, replace(SETTINGS, fixed=feature_maps.settings(layouts).fixed))
    there, found = keys_in(choice), 0
    for site, alternative, given in sites_in(graph, choice):
        for task in kernels_of(graph, site, alternative, THREADS, given):
            assert key_of(task) in there, site.workload
            found += 1
    assert found >= 2


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("make", GRAPHS.values(), ids=GRAPHS)
def test_kernels_of_forced_choices_are_those_of_the_model(make, seed):
    graph = make()
    choice = forced(graph, seed)
    there = keys_in(choice)
    for site, alternative, given in sites_in(graph, choice):
        for task in kernels_of(graph, site, alternative, THREADS, given):
            assert key_of(task) in there, (site.workload, alternative.key(4))


def test_data_have_the_zeros_that_an_alternative_wants():
    graph = residual()
    site = next(s for s in sites_of(graph, SETTINGS) if s.conv is not None)
    (x,) = site.data
    bordered = next(a for a in site.alternatives if any(map(any, a.source.halo)))
    task = kernel_of(graph, site, bordered, THREADS)
    assert task is not None
    assert task.params[0].layout == bordered.source.steps(4)
    without = kernel_of(graph, site, bordered, THREADS, {x: bordered.source.plain})
    assert without is not None
    assert key_of(without) != key_of(task)


def test_what_moves_nothing_has_no_kernel():
    graph = feature_maps.graph()
    choice = choose(graph, replace(SETTINGS, fixed=FIRST))
    (enters,) = [
        (site, a) for site, a in choice.sites if [n.op.name for n in site.nodes] == ["transpose"]
    ][:1]
    assert kernel_of(graph, *enters, THREADS) is None


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (LAST, FIRST),
        (FIRST, blocked(8)),
        (blocked(16), blocked(4)),
        (LAST, Form(halo=((1, 2),) * 2)),
    ],
    ids=str,
)
def test_a_conversion_alone_is_the_copy(before, after, rng):
    graph = residual()
    (x,) = next(s for s in sites_of(graph, SETTINGS) if s.conv is not None).data
    task = conversion_kernel(x, before, after, THREADS)
    assert task is not None
    image = rng.standard_normal([tir.int_value(d) for d in x.shape]).astype(np.float32)
    kernel = standalone(task, Target.host())
    (found,) = kernel.run({"p0": packed(image, before)}).values()
    np.testing.assert_array_equal(found, packed(image, after).reshape(found.shape))


def packed(array: np.ndarray, form: Form) -> np.ndarray:
    for step in form.steps(array.ndim):
        array = step.pack(array)
    return np.ascontiguousarray(array)


def test_a_value_that_stays_as_it_is_has_no_conversion():
    (x,) = residual().inputs
    assert conversion_kernel(x, FIRST, FIRST) is None
