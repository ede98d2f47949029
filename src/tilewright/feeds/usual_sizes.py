"""Sizes that inputs usually have, by what their names and places say: guesses, best first.

Nothing here knows a model. A guess is a start: `size_rules.py` looks for sizes that the model's own
equations accept, and a user may name others.
"""

from __future__ import annotations

import re
from typing import Final

from tilewright.model.info import TensorInfo

__all__ = ["BATCH", "COMMON", "usual_sizes"]

BATCH: Final = (1, 2, 4, 8)
SIDE: Final = (224, 64, 640, 32, 256, 48, 320, 512, 96, 128, 28)
SEQUENCE: Final = (128, 512, 32, 1024, 64, 16, 256)
SAMPLES: Final = (16000, 512, 48000, 1024, 8000, 32000)
FRAMES: Final = (128, 1000, 16, 512, 100, 300, 64)
PAST: Final = (16, 1, 128)
CHANNELS: Final = (3, 1, 4, 16, 64)
CLIP: Final = (16, 8, 32, 4)
COUNT: Final = (16, 8, 4, 32, 100)

COMMON: Final[tuple[int, ...]] = (
    1, 2, 3, 4, 5, 8, 10, 12, 16, 20, 24, 32, 40, 48, 64, 80, 96, 100, 112, 128, 160, 192, 224, 256,
    299, 300, 320, 384, 400, 416, 448, 480, 512, 576, 600, 640, 768, 800, 896, 1000, 1024, 1280,
    1500, 1536, 2048, 3000, 4096, 8000, 16000, 24000, 32000, 48000,
)  # fmt: skip
"""What is tried where no guess fits."""

_BY_NAME: Final = (
    (r"batch|bs$", BATCH),
    (r"past|cache|memory", PAST),
    (r"sample|audio|wave|pcm|speech", SAMPLES),
    (r"frame|time|steps?$", FRAMES),
    (r"height|width|^[hw]$|image|side", SIDE),
    (r"channel|^c$", CHANNELS),
    (r"seq|len|token|word|position|text|prompt|query|key", SEQUENCE),
)
"""What a dimension's name says: the first line that fits."""

_SPACE: Final = {4: SIDE, 5: (112, 64, 32, 224, 16)}
"""Sides of pictures and clips, by the rank of their arrays."""


def usual_sizes(info: TensorInfo, axis: int) -> tuple[int, ...]:
    """Sizes of one dimension of an input, best first."""
    dim = info.shape[axis]
    own = "" if _is_made_up(str(dim), info) else str(dim).lower()
    for pattern, sizes in _BY_NAME:
        if own and re.search(pattern, own):
            return sizes
    return _by_place(info, axis)


def _by_place(info: TensorInfo, axis: int) -> tuple[int, ...]:
    rank = len(info.shape)
    if axis == 0 and rank > 1:
        return BATCH
    if rank in _SPACE:
        channels = _channels(info)
        if axis == channels:
            return CHANNELS
        is_clip = rank == 5 and axis == (1 if channels == 4 else 2)
        return CLIP if is_clip else _SPACE[rank]
    if rank == 2 and info.dtype is not None and info.dtype.is_float and _is_sound(info.name):
        return SAMPLES
    return SEQUENCE if rank > 1 else COUNT


def _channels(info: TensorInfo) -> int:
    """The axis of channels: the last one only if it has few of them, as colours."""
    last = info.shape[-1]
    return len(info.shape) - 1 if isinstance(last, int) and last <= 4 else 1


def _is_sound(name: str) -> bool:
    return re.search("audio|wav|speech|pcm|signal|sound", name.lower()) is not None


def _is_made_up(dim: str, info: TensorInfo) -> bool:
    """Whether nobody named the dimension: then it has the name of the input."""
    return dim.startswith(f"{info.name}_")
