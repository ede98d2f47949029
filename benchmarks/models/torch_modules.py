"""Torch modules that are written here, and what makes a module fit to be exported.

Only modules named `torch_…` import torch when they are imported.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import torch
from torch import nn

__all__ = ["Dqn", "FirstResult", "Generator", "LanguageModel", "R3D", "seeded"]

SEED: Final = 1234
NOISE: Final = 0.05


def seeded(make: Callable[[], Any], *example: int) -> Any:
    """The module in evaluation mode, its weights from a fixed seed.

    Scales and offsets start as ones and zeros, which exporters leave out: they get some noise. A
    module with batch normalisation needs the shape of an `example`, see `_settle`.
    """
    torch.manual_seed(SEED)
    module = make().eval().requires_grad_(requires_grad=False)
    for parameter in module.parameters():
        if parameter.dim() <= 1:
            parameter.add_(NOISE * torch.randn_like(parameter))
    norms = [m for m in module.modules() if isinstance(m, nn.modules.batchnorm._BatchNorm)]
    if norms:
        _settle(module, norms, torch.randn(example))
    return module


def _settle(module: Any, norms: list[Any], example: Any) -> None:
    """Take the running statistics from what an example causes, as if the module were trained.

    Without them the values of a deep network grow from layer to layer.
    """
    for norm in norms:
        norm.train()
        norm.momentum = 1.0
    with torch.no_grad():
        module(example)
    module.eval()


class FirstResult(nn.Module):  # type: ignore[misc]
    """A module of transformers as a plain function: tensors in, one named result out."""

    def __init__(self, inner: Any, result: str, names: tuple[str, ...] = ()) -> None:
        super().__init__()
        self.inner, self.result, self.names = inner, result, names

    def forward(self, *tensors: Any) -> Any:
        named = dict(zip(self.names, tensors, strict=True)) if self.names else {}
        positional = () if self.names else tensors
        return getattr(self.inner(*positional, **named, return_dict=True), self.result)


class Dqn(nn.Sequential):  # type: ignore[misc]
    """The deep Q-network of the Atari games: four frames of 84×84 to the values of 6 actions."""

    def __init__(self, actions: int = 6) -> None:
        super().__init__(
            *(nn.Conv2d(4, 32, 8, 4), nn.ReLU(), nn.Conv2d(32, 64, 4, 2), nn.ReLU()),
            *(nn.Conv2d(64, 64, 3, 1), nn.ReLU(), nn.Flatten()),
            *(nn.Linear(3136, 512), nn.ReLU(), nn.Linear(512, actions)),
        )


class Generator(nn.Sequential):  # type: ignore[misc]
    """The generator of a DCGAN: a point of 100 numbers to a picture of 64×64."""

    def __init__(self, width: int = 64) -> None:
        steps = [(100, 8 * width, 1, 0)]
        steps += [(k * width, k * width // 2, 2, 1) for k in (8, 4, 2)]
        layers: list[Any] = []
        for given, made, stride, padding in steps:
            convolution = nn.ConvTranspose2d(given, made, 4, stride, padding, bias=False)
            layers += [convolution, nn.BatchNorm2d(made), nn.ReLU()]
        super().__init__(*layers, nn.ConvTranspose2d(width, 3, 4, 2, 1, bias=False), nn.Tanh())


class LanguageModel(nn.Module):  # type: ignore[misc]
    """Two layers of LSTM between an embedding and scores of the next word."""

    def __init__(self, words: int = 10_000, width: int = 512) -> None:
        super().__init__()
        self.embed = nn.Embedding(words, width)
        self.lstm = nn.LSTM(width, width, num_layers=2, batch_first=True)
        self.scores = nn.Linear(width, words)

    def forward(self, tokens: Any, h: Any, c: Any) -> Any:
        hidden, (h_next, c_next) = self.lstm(self.embed(tokens), (h, c))
        return self.scores(hidden), h_next, c_next


class _Block3D(nn.Module):  # type: ignore[misc]
    """Two convolutions over space and time, and the way around them."""

    def __init__(self, given: int, made: int, stride: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            *(nn.Conv3d(given, made, 3, stride, 1, bias=False), nn.BatchNorm3d(made), nn.ReLU()),
            *(nn.Conv3d(made, made, 3, 1, 1, bias=False), nn.BatchNorm3d(made)),
        )
        self.around = nn.Identity()
        if stride != 1 or given != made:
            shrink = nn.Conv3d(given, made, 1, stride, bias=False)
            self.around = nn.Sequential(shrink, nn.BatchNorm3d(made))

    def forward(self, x: Any) -> Any:
        return torch.relu(self.body(x) + self.around(x))


class R3D(nn.Sequential):  # type: ignore[misc]
    """ResNet-18 with 3-D convolutions: a clip of frames to scores of 400 actions."""

    def __init__(self, actions: int = 400) -> None:
        stem = nn.Conv3d(3, 64, (3, 7, 7), (1, 2, 2), (1, 3, 3), bias=False)
        blocks = [
            _Block3D(given, made, stride)
            for first, made in ((64, 64), (64, 128), (128, 256), (256, 512))
            for given, stride in ((first, 1 if first == made else 2), (made, 1))
        ]
        super().__init__(
            *(stem, nn.BatchNorm3d(64), nn.ReLU(), *blocks),
            *(nn.AdaptiveAvgPool3d(1), nn.Flatten(), nn.Linear(512, actions)),
        )


class CausalPrefill(nn.Module):  # type: ignore[misc]
    """A language model on a whole prompt: scores of the next word, and the filled cache."""

    def __init__(self, inner: Any) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, input_ids: Any, attention_mask: Any) -> Any:
        result = self.inner(
            input_ids, attention_mask=attention_mask, use_cache=True, logits_to_keep=1
        )
        return result.logits, *_flat(result.past_key_values)


class CausalDecode(nn.Module):  # type: ignore[misc]
    """One more word for a language model; keys and values of the earlier ones are inputs."""

    def __init__(self, inner: Any, layers: int) -> None:
        super().__init__()
        self.inner, self.layers = inner, layers

    def forward(self, input_ids: Any, attention_mask: Any, *past: Any) -> Any:
        from transformers import DynamicCache

        cache = DynamicCache([(past[2 * i], past[2 * i + 1]) for i in range(self.layers)])
        result = self.inner(
            input_ids, attention_mask=attention_mask, past_key_values=cache, use_cache=True
        )
        return result.logits, *_flat(result.past_key_values)


def _flat(cache: Any) -> tuple[Any, ...]:
    """Keys and values, layer by layer."""
    return tuple(tensor for layer in cache.layers for tensor in (layer.keys, layer.values))
