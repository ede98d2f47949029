"""Sessions under many threads: what a run gives does not depend on what else runs, to the last bit.

Pictures through convolutions with sums across them, words through attention, and a loop with a
branch in it; each with several sizes, so that calls under way differ in their plans.
"""

from __future__ import annotations

import functools
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import tilewright as tw
from examples.models import Writer, transformer
from tests.unit.model.test_control_flow import FLOAT, INT64, body, graph, info, model, node

CALLERS = 8
COMPILERS = 4
ROUNDS = 3

Feeds = dict[str, np.ndarray]


def pictures() -> onnx.ModelProto:
    """A small ResNet: two blocks with sums across them, the second one at half the size."""
    w = Writer(1)

    def conv(x: str, channels: int, filters: int, kernel: int, stride: int = 1) -> str:
        weights = w.normal(filters, channels, kernel, kernel, scale=0.2)
        pads = [kernel // 2] * 4
        return w.add("Conv", x, weights, strides=[stride, stride], pads=pads)

    x = w.add("Relu", conv("x", 3, 16, 3))
    y = conv(w.add("Relu", conv(x, 16, 16, 3)), 16, 16, 3)
    x = w.add("Relu", w.add("Add", y, x))
    y = conv(w.add("Relu", conv(x, 16, 24, 3, 2)), 24, 24, 3)
    x = w.add("Relu", w.add("Add", y, conv(x, 16, 24, 1, 2)))
    x = w.add("Flatten", w.add("GlobalAveragePool", x))
    y = w.add("Gemm", x, w.normal(24, 10, scale=0.2))
    size = helper.make_tensor_value_info
    inputs = [size("x", TensorProto.FLOAT, ["batch", 3, "height", 32])]
    return w.model("pictures", inputs, [size(y, TensorProto.FLOAT, ["batch", 10])])


def words() -> onnx.ModelProto:
    return transformer(layers=2, width=32, heads=2, words=50)


def steps() -> onnx.ModelProto:
    """v ← v·W + v or v - x, as the number of the step is even or not; all of them are collected."""
    even = graph([node("MatMul", "v W", "p"), node("Add", "p v", "a")], [], "a")
    odd = graph([node("Sub", "v x", "b")], [], "b")
    inside = [
        node("Mod", "i two", "rest"),
        node("Equal", "rest zero", "is_even"),
        node("If", "is_even", "next", then_branch=even, else_branch=odd),
        node("Tanh", "next", "out"),
        node("Identity", "cond", "on"),
    ]
    loop = body(inside, [info("v", FLOAT, ["n", 40])], "on out next")
    weights = {
        "W": np.random.default_rng(2).uniform(-0.2, 0.2, (40, 40)).astype(np.float32),
        "two": np.array(2),
        "zero": np.array(0),
        "yes": np.array(True),
    }
    nodes = [node("Loop", "trips yes x", "last all", body=loop)]
    inputs = [info("x", FLOAT, ["n", 40]), info("trips", INT64)]
    return model(nodes, inputs, "last all", weights)


def feeds_of(name: str, rng: np.random.Generator) -> list[Feeds]:
    """Inputs of several sizes."""
    if name == "pictures":
        shapes = [(1, 3, 32, 32), (3, 3, 32, 32), (2, 3, 17, 32)]
        return [{"x": rng.standard_normal(s).astype(np.float32)} for s in shapes]
    if name == "words":
        return [{"ids": rng.integers(0, 50, shape)} for shape in ((1, 5), (3, 16), (2, 40))]
    sizes = [(1, 4), (33, 3), (70, 0)]
    return [
        {"x": rng.standard_normal((n, 40)).astype(np.float32), "trips": np.array(trips)}
        for n, trips in sizes
    ]


MAKERS: dict[str, Callable[[], onnx.ModelProto]] = {
    "pictures": pictures,
    "words": words,
    "steps": steps,
}


def session_of(name: str, threads: int) -> tw.InferenceSession:
    options = tw.SessionOptions()
    options.intra_op_num_threads = threads
    options.add_session_config_entry("tilewright.cache", "0")
    return tw.InferenceSession(MAKERS[name]().SerializeToString(), options)


@functools.cache
def kept_session(name: str, threads: int) -> tw.InferenceSession:
    """One for all tests that only run it."""
    return session_of(name, threads)


def together(work: Callable[[int], None], count: int = CALLERS) -> None:
    """Callers that begin at the same time."""
    begin = Barrier(count)

    def wait_and_work(caller: int) -> None:
        begin.wait()
        work(caller)

    with ThreadPoolExecutor(count) as callers:
        list(callers.map(wait_and_work, range(count)))


def assert_same(found: list[np.ndarray], wanted: list[np.ndarray]) -> None:
    for array, expected in zip(found, wanted, strict=True):
        assert array.tobytes() == expected.tobytes()
        assert array.shape == expected.shape


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("name", MAKERS)
def test_one_session_and_many_callers(name, threads):
    session = kept_session(name, threads)
    every = feeds_of(name, np.random.default_rng(5))
    wanted = [session.run(None, feeds) for feeds in every]
    assert all(np.isfinite(array).all() for arrays in wanted for array in arrays)

    def work(caller: int) -> None:
        rng = np.random.default_rng(caller)
        for which in rng.integers(0, len(every), ROUNDS):
            assert_same(session.run(None, every[which]), wanted[which])

    together(work)


@pytest.mark.parametrize("threads", [pytest.param(1, marks=pytest.mark.slow), 2])
def test_many_sessions_at_once(threads):
    """Also two of one model, which share nothing but the pool of threads."""
    names = [*MAKERS, "pictures"]
    sessions = [*(kept_session(name, threads) for name in MAKERS), session_of("pictures", threads)]
    every = [feeds_of(name, np.random.default_rng(6)) for name in names]
    wanted = [
        [session.run(None, f) for f in feeds]
        for session, feeds in zip(sessions, every, strict=True)
    ]
    for found, expected in zip(wanted[0], wanted[-1], strict=True):
        assert_same(found, expected)

    def work(caller: int) -> None:
        rng = np.random.default_rng(caller)
        for _ in range(ROUNDS):
            model_number, which = rng.integers(len(sessions)), rng.integers(3)
            found = sessions[model_number].run(None, every[model_number][which])
            assert_same(found, wanted[model_number][which])

    together(work)


COMPILED_AT_ONCE = """\
import sys
from tests.unit.model import test_concurrency as here

sys.setswitchinterval(1e-4)
names, sessions = ["words", "steps"], {}
here.together(lambda k: sessions.update({k: here.session_of(names[k % 2], 1)}), here.COMPILERS)
alone = [here.session_of(name, 1) for name in names]
for k, session in sessions.items():
    for feeds in here.feeds_of(names[k % 2], here.np.random.default_rng(8)):
        here.assert_same(session.run(None, feeds), alone[k % 2].run(None, feeds))
print(len(sessions), "agree")
"""


def test_many_threads_compile_at_once():
    """In a process where nothing has been compiled yet, and threads interrupt each other often."""
    command = [sys.executable, "-c", COMPILED_AT_ONCE]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout == f"{COMPILERS} agree\n"


def test_counts_of_threads_agree():
    """The same model for one thread and for two, run side by side."""
    sessions = [kept_session("words", threads) for threads in (1, 2)]
    every = feeds_of("words", np.random.default_rng(7))
    wanted = [[session.run(None, feeds) for feeds in every] for session in sessions]
    for one, two in zip(*wanted, strict=True):
        np.testing.assert_allclose(one[0], two[0], rtol=1e-4, atol=1e-5)

    def work(caller: int) -> None:
        for k, feeds in enumerate(every * 2):
            which = (caller + k) % 2
            assert_same(sessions[which].run(None, feeds), wanted[which][k % len(every)])

    together(work)
