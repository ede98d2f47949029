"""Equal bits: the same artefact in every run, process and company, and on any number of threads."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import tilewright as tw
from tests.load.deterministic import MODELS, digest, hashes
from tests.load.test_load import REPOSITORY

COUNTS = (1, 2, 3, 5, 8, 16, 33)


@pytest.mark.usefixtures("parallel_at_once")
@pytest.mark.parametrize("name", MODELS)
def test_runs_give_equal_bits(name, tmp_path):
    proto, given = MODELS[name]()
    made = tw.compile(proto, threads=1, cache=False)
    assert not made.by_reference
    quiet = digest(made.run(given))
    made.save(tmp_path / "model.tw")
    for threads in COUNTS:
        module = tw.load(tmp_path / "model.tw", threads=threads)
        assert module.threads == threads
        assert digest(module.run(given)) == quiet
        if threads <= 2:
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


def test_compiling_twice_gives_equal_files(tmp_path):
    """Nothing that compiles a model is random, and files know no number of threads."""
    proto, _ = MODELS["pictures"]()
    for threads in (1, 2):
        tw.compile(proto, threads=threads, cache=False).save(tmp_path / f"{threads}.tw")
    assert (tmp_path / "1.tw").read_bytes() == (tmp_path / "2.tw").read_bytes()
