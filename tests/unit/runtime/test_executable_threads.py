"""Models under several Python threads, in child processes, and what profiles tell."""

from __future__ import annotations

import ctypes
import itertools
import json
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from tests.expect import raises_code
from tests.models import Code, Draft, product
from tilewright.dtypes import boolean, f32, i64
from tilewright.runtime.executable import Executable
from tilewright.runtime.program import Call, Host, Jump, Operand, Place
from tilewright.runtime.sizes import constant


def chain(entry, length: int, name: str = "model") -> Draft:
    d = Draft(name)
    d.input("x", ["n"])
    d.output("y", ["n"])
    d.kernel("add", entry("add"))
    d.kernel("alone", entry("add"), parallel=False)
    names = ["x", *(f"t{i}" for i in range(length - 1)), "y"]
    for i in range(length - 1):
        d.temporary(f"t{i}", ["n"], i, i + 1)
    for i, (source, target) in enumerate(itertools.pairwise(names)):
        d.call("alone" if i % 3 == 2 else "add", f"{source} {source} {target}", "n")
    return d


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_calls_from_several_threads(entry, threads):
    """Two models at once, each called with sizes of its own by everybody."""
    models = [Executable(chain(entry, n).program(), Code(), threads=threads) for n in (5, 8)]

    def work(seed: int) -> None:
        rng = np.random.default_rng(seed)
        for _ in range(100):
            which, n = int(rng.integers(2)), int(rng.integers(1, 300))
            x = rng.integers(0, 100, n).astype(np.float32)
            (y,) = models[which].run({"x": x})
            np.testing.assert_array_equal(y, x * (32, 256)[which])

    with ThreadPoolExecutor(6) as workers:
        list(workers.map(work, range(6)))
    assert all(1 <= model.memory().frames <= 6 for model in models)


def waiting_model(entry) -> Executable:
    d = Draft()
    d.input("flag", [1], i64)
    d.output("seen", [1], i64)
    d.kernel("await_flag", entry("await_flag"), parallel=False)
    d.call("await_flag", "flag seen")
    return Executable(d.program(), Code(), threads=1)


def test_gil_is_free_while_a_model_runs(entry):
    model, flag = waiting_model(entry), np.zeros(1, np.int64)
    with ThreadPoolExecutor(1) as worker:
        future = worker.submit(model.run, {"flag": flag})
        time.sleep(0.01)
        assert model.memory().frames <= 1
        flag[0] = 5
        assert future.result()[0] == [5]


def test_frames_are_kept_up_to_a_number(entry):
    model, flag = waiting_model(entry), np.zeros(1, np.int64)
    with ThreadPoolExecutor(24) as workers:
        futures = [workers.submit(model.run, {"flag": flag}) for _ in range(24)]
        while model.memory().frames < 24:
            time.sleep(0.001)
        flag[0] = 1
        assert all(future.result()[0] == [1] for future in futures)
    assert model.memory().frames == 16


def test_memory_of_idle_frames_can_be_freed(entry):
    model = Executable(chain(entry, 6).program(), Code(), threads=1)
    x = np.ones(1000, np.float32)
    model.run({"x": x})
    assert model.memory().arena_bytes >= 8000
    model.trim()
    assert model.memory().frames == model.memory().arena_bytes == 0
    assert (model.run({"x": x})[0] == 64).all()


def test_nested_call_is_refused(entry):
    """A kernel that calls back into Python cannot start another model on the same thread."""
    inner = Executable(chain(entry, 2, "inner").program(), Code(), threads=1)
    caught = []

    @ctypes.CFUNCTYPE(None)
    def call_inner() -> None:
        with raises_code("C015", text="`inner`") as error:
            inner.run({"x": np.ones(3, np.float32)})
        caught.append(error)

    d = Draft()
    d.input("function", [1], i64)
    d.output("y", [1], i64, of="function")
    d.kernel("call_back", entry("call_back"), parallel=False)
    d.call("call_back", "function")
    address = ctypes.cast(call_inner, ctypes.c_void_p).value
    Executable(d.program(), Code(), threads=1).run({"function": np.array([address])})
    assert len(caught) == 1


def test_child_process_runs_the_models_of_its_parent(entry):
    model = Executable(chain(entry, 6).program(), Code(), threads=2)
    x = np.ones(100, np.float32)
    model.run({"x": x})
    child = os.fork()
    if child == 0:
        good = all((model.run({"x": x})[0] == 64).all() for _ in range(20))
        os._exit(0 if good else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert (model.run({"x": x})[0] == 64).all()


def test_model_ends_with_its_last_user(entry):
    model = Executable(chain(entry, 6).program(), Code(), threads=2)
    results: list[np.ndarray] = []
    runner = model.run
    del model
    thread = threading.Thread(target=lambda: results.extend(runner({"x": np.ones(9, np.float32)})))
    thread.start()
    thread.join()
    assert results[0].tolist() == [64] * 9


@pytest.mark.parametrize("threads", [1, 2])
def test_profile_has_every_step_in_order(entry, threads):
    d = chain(entry, 6)
    d.steps[1] = Call(0, d.steps[1].buffers, (0,), True, "twice", d.of("n"), product(12, d.of("n")))
    profile = Executable(d.program(), Code(), threads=threads).profile(
        {"x": np.ones(50, np.float32)}
    )
    assert profile.model == "model"
    assert [event.step for event in profile.events] == list(range(6))
    assert [e.label for e in profile.events] == ["add", "twice", "alone", "add", "add", "alone"]
    assert profile.events[0].begin_ns == 0
    for before, after in itertools.pairwise(profile.events):
        assert before.begin_ns <= before.end_ns <= after.begin_ns
    assert (profile.events[1].flops, profile.events[1].moved_bytes) == (50, 600)
    assert profile.events[0].flops is None


@pytest.mark.parametrize("threads", [1, 2])
def test_profile_of_jumps_and_python_steps(entry, threads):
    d = Draft()
    d.input("x", ["n"])
    d.input("stop", [1], boolean)
    d.output("y", ["n"])
    d.buffer("h", Place.HOST, ["n"])
    d.buffer("s", Place.HOST, [1], boolean)
    d.buffer("part", Place.PART, [1], boolean, parent=d.at("s"), offset=constant(0))
    d.kernel("add", entry("add"))
    d.call("add", "x x y", "n")
    operand = Operand(d.at("y"), d.inputs[0].dtype, (-1,))
    made = (Operand(d.at("h"), f32, (-1,)), Operand(d.at("s"), boolean, (1,)))
    d.steps.append(Host(0, (operand,), made, label="look"))
    d.steps.append(Jump(4, d.at("part")))
    d.steps.append(Jump(0))
    turns = iter([True, True, False])
    model = Executable(
        d.program(), Code(), functions=[lambda y: (y, np.array([next(turns)]))], threads=threads
    )
    profile = model.profile({"x": np.ones(3, np.float32), "stop": [True]})
    assert [event.label for event in profile.events] == [
        *["add", "look", "jump", "jump"] * 2,
        *["add", "look", "jump"],
    ]


def test_profile_as_a_chrome_trace(entry):
    profile = Executable(chain(entry, 3).program(), Code()).profile({"x": [1.0, 2.0]})
    trace = json.loads(json.dumps(profile.chrome_trace()))
    assert [event["name"] for event in trace["traceEvents"]] == ["add", "add", "alone"]
    assert all(event["ph"] == "X" and event["dur"] >= 0 for event in trace["traceEvents"])
    assert trace["otherData"] == {"model": "model"}
