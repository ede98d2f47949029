"""`torch.compile`: an engine of its own, because it needs a C++ compiler on the machine."""

from __future__ import annotations

import shutil
from functools import partial
from typing import Any, Final

import torch

from benchmarks.engines import NOTHING, Runner, Variants
from benchmarks.engines.torch import module_runner
from benchmarks.kinds import AnyWorkload
from benchmarks.models.workload import ModelWorkload
from benchmarks.numbers import EPSILON, Arrays
from benchmarks.workloads import CHAIN

PEER: Final = True


def start(threads: int) -> dict[str, str]:
    compiler = shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        raise ImportError("no C++ compiler, which torch.compile needs")
    import torch._inductor.config as inductor

    torch.set_num_threads(threads)
    torch.set_grad_enabled(False)
    inductor.cpp.threads = threads
    inductor.compile_threads = 1  # compile in this process: its CPU time is then known to be ours
    inductor.freezing = True  # weights are constants: the way to deploy a model
    return {"torch": torch.__version__, "compiler": compiler}


def variants(workload: AnyWorkload) -> Variants:
    if isinstance(workload, ModelWorkload):
        return {"compile": partial(_build_model, workload)} if workload.model.exporters else NOTHING
    function = _FUNCTIONS.get(workload.op)
    if function is None or workload.group == "compile":
        return NOTHING

    def build(arrays: Arrays) -> Runner:
        tensors = {name: torch.from_numpy(array) for name, array in arrays.items()}
        compiled = torch.compile(function, dynamic=False, fullgraph=True)
        return Runner(lambda: compiled(**tensors), lambda: compiled(**tensors).numpy())

    return {"compile": build}


def _build_model(workload: ModelWorkload, arrays: Arrays) -> Runner:
    torch._dynamo.reset()  # models share classes, and one function is compiled a few times only
    return module_runner(torch.compile(workload.model.module(), dynamic=False), arrays)


def _softmax(x: Any) -> Any:
    return torch.softmax(x, -1)


def _layernorm(x: Any, s: Any, b: Any) -> Any:
    return torch.nn.functional.layer_norm(x, s.shape, s, b, EPSILON)


def _gelu(x: Any) -> Any:
    return torch.nn.functional.gelu(x)


_CHAIN_OPS: dict[str, Any] = {
    "mul": lambda value, operand: value * operand,
    "add": lambda value, operand: value + operand,
    "sub": lambda value, operand: value - operand,
    "relu": lambda value, _: torch.relu(value),
    "sigmoid": lambda value, _: torch.sigmoid(value),
}


def _chain(x: Any, s: Any, b: Any) -> Any:
    operands, value = {"x": x, "s": s, "b": b}, x
    for op, operand in CHAIN:
        value = _CHAIN_OPS[op](value, operands.get(operand))
    return value


_FUNCTIONS: dict[str, Any] = {
    "softmax": _softmax,
    "layernorm": _layernorm,
    "gelu": _gelu,
    "chain": _chain,
}
