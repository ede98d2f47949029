"""Load on sessions, each kind in a process of its own that prints what it measured as JSON.

    python -m tests.load.work callers 8 10000
    python -m tests.load.work sessions 1000
    python -m tests.load.work models 200
    python -m tests.load.work forks 5

Results are compared with those of a quiet run, to the last bit.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import tilewright as tw
from tilewright.runtime import pool

WIDTH = 208
"""Columns that are several panels of a product at every vector width: threads share panels."""

TALL = 300
"""Rows with which kernels are worth a team of threads."""

Feeds = dict[str, np.ndarray]
Report = dict[str, float | int | str]


def model(seed: int = 0, width: int = WIDTH) -> onnx.ModelProto:
    """Two layers with a softmax, and sums of scattered rows that meet; any number of rows."""
    rng = np.random.default_rng(seed)
    weights = {
        "w": rng.normal(0, 0.3, (width, width)).astype(np.float32),
        "v": rng.normal(0, 0.3, (width, width)).astype(np.float32),
        "zeros": np.zeros((8, width), np.float32),
    }
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["a"]),
        helper.make_node("Tanh", ["a"], ["b"]),
        helper.make_node("MatMul", ["b", "v"], ["c"]),
        helper.make_node("Softmax", ["c"], ["y"], axis=-1),
        helper.make_node("ScatterND", ["zeros", "rows", "y"], ["z"], reduction="add"),
    ]
    infos = [
        helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", width]),
        helper.make_tensor_value_info("rows", TensorProto.INT64, ["n", 1]),
    ]
    outputs = [onnx.ValueInfoProto(name="y"), onnx.ValueInfoProto(name="z")]
    held = [numpy_helper.from_array(a, name) for name, a in weights.items()]
    graph = helper.make_graph(nodes, f"small{seed}", infos, outputs, held)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)], ir_version=10)


def feeds(rows: int, seed: int = 0, width: int = WIDTH) -> Feeds:
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((rows, width)).astype(np.float32)
    return {"x": x, "rows": rng.integers(0, 8, (rows, 1))}


def compiled(seed: int = 0, threads: int = 2) -> tw.Module:
    return tw.compile(model(seed), threads=threads, cache=False)


def same(found: list[np.ndarray], wanted: list[np.ndarray]) -> bool:
    return all(a.tobytes() == b.tobytes() for a, b in zip(found, wanted, strict=True))


def resident_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGESIZE")


def thread_count() -> int:
    return len(list(Path("/proc/self/task").iterdir()))


def threads_beyond(first: int) -> int:
    """Threads that are more than there were; those that have ended take a moment to be gone."""
    end = time.monotonic() + 5
    while thread_count() > first and time.monotonic() < end:
        time.sleep(0.01)
    return thread_count() - first


def callers(count: int, calls: int) -> Report:
    """Threads that call one session at once, each with sizes of its own in turn."""
    module = compiled()
    every = [feeds(rows, rows) for rows in (1, 3, 8, TALL)]
    wanted = [module.run(f) for f in every]
    wrong = []
    first, before = thread_count(), resident_bytes()

    def work(caller: int) -> None:
        for k in range(calls):
            which = (caller + k) % len(every)
            if not same(module.run(every[which]), wanted[which]):
                wrong.append((caller, k))

    begin = time.perf_counter()
    with ThreadPoolExecutor(count) as threads:
        list(threads.map(work, range(count)))
    seconds = time.perf_counter() - begin
    return {
        "wrong": len(wrong),
        "calls": count * calls,
        "calls_per_second": round(count * calls / seconds),
        "grown_kib": (resident_bytes() - before) >> 10,
        "threads_more": threads_beyond(first),
        "frames": module.memory().frames,
    }


def sessions(count: int) -> Report:
    """Sessions that are made, run and dropped; the memory of the second half must not grow."""
    wanted: list[np.ndarray] | None = None
    data, given = model().SerializeToString(), feeds(TALL)
    options = tw.SessionOptions()
    options.intra_op_num_threads = 2
    options.add_session_config_entry("tilewright.cache", "0")
    marks, wrong = [], 0
    for _ in range(count):
        session = tw.InferenceSession(data, options)
        found = session.run(None, given)
        wanted = wanted or found
        wrong += not same(found, wanted)
        del session
        marks.append(resident_bytes())
    half = np.array(marks[count // 2 :], float)
    slope = np.polyfit(np.arange(len(half)), half, 1)[0]
    return {
        "wrong": wrong,
        "sessions": count,
        "bytes_per_session": round(float(slope)),
        "resident_mib": marks[-1] >> 20,
        "threads": thread_count(),
        "workers": pool.count_workers(),
    }


def models(count: int) -> Report:
    """Many models open at once."""
    compiled(count).run(feeds(TALL))  # what the compiler keeps for all
    before = resident_bytes()
    opened = [compiled(seed) for seed in range(count)]
    every = [feeds(TALL if seed % 10 == 0 else 4, seed) for seed in range(count)]
    wanted = [module.run(f) for module, f in zip(opened, every, strict=True)]
    held = resident_bytes()
    wrong = 0
    for _ in range(3):
        for module, given, expected in zip(opened, every, wanted, strict=True):
            wrong += not same(module.run(given), expected)
    return {
        "wrong": wrong,
        "models": count,
        "kib_per_model": (held - before) // count >> 10,
        "threads": thread_count(),
        "workers": pool.count_workers(),
    }


def forks(depth: int) -> Report:
    """A child of a process that has run, its child, and so on; and children while others run."""
    module, given = compiled(), feeds(TALL)
    wanted = module.run(given)
    stop = threading.Event()

    def keep_running() -> None:
        while not stop.is_set():
            module.run(given)

    wrong = _descend(module, given, wanted, depth)
    busy = [threading.Thread(target=keep_running) for _ in range(2)]
    for one in busy:
        one.start()
    wrong += sum(_descend(module, given, wanted, 1) for _ in range(depth))
    stop.set()
    for one in busy:
        one.join()
    wrong += not same(module.run(given), wanted)
    return {"wrong": wrong, "depth": depth}


def _descend(module: tw.Module, given: Feeds, wanted: list[np.ndarray], depth: int) -> int:
    """How many of this process's descendants got something else."""
    if depth == 0:
        return 0
    child = os.fork()
    if child == 0:
        wrong = sum(not same(module.run(given), wanted) for _ in range(20))
        wrong += not same(compiled().run(given), wanted)
        os._exit(min(wrong + _descend(module, given, wanted, depth - 1), 100))
    wrong = sum(not same(module.run(given), wanted) for _ in range(20))
    _, status = os.waitpid(child, 0)
    return wrong + os.waitstatus_to_exitcode(status)


def endless(threads: int) -> Report:
    """Says `ready`, then runs until something ends it."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # which jobs of a shell may ignore
    module, given = compiled(), feeds(TALL)
    module.run(given)

    def keep_running() -> None:
        while True:
            module.run(given)

    for _ in range(threads - 1):
        threading.Thread(target=keep_running, daemon=True).start()
    try:
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        keep_running()
    except KeyboardInterrupt:
        result = module.run(given)  # what was interrupted can be used
        return {"rows": len(result[0])}
    raise AssertionError


def leaving(threads: int) -> Report:
    """The interpreter ends while daemon threads are in runs."""
    module, given = compiled(), feeds(TALL)

    def keep_running() -> None:
        while True:
            module.run(given)

    for _ in range(threads):
        threading.Thread(target=keep_running, daemon=True).start()
    time.sleep(0.05)
    return {"left": threads}


KINDS: dict[str, Callable[..., Report]] = {
    "callers": callers,
    "sessions": sessions,
    "models": models,
    "forks": forks,
    "endless": endless,
    "leaving": leaving,
}


def main(kind: str, *numbers: str) -> None:
    report = KINDS[kind](*map(int, numbers))
    sys.stdout.write(json.dumps(report) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
