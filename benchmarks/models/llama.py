"""A small Llama: a whole prompt at once, and one token after another with a key/value cache."""

from __future__ import annotations

from typing import Any, Final

from benchmarks.models.spec import Exported, Input, Model, mask, normal, tokens

__all__ = ["MODELS"]

VOCABULARY: Final = 32_000
LAYERS: Final = 12
KV_HEADS: Final = 4
HEAD_SIZE: Final = 64


def _llama() -> Any:
    """124 million weights, grouped queries."""
    import transformers

    return transformers.LlamaForCausalLM(
        transformers.LlamaConfig(
            vocab_size=VOCABULARY,
            hidden_size=768,
            intermediate_size=2048,
            num_hidden_layers=LAYERS,
            num_attention_heads=12,
            num_key_value_heads=KV_HEADS,
            max_position_embeddings=2048,
        )
    )


def _prefill() -> Any:
    from benchmarks.models.torch_modules import CausalPrefill, seeded

    return seeded(lambda: CausalPrefill(_llama()))


def _decode() -> Any:
    from benchmarks.models.torch_modules import CausalDecode, seeded

    return seeded(lambda: CausalDecode(_llama(), LAYERS))


def _cache_names(when: str) -> tuple[str, ...]:
    return tuple(f"{when}_{part}_{i}" for i in range(LAYERS) for part in ("key", "value"))


MODELS: Final = (
    Model(
        "llama-prefill",
        "llama",
        Exported(_prefill, ("logits", *_cache_names("present"))),
        (
            Input("input_ids", ("batch", "seq"), tokens(VOCABULARY)),
            Input("attention_mask", ("batch", "seq"), mask),
        ),
        ({"batch": 1, "seq": 64}, {"batch": 1, "seq": 17}, {"batch": 1, "seq": 256}),
        dynamic=("batch", "seq"),
    ),
    Model(
        "llama-decode",
        "llama",
        Exported(_decode, ("logits", *_cache_names("present"))),
        (
            Input("input_ids", ("batch", 1), tokens(VOCABULARY)),
            Input("attention_mask", ("batch", "past+1"), mask),
            *(
                Input(name, ("batch", KV_HEADS, "past", HEAD_SIZE), normal(0.5))
                for name in _cache_names("past")
            ),
        ),
        ({"batch": 1, "past": 127}, {"batch": 1, "past": 15}, {"batch": 4, "past": 127}),
        dynamic=("batch", "past"),
        streams_weights=True,
    ),
)
