"""ncnn: files that pnnx has converted, all in float32, with memory from pools.

Results count where they are without ncnn's packing of channels, as in its own examples.
"""

from __future__ import annotations

import re
from functools import partial
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import ncnn
import numpy as np

from benchmarks.conversion import MODEL, converted
from benchmarks.engines import NOTHING, Runner, Variants
from benchmarks.kinds import AnyWorkload, feeds
from benchmarks.models.workload import ModelWorkload
from benchmarks.numbers import Arrays

PEER: Final = True

PARAM, WEIGHTS, EXAMPLE = RESULTS = ("model.ncnn.param", "model.ncnn.bin", "model_ncnn.py")
NARROW: Final = (
    "use_fp16_packed", "use_fp16_storage", "use_fp16_arithmetic",
    "use_bf16_packed", "use_bf16_storage",
    "use_int8_packed", "use_int8_storage", "use_int8_arithmetic", "use_int8_inference",
)  # fmt: skip
GIVEN = re.compile(r'ex\.input\("(\w+)", ncnn\.Mat\(\w+\.numpy\(\), batch_index=(\d+)\)')
MADE = re.compile(r"torch\.from_numpy\((\w+)\.numpy\(batch_index=(\d+)\)\)")

_threads: list[int] = []
_pools: Final = (ncnn.UnlockedPoolAllocator(), ncnn.PoolAllocator())
"""Of results and of scratch, for all networks: nothing that they gave may outlive them."""


def start(threads: int) -> dict[str, str]:
    if find_spec("pnnx") is None:
        raise ImportError("no pnnx, which converts models for ncnn")
    _threads.append(threads)
    return {"ncnn": ncnn.__version__, "pnnx": metadata.version("pnnx")}


def variants(workload: AnyWorkload) -> Variants:
    """It chooses Winograd's algorithm by tables of its own, which may be wrong for a layer."""
    if not workload.path:
        return NOTHING
    ways = {"winograd": True}
    if not isinstance(workload, ModelWorkload):
        ways["direct"] = False
    return {name: partial(_build, workload, winograd) for name, winograd in ways.items()}


def _build(workload: AnyWorkload, winograd: bool, arrays: Arrays) -> Runner:  # noqa: FBT001
    given = feeds(workload, arrays)
    folder = _converted(workload, given)
    example = (folder / EXAMPLE).read_text(encoding="utf-8")
    net = _net(folder, winograd=winograd)
    ports, outputs = GIVEN.findall(example), MADE.findall(example)
    mats = [
        (name, ncnn.Mat(_narrowed(array), batch_index=int(axis)).clone())
        for (name, axis), array in zip(ports, given.values(), strict=True)
    ]
    names = [name for name, _ in outputs]
    results: list[Any] = []

    def run() -> None:
        results.clear()  # gives its memory back to the pool
        extractor = net.create_extractor()
        for name, mat in mats:
            extractor.input(name, mat)
        for name in names:
            code, mat = extractor.extract(name)
            if code:
                raise RuntimeError(f"ncnn returned {code} for {name}")
            results.append(mat)

    def output() -> list[Any]:
        axes = [int(axis) for _, axis in outputs]
        return [
            np.array(mat.numpy(batch_index=axis)) for mat, axis in zip(results, axes, strict=True)
        ]

    return Runner(run, output)


def _narrowed(array: Any) -> Any:
    """Integers as ncnn has them."""
    return array.astype(np.int32) if array.dtype == np.int64 else array


def _converted(workload: AnyWorkload, given: Arrays) -> Path:
    """The files that pnnx makes for inputs of these shapes, which it runs the model with."""
    package = find_spec("pnnx")
    assert package is not None
    assert package.origin is not None
    tool = Path(package.origin).with_name("pnnx")

    def command(folder: Path) -> list[str]:
        for i, array in enumerate(given.values()):
            np.save(folder / f"{i}.npy", array)
        files = ",".join(f"{i}.npy" for i in range(len(given)))
        return [str(tool), MODEL, "fp16=0", f"input={files}"]

    kind = f"pnnx-{metadata.version('pnnx')}"
    if isinstance(workload, ModelWorkload) and workload.dynamic:
        kind += f" {workload.name}"
    return converted(workload.path, kind, command, RESULTS)


def _net(folder: Path, *, winograd: bool) -> Any:
    """The network with its weights packed."""
    for pool in _pools:
        pool.clear()  # what earlier ones have given back
    net = ncnn.Net()
    for name in NARROW:
        setattr(net.opt, name, False)
    net.opt.num_threads = _threads[0]
    net.opt.lightmode = True
    net.opt.use_packing_layout = True
    net.opt.use_sgemm_convolution = True
    net.opt.use_winograd_convolution = winograd
    net.opt.use_vulkan_compute = False
    net.opt.blob_allocator, net.opt.workspace_allocator = _pools
    _, _, *layers = (folder / PARAM).read_text(encoding="utf-8").splitlines()
    if unknown := {kind for kind, *_ in map(str.split, layers) if ncnn.layer_to_index(kind) < 0}:
        raise RuntimeError(f"ncnn has no layers of kind {', '.join(sorted(unknown))}")
    if net.load_param(str(folder / PARAM)) or net.load_model(str(folder / WEIGHTS)):
        raise RuntimeError("ncnn cannot load what pnnx made")
    return net
