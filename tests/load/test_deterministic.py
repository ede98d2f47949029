"""Equal bits: the same artefact with as many threads, in every run, process and company."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import tilewright as tw
from tests.load.deterministic import MODELS, digest, hashes
from tests.load.test_load import REPOSITORY


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("name", MODELS)
def test_runs_give_equal_bits(name, threads):
    proto, given = MODELS[name]()
    module = tw.compile(proto, threads=threads, cache=False)
    assert not module.by_reference
    quiet = digest(module.run(given))
    found = hashes(module, given)
    assert set(found) == {quiet}
    assert len(found) > 10


@pytest.mark.parametrize("name", ["pictures", "scattered", "summed"])
def test_another_process_gives_equal_bits(name, tmp_path):
    proto, given = MODELS[name]()
    module = tw.compile(proto, threads=2, cache=False)
    path, arrays = tmp_path / "model.tw", tmp_path / "feeds.npz"
    module.save(path)
    np.savez(arrays, **given)
    command = [sys.executable, "-m", "tests.load.deterministic", path, "2", arrays]
    said = subprocess.run(
        command, cwd=REPOSITORY, capture_output=True, text=True, timeout=120, check=True
    )
    assert said.stdout.split() == [digest(module.run(given))]


def test_compiling_twice_gives_equal_bits():
    """Nothing that compiles a model is random, either."""
    proto, given = MODELS["pictures"]()
    modules = [tw.compile(proto, threads=2, cache=False) for _ in range(2)]
    assert len({digest(module.run(given)) for module in modules}) == 1
