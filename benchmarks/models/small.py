"""Small models whose modules are written here: games, pictures, clips, texts by an LSTM."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from benchmarks.models.spec import Exported, Input, Model, normal, tokens

__all__ = ["MODELS"]


def _dqn() -> Any:
    from benchmarks.models import torch_modules

    return torch_modules.seeded(torch_modules.Dqn)


def _generator() -> Any:
    from benchmarks.models import torch_modules

    return torch_modules.seeded(torch_modules.Generator, 8, 100, 1, 1)


def _lstm() -> Any:
    from benchmarks.models import torch_modules

    return torch_modules.seeded(torch_modules.LanguageModel)


def _r3d() -> Any:
    from benchmarks.models import torch_modules

    return torch_modules.seeded(torch_modules.R3D, 2, 3, 8, 112, 112)


def _of_batches(name: str, module: Callable[[], Any], result: str, given: Input) -> Model:
    sizes = ({"batch": 1}, {"batch": 8})
    return Model(name, "small", Exported(module, (result,)), (given,), sizes, ("batch",))


MODELS: Final = (
    _of_batches("dqn", _dqn, "values", Input("frames", ("batch", 4, 84, 84), normal())),
    _of_batches(
        "dcgan-generator", _generator, "picture", Input("z", ("batch", 100, 1, 1), normal())
    ),
    Model(
        "lstm-lm",
        "small",
        Exported(_lstm, ("scores", "h_next", "c_next")),
        (
            Input("tokens", ("batch", "seq"), tokens(10_000)),
            Input("h", (2, "batch", 512), normal(0.1)),
            Input("c", (2, "batch", 512), normal(0.1)),
        ),
        ({"batch": 1, "seq": 35}, {"batch": 1, "seq": 1}, {"batch": 4, "seq": 20}),
        dynamic=("batch", "seq"),
    ),
    Model(
        "r3d-18",
        "small",
        Exported(_r3d, ("scores",)),
        (Input("clip", ("batch", 3, 8, 112, 112), normal()),),
        ({"batch": 1}, {"batch": 2}),
        dynamic=("batch",),
    ),
)
