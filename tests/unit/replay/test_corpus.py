"""The corpus is as large as it says, its names are stable, and everything in it can be built."""

from __future__ import annotations

import re
from pathlib import Path

import onnx
import pytest

from replay.models import models
from replay.programs import programs
from replay.programs.program import Program, dims, name_of, named, of_library
from replay.record import items

ROOT = Path(__file__).parents[3]


def test_corpus_is_large_enough():
    assert len(programs()) >= 200
    assert len(models()) >= 30


@pytest.mark.parametrize("page", ["CONTRIBUTING.md", "CHANGELOG.md"])
def test_pages_count_what_there_is(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    counted = re.search(r"(\d+) tensor programs and (\d+)\s+(?:small )?models", text)
    assert counted is not None
    assert [int(number) for number in counted.groups()] == [len(programs()), len(models())]


def test_every_program_is_built_with_its_constants():
    for program in programs().values():
        params = {param.name for param in program.make().params}
        assert params.issuperset(program.constants), program.name


def test_models_are_the_same_whenever_they_are_built():
    for make in models().values():
        first, second = make(), make()
        onnx.checker.check_model(first)
        assert first.SerializeToString(deterministic=True) == second.SerializeToString(
            deterministic=True
        )


def test_names_say_what_differs_from_the_usual():
    options = {"stride": 2, "causal": True}
    assert name_of("conv", (1, "n"), "f16", options, is_constant=True) == (
        "conv-1xn-f16-stride2-causal-constant"
    )
    assert of_library("matmul", (4, 8, 2)).name == "matmul-4x8x2"


def test_equal_names_of_sizes_are_one_size():
    first, number, second, other = dims("s", 4, "s", "t")
    assert first is second
    assert number == 4
    assert first is not other


def test_a_name_is_taken_once():
    one = of_library("matmul", (4, 8, 2))
    with pytest.raises(ValueError, match="two programs are called matmul-4x8x2"):
        named([one, Program(one.name, one.make)])


def test_items_are_found_by_a_part_of_their_name():
    assert len(items()) == len(programs()) + len(models())
    assert items("models/lstm") == ["models/lstm"]
    assert "programs/matmul-64x64x64-constant" in items("matmul-*x64")
    assert items("nothing like it") == []
