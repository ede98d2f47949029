"""PyTorch without its compiler: every kernel it offers for the job, `out=` where there is one."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

import torch

from benchmarks.convolutions import Convolution
from benchmarks.engines import NOTHING, Builder, Runner, Variants
from benchmarks.kinds import AnyWorkload
from benchmarks.models.workload import ModelWorkload
from benchmarks.numbers import EPSILON, Arrays
from benchmarks.workloads import CHAIN

PEER: Final = True

Make = Callable[[dict[str, Any]], Callable[[], Any]]


def start(threads: int) -> dict[str, str]:
    torch.set_num_threads(threads)
    torch.set_grad_enabled(False)
    return {"torch": torch.__version__}


def variants(workload: AnyWorkload) -> Variants:
    if isinstance(workload, ModelWorkload):
        return _model_variants(workload)
    if workload.group == "compile":
        return NOTHING
    if workload.convolution is not None:
        return _layer_variants(workload.convolution)
    return {name: _builder(make) for name, make in MAKERS.get(workload.op, {}).items()}


def _layer_variants(conv: Convolution) -> Variants:
    """Channels-last both outside and inside is more than others are given: borders are free."""
    orders = {"plain": torch.contiguous_format}
    if conv.rank > 1:
        last = torch.channels_last if conv.rank == 2 else torch.channels_last_3d
        orders["channels-last"] = last
    return {name: partial(_build_convolution, conv, order) for name, order in orders.items()}


def _build_convolution(conv: Convolution, order: Any, arrays: Arrays) -> Runner:
    x = torch.from_numpy(arrays["x"]).contiguous(memory_format=order)
    w = torch.from_numpy(arrays["w"]).contiguous(memory_format=order)
    bias, functional = torch.from_numpy(arrays["b"]), torch.nn.functional
    options = {"stride": conv.stride, "padding": conv.padding, "groups": conv.groups}
    options["dilation"] = conv.dilation
    name = f"conv_transpose{conv.rank}d" if conv.op == "transposed" else f"conv{conv.rank}d"
    convolve = partial(getattr(functional, name), x, w, bias, **options)

    def run() -> Any:
        return convolve().relu_()

    return Runner(run, lambda: run().numpy())


def _model_variants(workload: ModelWorkload) -> Variants:
    """A module that sees pictures is tried in both orders of memory."""
    if not workload.model.exporters:
        return NOTHING
    orders = {"eager": torch.contiguous_format, "channels-last": torch.channels_last}
    if len(workload.model.inputs[0].dims) != 4:
        del orders["channels-last"]
    return {name: partial(_build_model, workload, order) for name, order in orders.items()}


def _build_model(workload: ModelWorkload, order: Any, arrays: Arrays) -> Runner:
    return module_runner(workload.model.module().to(memory_format=order), arrays)


def module_runner(module: Any, arrays: Arrays) -> Runner:
    """Calls of a module with tensors that share the memory of the arrays."""
    run = partial(module, *map(torch.from_numpy, arrays.values()))

    def output() -> list[Any]:
        result = run()
        tensors = [result] if isinstance(result, torch.Tensor) else result
        return [tensor.contiguous().numpy() for tensor in tensors]

    return Runner(run, output)


def _builder(make: Make) -> Builder:
    def build(arrays: Arrays) -> Runner:
        run = make({name: torch.from_numpy(array) for name, array in arrays.items()})
        return Runner(run, lambda: run().numpy())

    return build


def _linear(t: dict[str, Any]) -> Callable[[], Any]:
    a, weight = t["a"], t["b"].t().contiguous()
    return lambda: torch.nn.functional.linear(a, weight)


def _mm(t: dict[str, Any]) -> Callable[[], Any]:
    a, b, out = t["a"], t["b"], torch.empty(t["a"].shape[0], t["b"].shape[1])
    return lambda: torch.mm(a, b, out=out)


def _mm_transposed(t: dict[str, Any]) -> Callable[[], Any]:
    a, b = t["a"], t["b"].t().contiguous().t()
    out = torch.empty(a.shape[0], b.shape[1])
    return lambda: torch.mm(a, b, out=out)


def _onednn_packed(t: dict[str, Any]) -> Callable[[], Any]:
    """The packed linear that the compiler of torch uses for frozen weights, with oneDNN."""
    a, weight = t["a"], t["b"].t().contiguous()
    packed = torch.ops.mkldnn._reorder_linear_weight(weight, a.shape[0])
    linear = torch.ops.mkldnn._linear_pointwise
    return lambda: linear(a, packed, None, "none", [], "")


def _mkl_packed(t: dict[str, Any]) -> Callable[[], Any]:
    """The same with MKL's packed format."""
    a, weight = t["a"], t["b"].t().contiguous()
    packed = torch.ops.mkl._mkl_reorder_linear_weight(weight, a.shape[0])
    linear, rows = torch.ops.mkl._mkl_linear, a.shape[0]
    return lambda: linear(a, packed, weight, None, rows)


def _bmm(t: dict[str, Any]) -> Callable[[], Any]:
    a, b = t["a"], t["b"]
    out = torch.empty(a.shape[0], a.shape[1], b.shape[2])
    return lambda: torch.bmm(a, b, out=out)


def _softmax(t: dict[str, Any]) -> Callable[[], Any]:
    x = t["x"]
    return lambda: torch.softmax(x, -1)


def _softmax_out(t: dict[str, Any]) -> Callable[[], Any]:
    x, out = t["x"], torch.empty_like(t["x"])
    return lambda: torch.ops.aten._softmax.out(x, -1, half_to_float=False, out=out)


def _layernorm(t: dict[str, Any]) -> Callable[[], Any]:
    x, s, b = t["x"], t["s"], t["b"]
    return lambda: torch.nn.functional.layer_norm(x, s.shape, s, b, EPSILON)


def _gelu(t: dict[str, Any]) -> Callable[[], Any]:
    x = t["x"]
    return lambda: torch.nn.functional.gelu(x)


def _gelu_out(t: dict[str, Any]) -> Callable[[], Any]:
    x, out = t["x"], torch.empty_like(t["x"])
    return lambda: torch.ops.aten.gelu.out(x, out=out)


_CHAIN_OPS: dict[str, Any] = {
    "mul": lambda value, operand, out: torch.mul(value, operand, out=out),
    "add": lambda value, operand, out: torch.add(value, operand, out=out),
    "sub": lambda value, operand, out: torch.sub(value, operand, out=out),
    "relu": lambda value, _, out: torch.clamp(value, min=0, out=out),
    "sigmoid": lambda value, _, out: torch.sigmoid(value, out=out),
}


def _chain(t: dict[str, Any]) -> Callable[[], Any]:
    x, out = t["x"], torch.empty_like(t["x"])
    steps = [(_CHAIN_OPS[op], t.get(operand)) for op, operand in CHAIN]

    def run() -> Any:
        value = x
        for op, operand in steps:
            value = op(value, operand, out)
        return value

    return run


MAKERS: Final[dict[str, dict[str, Make]]] = {
    "matmul": {
        "linear": _linear,
        "mm": _mm,
        "mm-transposed": _mm_transposed,
        "onednn-packed": _onednn_packed,
        "mkl-packed": _mkl_packed,
    },
    "batched": {"bmm": _bmm},
    "softmax": {"plain": _softmax, "out": _softmax_out},
    "layernorm": {"plain": _layernorm},
    "gelu": {"plain": _gelu, "out": _gelu_out},
    "chain": {"eager": _chain},
}
