"""Files of compiled models: what is saved comes back, and whatever is damaged is refused."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import resource
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.expect import raises_code
from tests.images import kernel_of, renamed, texts_of
from tilewright.errors import ArtefactError
from tilewright.llvm.link import link
from tilewright.llvm.machine import object_of
from tilewright.runtime import artefact, blocks
from tilewright.runtime.artefact import Parts, open_artefact, save
from tilewright.target import Target
from tilewright.tensor import library

HOST = Target.host()
ROOT = Path(__file__).parents[3]
PROGRAM = {"name": "m", "steps": [1, 2, {"größe": "n"}], "none": None}


def parts(**changes):
    weights = (np.arange(300, dtype=np.float32), b"abc", np.zeros((0, 4)), bytes(5000))
    given = Parts(PROGRAM, b"code" * 700, weights, HOST, "0.1.0", {"interface": ["A"]})
    return dataclasses.replace(given, **changes)


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "model.tw"
    save(path, parts())
    return path


def test_what_is_saved_comes_back(saved):
    found = open_artefact(saved, verify=True)
    assert found.program_json == PROGRAM
    assert found.image.bytes == b"code" * 700
    assert found.weights == np.arange(300, dtype=np.float32).tobytes() + b"abc" + bytes(5000)
    assert found.weights.readonly
    assert found.metadata["tool"] == "0.1.0"
    assert found.metadata["extra"] == {"interface": ["A"]}
    assert found.metadata["target"]["features"] == sorted(HOST.code_features)


def test_code_of_a_file_runs(tmp_path, rng):
    func = renamed(library.softmax(6, 50), "softmax")
    (text,) = texts_of([func], HOST)
    linked = link([object_of(text, HOST)])
    save(tmp_path / "m.tw", parts(code=linked.code))
    kernel = kernel_of(text, linked, open_artefact(tmp_path / "m.tw").image)
    x = rng.standard_normal((6, 50), np.float32)
    np.testing.assert_allclose(kernel(x).sum(axis=1), np.ones(6), rtol=1e-5)


def test_parts_without_code_and_weights(tmp_path):
    save(tmp_path / "m.tw", parts(code=b"", weights=()))
    found = open_artefact(tmp_path / "m.tw", verify=True)
    assert (bytes(found.image.bytes), bytes(found.weights)) == (b"", b"")


def test_equal_parts_give_equal_files(tmp_path):
    for name in ("one.tw", "two.tw"):
        save(tmp_path / name, parts())
    assert (tmp_path / "one.tw").read_bytes() == (tmp_path / "two.tw").read_bytes()


def test_code_and_weights_begin_at_large_pages(saved):
    found = open_artefact(saved)
    assert found.image.address % 4096 == 0
    assert saved.read_bytes()[65536:][:4] == b"code"
    assert np.frombuffer(found.weights, np.uint8).ctypes.data % 4096 == 0


def test_mapped_parts_outlive_file_and_artefact(saved):
    weights, image = (found := open_artefact(saved)).weights, found.image
    del found
    saved.unlink()
    assert weights[1200:1203] == b"abc"
    assert image.bytes[:4] == b"code"


def test_saving_replaces_in_one_step(saved):
    old = open_artefact(saved)
    save(saved, parts(program="new"))
    assert old.program_json == PROGRAM
    assert old.weights[1200:1203] == b"abc"
    assert open_artefact(saved).program_json == "new"
    assert list(saved.parent.iterdir()) == [saved]


def test_saving_goes_on_when_the_program_ends(tmp_path):
    """The cache is written in the background: a short script is over by then."""
    script = f"""
import threading, time
from tests.unit.runtime.test_artefact import parts
from tilewright.runtime.artefact import save
def keep():
    while threading.main_thread().is_alive(): time.sleep(0.001)
    save({str(tmp_path / "late.tw")!r}, parts())
threading.Thread(target=keep).start()
"""
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert open_artefact(tmp_path / "late.tw").program_json == PROGRAM


def test_failed_saving_leaves_the_old_file(saved):
    before = saved.read_bytes()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))
    try:
        with pytest.raises(OSError, match="too large"):
            save(saved, parts(weights=(bytes(200_000),)))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert saved.read_bytes() == before
    assert list(saved.parent.iterdir()) == [saved]


def test_other_files_are_not_models(tmp_path):
    for content in (b"", b"\x89tw", b"PK\x03\x04" + bytes(100), b"text\n" * 50):
        (tmp_path / "m.tw").write_bytes(content)
        with raises_code("A110"):
            open_artefact(tmp_path / "m.tw")
    with pytest.raises(FileNotFoundError):
        open_artefact(tmp_path / "none.tw")
    with pytest.raises(IsADirectoryError):
        open_artefact(tmp_path)


@pytest.mark.parametrize("field", [8, 12], ids=["format", "abi"])
def test_other_versions_are_named(saved, field):
    data = bytearray(saved.read_bytes())
    struct.pack_into("<I", data, field, 77)
    saved.write_bytes(data)
    with raises_code("A112", text="77"):
        open_artefact(saved)


def test_missing_features_are_named_before_code_is_mapped(tmp_path, monkeypatch):
    rare = dataclasses.replace(HOST, features=HOST.features | {"amx-fp16", "avx512fp16"})
    save(tmp_path / "m.tw", parts(target=rare))
    monkeypatch.setattr(artefact, "Image", None)
    monkeypatch.setattr(artefact, "present", lambda: ("x86_64", HOST.code_features - {"amx-fp16"}))
    with raises_code("A113", text="lacks amx-fp16"):
        open_artefact(tmp_path / "m.tw")


def test_other_architectures_are_named(tmp_path):
    other = Target.named("aarch64" if HOST.arch == "x86_64" else "x86-64")
    save(tmp_path / "m.tw", parts(target=other))
    with raises_code("A113", text=f"the architecture {other.arch}"):
        open_artefact(tmp_path / "m.tw")


@pytest.mark.parametrize("size", [10, 24, 140, 159, 160, 200, 65536, 70000, -1])
def test_truncated_files_are_refused(saved, size):
    data = saved.read_bytes()
    saved.write_bytes(data[:size])
    with raises_code("A111"):
        open_artefact(saved)


def test_longer_files_are_refused(saved):
    saved.write_bytes(saved.read_bytes() + b"\0")
    with raises_code("A111", text="bytes and should have"):
        open_artefact(saved)


def test_weights_are_compared_unless_they_are_left_unread(saved):
    data = bytearray(saved.read_bytes())
    data[-1] ^= 1
    saved.write_bytes(data)
    for verify in (None, True):
        with raises_code("A111", text="weights"):
            open_artefact(saved, verify=verify)
    found = open_artefact(saved, verify=False)
    for check in (found.check, found.verify):
        with raises_code("A111", text="weights"):
            check()


def test_the_block_that_has_changed_is_named(tmp_path):
    path, block = tmp_path / "m.tw", blocks.BLOCK_BYTES
    save(path, parts(weights=(bytes(2 * block + 100),)))
    data = bytearray(path.read_bytes())
    data[-1] ^= 128
    path.write_bytes(data)
    for threads in (1, 3):
        with raises_code("A111", text=f"bytes {2 * block} to {2 * block + 100} of its weights"):
            open_artefact(path, threads=threads)


def test_nothing_lies_between_sections(saved):
    whole = saved.read_bytes()
    for at in (artefact.PAGE - 1, 2 * artefact.PAGE - 1):
        assert whole[at] == 0
        saved.write_bytes(whole[:at] + b"\1" + whole[at + 1 :])
        with raises_code("A111", text="between its sections"):
            open_artefact(saved)


def sealed(data):
    """The header with a checksum that fits: what somebody who means harm would write."""
    digest = hashlib.blake2b(data[: artefact._CHECKSUM_AT], digest_size=16).digest()
    return data[: artefact._CHECKSUM_AT] + digest + data[artefact._START :]


HOSTILE = [0, 1, 15, 160, 65536, 1 << 28, 1 << 31, (1 << 63) - 1, 1 << 63, (1 << 64) - 1]


@pytest.mark.parametrize("section", range(4))
@pytest.mark.parametrize("value", HOSTILE)
def test_hostile_offsets_and_sizes_are_refused(saved, section, value):
    data = saved.read_bytes()
    for field in (0, 8):
        changed = bytearray(data)
        at = artefact._HEADER.size + section * artefact._SECTION.size + field
        if struct.unpack_from("<Q", changed, at)[0] == value:
            continue
        struct.pack_into("<Q", changed, at, value)
        saved.write_bytes(sealed(bytes(changed)))
        with raises_code("A111"):
            open_artefact(saved)


def test_hostile_file_size_is_refused(saved):
    changed = bytearray(saved.read_bytes())
    struct.pack_into("<Q", changed, 16, 1 << 62)
    saved.write_bytes(sealed(bytes(changed)))
    with raises_code("A111"):
        open_artefact(saved)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[",
        "7",
        "{}",
        "[" * 100_000,
        '{"a":' * 50_000,
        "9" * 10_000,
        '{"tool":1,"target":{},"program":1,"extra":{}}',
        json.dumps({"tool": "", "target": {"arch": "x86_64"}, "program": 1, "extra": {}}),
        '{"tool":"","target":{"arch":"a","features":[1],"name":"","cpu":""},"program":1,"extra":{}}',
        "\ud800",
    ],
    ids=range(11),
)
def test_hostile_metadata_is_refused(tmp_path, monkeypatch, text):
    monkeypatch.setattr(artefact, "_metadata", lambda _: text.encode("utf-8", "surrogatepass"))
    save(tmp_path / "m.tw", parts())
    with raises_code("A111", text="metadata"):
        open_artefact(tmp_path / "m.tw")


def test_damaged_files_are_refused_or_read_as_they_were(tmp_path, rng):
    """2500 mutants: bits flipped, bytes changed, parts cut out, moved and doubled."""
    path, mutant = tmp_path / "m.tw", tmp_path / "mutant.tw"
    save(path, parts(weights=(b"weights",)))
    whole = path.read_bytes()
    original = open_artefact(path)
    interesting = [*range(160 + len(artefact._metadata(parts()))), *range(65536, 65600)]
    refused, codes = 0, set()
    for _ in range(2500):
        data = bytearray(whole)
        for _ in range(rng.integers(1, 4)):
            at = int(rng.choice(interesting)) if rng.random() < 0.8 else rng.integers(len(data))
            at = min(at, len(data) - 1)
            length = int(rng.integers(1, 40))
            match rng.integers(5):
                case 0:
                    data[at] ^= 1 << rng.integers(8)
                case 1:
                    data[at : at + length] = rng.bytes(len(data[at : at + length]))
                case 2:
                    del data[at : at + length]
                case 3:
                    data[at:at] = data[at : at + length]
                case 4:
                    del data[at + 1 :]
        mutant.write_bytes(sealed(bytes(data)) if rng.random() < 0.5 else data)
        try:
            found = open_artefact(mutant)
        except ArtefactError as error:
            codes.add(error.code.id)
            refused += 1
            continue
        assert found.program_json == original.program_json
        assert found.image.bytes == original.image.bytes
        assert found.weights == original.weights
    assert refused > 2000
    assert codes == {"A110", "A111", "A112"}
