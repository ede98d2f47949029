"""Compile two models, check their results, time them beside whatever peers are installed.

Run with `make demo`, or `python examples/demo.py` in an environment that has tilewright. Then the
same compiler from below: tensor programs of a few lines, and how near they come to the limit of
this machine.
"""

from __future__ import annotations

import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import onnx
from onnx.reference import ReferenceEvaluator

import tilewright as tw
from tilewright.contest.turns import TOLERANCE, compete, distance

SECONDS = 1.5  # of timing for each engine and model
PEERS = {"onnxruntime": "onnxruntime", "openvino": "openvino", "torch": "onnx2torch"}


def check(name: str, model: onnx.ModelProto, module: tw.Module, feeds: dict) -> None:
    """Results must be those of the reference implementation that comes with ONNX."""
    error = distance(module.run(feeds), ReferenceEvaluator(model).run(None, feeds))
    shapes = ", ".join(f"{key} {list(array.shape)}" for key, array in feeds.items())
    assert error < TOLERANCE, f"{name} is wrong by {error} for {shapes}"
    print(f"  right for {shapes}: {error:.0e} away from the ONNX reference")


def contest(model: onnx.ModelProto, module: tw.Module, feeds: dict) -> None:
    """Medians by turns, each engine in a process of its own."""
    peers = [name for name, package in PEERS.items() if find_spec(package)]
    with tempfile.TemporaryDirectory() as folder:
        file, compiled = Path(folder, "model.onnx"), Path(folder, "model.tw")
        onnx.save(model, file)
        module.save(compiled)
        paths = {"tilewright": compiled} | dict.fromkeys(peers, file)
        outcomes = compete(paths, feeds, module.threads, SECONDS, lambda _: None)
    own = outcomes[0]
    for outcome in outcomes:
        if outcome.problem:
            print(f"  {outcome.engine:<12} {outcome.problem}")
            continue
        ratio = f"{outcome.median_s / own.median_s:.2f} times as long" if outcome is not own else ""
        print(f"  {outcome.engine:<12}{outcome.median_s * 1e3:>8.2f} ms   {ratio}")
        assert not outcome.differs, f"{outcome.engine} gives other results: {outcome.error}"


def main() -> None:
    sys.path.insert(0, str(Path(__file__).parent))  # an isolated Python does not look there
    import models
    import programs

    rng = np.random.default_rng(0)
    image = rng.standard_normal((2, 3, 224, 224), np.float32)
    ids = rng.integers(0, 2000, (3, 128))
    cases = [
        ("ResNet-18", models.resnet18(), [{"image": image[:1]}]),
        ("transformer", models.transformer(), [{"ids": ids[:1]}, {"ids": ids[:, :33]}]),
    ]
    for name, model, runs in cases:
        start = time.perf_counter()
        module = tw.compile(model, cache=False)
        seconds = time.perf_counter() - start
        kernels = len(module.executable.program.kernels)
        print(f"{name}: {kernels} kernels for every size, compiled in {seconds:.1f} s")
        for feeds in runs:
            check(name, model, module, feeds)
        contest(model, module, runs[0])
        print()
    programs.main()


if __name__ == "__main__":
    main()
