"""The registry: what is in it, and inputs that fit the models."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.models.packaged import page
from benchmarks.models.registry import FAMILIES, MODELS, find
from benchmarks.models.spec import EXPORTERS, Exported, Input, Packaged, mask, tokens, zeros

WANTED = {
    *("resnet18", "resnet50", "mobilenet-v2", "vit-base", "convnext-tiny", "swin-tiny"),
    *("efficientnet-b0", "segformer-b0", "yolo", "r3d-18", "dcgan-generator", "lstm-lm", "dqn"),
    *("bert-base", "distilbert", "gpt2", "minilm-l6", "whisper-tiny-encoder"),
    *("llama-prefill", "llama-decode", "silero-vad"),
    *("ocr-detection", "ocr-recognition", "ocr-orientation"),
    *("light-resnet50", "light-densenet121", "light-inception-v1", "light-inception-v2"),
    *("light-shufflenet", "light-squeezenet", "light-vgg19", "light-zfnet512"),
    "light-bvlc-alexnet",
}


def test_every_model_that_is_spoken_of_is_there():
    assert MODELS.keys() >= WANTED
    assert len(MODELS) == sum(len(family.MODELS) for family in FAMILIES)


def test_models_are_found_by_name_and_family():
    assert [model.name for model in find(["resnet50", "dqn"])] == ["dqn", "resnet50"]
    assert {model.name for model in find(["llama"])} == {"llama-prefill", "llama-decode"}
    assert all(model.competes for model in find([]))
    assert {model.name for model in find([])} >= {"dqn", "filled-vgg19"}
    with pytest.raises(LookupError, match=r"unknown: abacus; there is .*dqn"):
        find(["dqn", "abacus"])


@pytest.mark.parametrize("model", MODELS.values(), ids=list(MODELS))
def test_sizes_are_those_that_the_inputs_speak_of(model):
    spoken_of = set().union(*(given.size_names for given in model.inputs))
    assert model.sizes
    assert all(set(sizes) == spoken_of for sizes in model.sizes)
    assert set(model.dynamic) <= spoken_of
    assert len(model.sizes) == 1 or model.dynamic
    assert 0 < model.tolerance <= 1e-3


@pytest.mark.parametrize("model", MODELS.values(), ids=list(MODELS))
def test_a_model_has_one_way_into_the_world(model):
    match model.source:
        case Exported(outputs=outputs, exporters=exporters):
            assert outputs
            assert len(set(outputs)) == len(outputs)
            assert model.exporters == exporters
            assert set(exporters) <= set(EXPORTERS)
        case Packaged(file=file):
            assert file.endswith(".onnx")
            assert model.exporters == ()
            assert model.module() is None


@pytest.mark.parametrize("model", MODELS.values(), ids=list(MODELS))
def test_inputs_have_the_shapes_of_the_sizes_and_are_always_the_same(model):
    for sizes in model.sizes:
        arrays, again = model.arrays(sizes), model.arrays(sizes)
        assert {name: array.shape for name, array in arrays.items()} == model.shapes(sizes)
        for name, array in arrays.items():
            assert array.dtype in (np.float32, np.int64)
            assert array.flags.c_contiguous
            assert np.isfinite(array).all()
            assert (array == again[name]).all()


def test_dimensions_may_be_sums():
    given = Input("x", ("batch", "past+1", 64, "past+batch"), zeros())
    assert given.shape({"batch": 2, "past": 7}) == (2, 8, 64, 9)
    assert given.size_names == {"batch", "past"}


def test_tokens_are_words_of_the_vocabulary(rng):
    words = tokens(50)(rng, (30, 40))
    assert (words.min(), words.max()) == (0, 49)


def test_masks_end_shorter_texts(rng):
    assert mask(rng, (3, 16)).sum(axis=1).tolist() == [16, 14, 14]
    assert mask(rng, (2, 4)).all()


def test_pages_have_dark_strokes_on_light_paper(rng):
    picture = page(rng, (1, 3, 96, 128))
    assert picture.dtype == np.float32
    assert 0.02 < (picture < -1).mean() < 0.3
    assert (picture > 1).mean() > 0.7


def test_a_missing_package_is_named():
    with pytest.raises(ImportError, match="no_such_package"):
        Packaged("no_such_package", "model.onnx").find()
