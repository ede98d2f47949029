"""`python -m fuzz nnsmith`: models of the generator nnsmith, exported to ONNX by PyTorch.

nnsmith solves the constraints of operators on shapes with z3 and makes PyTorch modules. Each is
exported, given inputs of our own, and judged as the models of `fuzz.generate` are. What PyTorch
cannot export is left out, and the next number of the same case is tried.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import io
import itertools
import os
import random
import sys
import warnings
from collections.abc import Iterator
from typing import Any, Final

import onnx

from fuzz.campaign import Campaign
from fuzz.case import Case, Setting
from fuzz.command_line import add_common, finish, limits_of
from fuzz.values import random_array

__all__ = ["main", "make_model"]

MAX_ELEMENTS: Final = 2000
TRIES: Final = 20
OPSET: Final = 14


def main(arguments: list[str]) -> int:
    """0 if nothing is unexplained, 1 if there are findings, 2 if nnsmith is not there."""
    options = _parser().parse_args(arguments)
    if importlib.util.find_spec("nnsmith") is None or importlib.util.find_spec("torch") is None:
        print("nnsmith or torch is missing: pip install --group fuzz", file=sys.stderr)
        return 2
    campaign = Campaign(lambda n: make_case(n, options.nodes), options.workers, limits_of(options))
    numbers: Iterator[int] = itertools.count(options.seed)
    if options.count is not None:
        numbers = iter(range(options.seed, options.seed + options.count))
    return finish(campaign, campaign.run(numbers, options.seconds), options)


def make_case(number: int, nodes: int) -> Case:
    """The first model of a number that PyTorch exports, with random inputs."""
    draw = random.Random(number)
    problems: list[str] = []
    for part in range(TRIES):
        try:
            model = make_model(number * TRIES + part, draw.randint(1, nodes))
        except Exception as problem:  # noqa: BLE001  (a generator or an exporter may raise anything)
            problems.append(str(problem))
            continue
        feeds = {
            info.name: random_array(draw, info.type.tensor_type.elem_type, _shape(info))
            for info in model.graph.input
        }
        threads = draw.choice((1, 1, 2))
        setting = Setting(draw.choice(("default", "default", "strict")), threads)
        return Case(model, [feeds], setting, f"nnsmith seed {number}")
    raise ValueError(f"no model in {TRIES} tries: {problems[-1][:200]}")


def make_model(seed: int, nodes: int) -> onnx.ModelProto:
    """A model of up to so many operators."""
    with _silence():
        import torch
        from nnsmith.graph_gen import model_gen
        from nnsmith.materialize import Model
        from nnsmith.materialize.torch import TorchModelCPU

        torch.set_num_threads(1)
        kind = Model.init("onnx", backend_target="cpu")
        kind.add_seed_setter()
        made = model_gen(
            opset=kind.operators(),
            method="symbolic-cinit",
            seed=seed,
            max_elem_per_tensor=MAX_ELEMENTS,
            max_nodes=nodes,
            timeout_ms=5000,
        )
        net = TorchModelCPU.from_gir(made.make_concrete()).torch_model
        return _exported(net)


def _exported(net: Any) -> onnx.ModelProto:
    import torch

    net.disable_proxy_grad()
    net.eval()
    dummies = [
        torch.ones(tuple(like.shape)).uniform_(1, 2).to(like.dtype.torch())
        for like in net.input_like.values()
    ]
    memory = io.BytesIO()
    with torch.no_grad():
        torch.onnx.export(
            net,
            tuple(dummies),
            memory,
            input_names=list(net.input_like),
            output_names=list(net.output_like),
            opset_version=OPSET,
            do_constant_folding=False,
            dynamo=False,  # its successor rewrites more of what nnsmith made
        )
    return onnx.load_model_from_string(memory.getvalue())


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """Both packages speak a lot, also from C++."""
    sys.stdout.flush()
    sys.stderr.flush()
    kept = [os.dup(number) for number in (1, 2)]
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        for number in (1, 2):
            os.dup2(nowhere, number)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        for number, copy in zip((1, 2), kept, strict=True):
            os.dup2(copy, number)
            os.close(copy)
        os.close(nowhere)


def _shape(info: onnx.ValueInfoProto) -> tuple[int, ...]:
    return tuple(dim.dim_value for dim in info.type.tensor_type.shape.dim)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m fuzz nnsmith",
        description="Models of the generator nnsmith, compared with onnxruntime and the ONNX "
        "reference. Needs the extra `fuzz`.",
        epilog="example: python -m fuzz nnsmith --count 200; "
        "exit code 0: nothing unexplained, 1: findings, 2: wrong usage or nnsmith is missing",
    )
    add_common(parser)
    parser.add_argument("--seed", type=int, default=0, help="number of the first graph (default 0)")
    parser.add_argument("--nodes", type=int, default=8, help="operators of a model (default 8)")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
