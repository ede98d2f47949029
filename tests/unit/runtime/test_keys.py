"""Keys of the compile cache: equal for equal compilations, different for all others."""

from __future__ import annotations

import dataclasses
import io
import os
import subprocess
import sys
import time

import pytest

from tilewright.runtime import keys
from tilewright.runtime.cache import Cache
from tilewright.runtime.keys import compile_key, compiler_state, digest_of_bytes, digest_of_open
from tilewright.target import Bandwidth, Measured, Rate, Target

TARGET = Target.named("x86-64-v3")
GIVEN = {"model": ["ab"], "target": TARGET, "options": {"layout": "nhwc", "a": 1}}


def digest_of(path, memory=None):
    with path.open("rb") as file:
        return digest_of_open(file, memory)


@pytest.fixture
def memory(tmp_path):
    return Cache(tmp_path / "digests", 10_000, ".digest")


@pytest.fixture
def model(tmp_path):
    """A file that was written a while ago."""
    path = tmp_path / "model.onnx"
    path.write_bytes(b"model")
    return path


@pytest.fixture
def _an_hour_later(monkeypatch):
    later = time.time_ns() + 3600 * 10**9
    monkeypatch.setattr(keys.time, "time_ns", lambda: later)


def test_key_is_one_of_a_cache(memory):
    assert memory.get(compile_key(**GIVEN)) is None


def test_order_of_options_does_not_matter():
    other = {**GIVEN, "options": {"a": 1, "layout": "nhwc"}}
    assert compile_key(**GIVEN) == compile_key(**other)


@pytest.mark.parametrize(
    "change",
    [
        {"model": ["ac"]},
        {"model": ["ab", ""]},
        {"model": ["a", "b"]},
        {"options": {}},
        {"options": {"layout": "nchw", "a": 1}},
        {"target": dataclasses.replace(TARGET, features=TARGET.features - {"fma"})},
        {"target": dataclasses.replace(TARGET, llvm_features="+sse2")},
        {"target": dataclasses.replace(TARGET, caches=TARGET.caches[:1])},
        {
            "target": TARGET.with_measured(
                Measured(Rate(1, 1), (Bandwidth("L1", Rate(1, 1), Rate(1, 1), Rate(1, 1)),))
            )
        },
    ],
    ids=range(9),
)
def test_whatever_decides_changes_the_key(change):
    base = {**GIVEN, "target": TARGET.with_measured(None)}
    assert compile_key(**base) != compile_key(**{**base, **change})


def test_what_changes_from_run_to_run_does_not_count():
    other = dataclasses.replace(TARGET, name="other", frequency_ghz=TARGET.frequency_ghz + 0.1)
    assert compile_key(**GIVEN) == compile_key(**{**GIVEN, "target": other})


OTHER_PROCESS = """\
from tilewright.runtime import keys
from tilewright.target import Target
keys.compiler_state = lambda: "the same sources"
print(keys.compile_key(["ab"], Target.named("x86-64-v3"), {"a": 1}), end="")
"""


def test_key_is_the_same_in_another_process(monkeypatch):
    monkeypatch.setattr(keys, "compiler_state", lambda: "the same sources")
    expected = compile_key(["ab"], Target.named("x86-64-v3"), {"a": 1})
    for seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        command = [sys.executable, "-c", OTHER_PROCESS]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        assert done.stdout == expected


def test_compiler_is_known_by_its_sources(tmp_path, monkeypatch):
    monkeypatch.setattr(keys, "PACKAGE", tmp_path)
    (tmp_path / "part").mkdir()
    source = tmp_path / "part" / "lower.py"
    states = set()
    for text in ("a = 1", "a = 2", "a = 10"):
        source.write_text(text)
        states.add(compiler_state.__wrapped__())
    source.rename(tmp_path / "part" / "raise.py")
    states.add(compiler_state.__wrapped__())
    assert len(states) == 4
    (tmp_path / "notes.txt").write_text("no source")
    assert compiler_state.__wrapped__() in states


@pytest.mark.usefixtures("_an_hour_later")
def test_digest_of_a_file_is_remembered(model, memory):
    expected = digest_of_bytes(b"model")
    assert digest_of(model, memory) == digest_of(model) == expected
    (entry,) = memory.entries()
    entry.path.write_text(f"{'00' * 32} {entry.key}")
    assert digest_of(model, memory) == "00" * 32, "it is not read again"
    entry.path.write_text("damaged")
    assert digest_of(model, memory) == expected


@pytest.mark.usefixtures("_an_hour_later")
def test_changed_file_has_another_digest(model, memory):
    first = digest_of(model, memory)
    state = model.stat()
    model.write_bytes(b"other")
    os.utime(model, ns=(state.st_atime_ns, state.st_mtime_ns))  # whoever wants to hide it
    assert digest_of(model, memory) == digest_of_bytes(b"other") != first


def test_file_that_was_just_written_is_not_remembered(model, memory):
    assert digest_of(model, memory) == digest_of_bytes(b"model")
    assert memory.entries() == []


@pytest.mark.usefixtures("_an_hour_later")
def test_file_that_changes_while_it_is_read_is_not_remembered(model, memory):
    class Meddling(io.FileIO):
        def read(self, size=-1):
            model.write_bytes(b"changed in the meantime")
            return super().read(size)

    with Meddling(model) as file:
        digest_of_open(file, memory)
    assert memory.entries() == []
