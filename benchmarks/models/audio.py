"""Speech: the encoder of Whisper, from the configuration of transformers."""

from __future__ import annotations

from typing import Any, Final

from benchmarks.models.spec import Exported, Input, Model, normal

__all__ = ["MODELS"]


def _whisper_encoder() -> Any:
    """The defaults of the configuration are those of the smallest model."""
    import transformers
    from transformers.models.whisper.modeling_whisper import WhisperEncoder

    from benchmarks.models.torch_modules import FirstResult, seeded

    config = transformers.WhisperConfig()
    return seeded(lambda: FirstResult(WhisperEncoder(config), "last_hidden_state"))


MODELS: Final = (
    Model(
        "whisper-tiny-encoder",
        "audio",
        Exported(_whisper_encoder, ("last_hidden_state",)),
        (Input("input_features", ("batch", 80, 3000), normal(0.5)),),
        ({"batch": 1}, {"batch": 2}),
        dynamic=("batch",),
    ),
)
