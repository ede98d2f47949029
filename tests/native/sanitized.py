"""Models run by a C library that a sanitizer watches, and so are their kernels (`watching.py`).

    LD_PRELOAD=libasan.so python -m tests.native.sanitized LIBRARY address networks nodes:gather* …

The library, with what binds it to Python, is built by the test.
"""

from __future__ import annotations

import gc
import importlib.util
import itertools
import os
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable
from importlib.machinery import ExtensionFileLoader, ModuleSpec
from pathlib import Path
from typing import Any

from tests.native.watching import change_generated_code, watch_generated_code

NAME = "tilewright.runtime._native"


class Instead:
    """Finds the library at another place."""

    def __init__(self, path: Path) -> None:
        self.path = str(path)

    def find_spec(self, name: str, *_: object) -> ModuleSpec | None:
        if name != NAME:
            return None
        loader = ExtensionFileLoader(name, self.path)
        return importlib.util.spec_from_file_location(name, self.path, loader=loader)


def networks(_: str) -> int:
    """Whole models of several sizes and threads, saved, loaded and called by several at once."""
    import numpy as np

    import tilewright as tw
    from tests.unit.model.test_concurrency import MAKERS, feeds_of

    runs = 0
    for name, threads in itertools.product(MAKERS, (1, 2)):
        module = tw.compile(MAKERS[name](), threads=threads, cache=False)
        every = feeds_of(name, np.random.default_rng(3))
        wanted = [module.run(feeds) for feeds in every]
        with tempfile.TemporaryDirectory() as folder:
            module.save(Path(folder, "m.tw"))
            loaded = tw.load(Path(folder, "m.tw"))
        runs += _at_once(loaded, every, wanted)
        del module, loaded
        gc.collect()
    return runs


def _at_once(module: Any, every: list[Any], wanted: list[Any], callers: int = 4) -> int:
    import numpy as np

    wrong: list[object] = []

    def call() -> None:
        try:
            for feeds, results in zip(every, wanted, strict=True):
                for a, b in zip(module.run(feeds), results, strict=True):
                    np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)
        except BaseException as problem:  # noqa: BLE001  (told by the main thread)
            wrong.append(problem)

    threads = [threading.Thread(target=call) for _ in range(callers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong, wrong
    return callers * len(every)


def nodes(pattern: str) -> int:
    """Node tests of onnx by name, or `*/20` for every twentieth."""
    from tests.onnx.conformance import compiled, outcome
    from tests.onnx.node_cases import node_cases

    name, _, step = pattern.partition("/")
    cases = node_cases(name or "*")[:: int(step or 1)]
    return sum(outcome(case, compiled).kind == "native" for case in cases)


def places(pattern: str) -> int:
    """Places from everywhere, as in `tests/memory`."""
    from tests.memory import cases

    return cases.places(pattern)


def refused(_: str) -> int:
    """Arguments that are none, and files that are damaged: ways that end in an error."""
    import numpy as np

    import tilewright as tw
    from tests.unit.model.test_concurrency import MAKERS, feeds_of
    from tilewright.errors import TilewrightError

    name = next(iter(MAKERS))
    module = tw.compile(MAKERS[name](), threads=2, cache=False)
    feeds = feeds_of(name, np.random.default_rng(3))[0]
    key, good = next(iter(feeds.items()))
    bad: list[Any] = [good[..., :0], good.astype(np.int8), good.T, good[None], None, "x", {}, []]
    bad += [np.asfortranarray(good), good[..., ::-1], np.zeros((), np.float32)]
    count = 0
    for value in bad:
        try:
            module.run({**feeds, key: value})
        except TilewrightError:
            count += 1
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "m.tw")
        module.save(path)
        content = path.read_bytes()
        for at in range(0, len(content), max(1, len(content) // 40)):
            path.write_bytes(content[:at])
            try:
                tw.load(path)
            except TilewrightError:
                count += 1
    return count


def stray(_: str) -> int:
    """A kernel that reads behind its input, which must not go unnoticed."""
    from tests.memory import cases

    return cases.stray("")


def racing(_: str) -> int:
    """Kernels whose threads all do the share of the first, which must not go unnoticed."""
    change_generated_code(lambda text: text.replace("i64 %thread.wide", "i64 0"))
    return networks("")


KINDS: dict[str, Callable[[str], int]] = {
    "networks": networks,
    "nodes": nodes,
    "places": places,
    "refused": refused,
    "stray": stray,
    "racing": racing,
}


def main(library: str, sanitizer: str, *wanted: str) -> None:
    """Run kinds of cases with a library and kernels that a sanitizer watches."""
    sys.meta_path.insert(0, Instead(Path(library)))  # type: ignore[arg-type]
    warnings.simplefilter("ignore")
    from tilewright.runtime import _native

    assert _native.__file__ == library, _native.__file__
    watch_generated_code(sanitizer)
    for text in wanted:
        kind, _, rest = text.partition(":")
        print(f"{text}: {KINDS[kind](rest)} runs", flush=True)
    gc.collect()


if __name__ == "__main__":
    main(*sys.argv[1:])
    sys.stdout.flush()
    os._exit(0)  # leaks of the interpreter itself are not of interest
