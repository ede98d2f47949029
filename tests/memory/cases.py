"""What is run between forbidden pages: the node tests of onnx, random graphs, places from data."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.graphs import RandomGraph, graphs
from tests.memory.altered import altered
from tests.memory.guarded import chosen, guarded, in_pages, say
from tests.memory.places import Places, every_place
from tests.memory.regions import Looped, every_region
from tests.memory.remainders import remainders
from tests.memory.resized import resized
from tests.memory.shapes import MISMATCHED
from tests.memory.told import told
from tests.onnx.conformance import Run, compiled, interpreted, outcome
from tests.onnx.node_cases import node_cases
from tests.onnx.small_models import one_node
from tilewright.errors import TilewrightError
from tilewright.graph import interpret
from tilewright.graph.passes.pipeline import optimise
from tilewright.model.assemble import assemble
from tilewright.model.module import Module, parts_of
from tilewright.target import Target

__all__ = ["KINDS"]


def nodes(pattern: str) -> int:
    """Cases by name: `conv*`, or `*/20` for every twentieth."""
    name, _, step = pattern.partition("/")
    cases = node_cases(name or "*")[:: int(step or 1)]
    native = 0
    for case in cases:
        say(case.name)
        found = outcome(case, _in_pages)
        if found.kind == "failing":  # that is no matter of memory if it fails without guards
            with guarded("none"):
                assert outcome(case, compiled).kind == "failing", f"{case.name}: {found.why}"
        native += found.kind == "native"
    assert not cases or native > len(cases) // 2, f"{native} of {len(cases)} are native"
    return native


def _in_pages(model: Any) -> tuple[Run, Callable[[], list[str]]]:
    run, reasons = compiled(model)
    return lambda values: run([in_pages(v) for v in values]), reasons


def places(pattern: str) -> int:
    """Every operator that computes addresses from data, with indices from everywhere.

    Cases by name: `Gather`, or `/10` for every tenth; so for regions and networks.
    """
    return _placed(every_place(), pattern)


def regions(pattern: str) -> int:
    """Regions, windows, embeddings, caches and loops, with places from everywhere."""
    return _placed(every_region(), pattern)


def _placed(every: Iterable[Places | Looped], pattern: str) -> int:
    runs = 0
    for case in chosen(pattern, [(case, case.name) for case in every]):
        for model, feeds in case.models():
            runs += _same_or_refused(case, model, feeds)
    return runs


def _same_or_refused(case: Places | Looped, model: Any, feeds: dict[str, Any]) -> int:
    """Compiled, a model gives what it means; how many runs of generated code that were."""
    say(case.name)
    values = [in_pages(v) for v in feeds.values()]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that something runs by reference
        try:
            run, reasons = compiled(model)
            found = run(values)
        except TilewrightError:
            if case.may_be_refused:
                return 1
            raise
        if reasons():
            return 0
        if not case.is_defined:
            return 1
        try:
            wanted = interpreted(model)[0](values)
        except Exception:  # the reference implementation has errors of its own
            if case.may_be_refused:
                return 1
            raise
    for a, b in zip(found, wanted, strict=True):
        assert np.shape(a) == np.shape(b), case.name
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5, err_msg=case.name)
    return 1


def shapes(_: str) -> int:
    """Shapes that do not fit together: an error when the model is read, or when it is run."""
    for name, op, arrays, dims, options in MISMATCHED:
        say(name)
        for is_symbolic in (False, True):
            model, feeds = one_node(op, arrays, **options)
            if is_symbolic:
                _name_dimensions(model, dims)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                refused = _refusal(model, feeds)
            assert refused is not None, f"{name}: nothing is wrong with it"
    return 2 * len(MISMATCHED)


def _refusal(model: Any, feeds: dict[str, Any]) -> TilewrightError | None:
    try:
        run, reasons = compiled(model)
        run([in_pages(v) for v in feeds.values()])
    except TilewrightError as refused:
        return refused
    assert not reasons(), reasons()
    return None


def _name_dimensions(model: Any, dims: list[list[Any]]) -> None:
    for info in model.graph.input:
        names = dims[int(info.name.removeprefix("in"))]
        shape = info.type.tensor_type.shape
        for dim, name in zip(shape.dim, names, strict=True):
            if isinstance(name, str):
                dim.dim_param = name


def random_graphs(count: str) -> int:
    """Graphs of convolutions, pools, products, maps and movements, of several threads."""
    runs = itertools.count()

    @settings(
        max_examples=int(count or 20),
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(random=graphs(nodes=8), seed=st.integers(0, 9), threads=st.sampled_from([1, 2]))
    def run(random: RandomGraph, seed: int, threads: int) -> None:
        say(f"graph {next(runs)}\n{random.graph}")
        feeds = {name: in_pages(a) for name, a in random.feeds(seed).items()}
        graph, target = optimise(random.graph), Target.host()
        made = assemble(graph, target, threads)
        module = Module.of(made, parts_of(made, target, {}), threads, graph)
        wanted = interpret(random.graph, feeds)
        for _ in range(2):  # the second one has its plan already
            for a, b in zip(module.run(feeds), wanted, strict=True):
                scale = max(1.0, float(np.abs(b).max(initial=0.0)))
                np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5 * scale)

    run()
    return next(runs)


def networks(pattern: str) -> int:
    """Small whole models of several sizes: pictures, words, a loop with a branch in it."""
    import tilewright as tw
    from tests.unit.model.test_concurrency import MAKERS, feeds_of

    runs = 0
    every = itertools.product(MAKERS, (1, 2), ("default", "strict"))
    for name, threads, accuracy in chosen(pattern, [(case, case[0]) for case in every]):
        say(f"{name} of {threads} threads, {accuracy}")
        module = tw.compile(MAKERS[name](), threads=threads, accuracy=accuracy, cache=False)
        for feeds in _twice(feeds_of(name, np.random.default_rng(3))):
            found = module.run({key: in_pages(a) for key, a in feeds.items()})
            assert all(np.isfinite(a).all() for a in found)
            runs += 1
    return runs


def stray(_: str) -> int:
    """A kernel that reads far behind its input: without guards nobody would know."""
    import tilewright as tw

    a = tw.placeholder("a", (16,), tw.f32)
    kernel = tw.build(tw.func("stray", [a], [tw.compute("b", (16,), lambda i: a[i])]), threads=1)
    whole = in_pages(np.zeros(16, np.float32))
    say("stray access ahead")
    beyond = np.ndarray((16,), np.float32, whole.base, 0)
    kernel(np.lib.stride_tricks.as_strided(beyond[4:], (16,), (4,)))
    return 1


def _twice(every: list[Any]) -> Iterator[Any]:
    yield from every
    yield from every


KINDS: dict[str, Callable[[str], int]] = {
    "nodes": nodes,
    "places": places,
    "regions": regions,
    "remainders": remainders,
    "resized": resized,
    "altered": altered,
    "shapes": shapes,
    "told": told,
    "graphs": random_graphs,
    "networks": networks,
    "stray": stray,
}
