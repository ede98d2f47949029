"""Data beside a model come from its folder, complete and as they were asked for, or not at all."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import numpy as np
import onnx
import pytest

import tilewright as tw
from tests.expect import raises_code
from tests.hostile.external import SECRET, weights_of, write_model, write_weights
from tests.small import WEIGHTS, two_outputs
from tilewright.errors import ModelError
from tilewright.frontend.onnx import external_files, read_model


@pytest.fixture
def folder(tmp_path):
    """A folder for a model, with a file beside the folder that nobody may read."""
    write_weights(tmp_path / "secret.bin", SECRET)
    inside = tmp_path / "models"
    inside.mkdir()
    return inside


@pytest.mark.parametrize("location", ["w.bin", "./w.bin", "deep/er/w.bin"])
def test_data_inside_of_the_folder_are_read(folder, location):
    (folder / "deep" / "er").mkdir(parents=True)
    write_weights(folder / location, before=b"12345678")
    model = read_model(write_model(folder, location=location, offset=8, length=WEIGHTS.nbytes))
    assert np.array_equal(weights_of(model), WEIGHTS)


def test_a_link_that_stays_inside_is_followed(folder):
    write_weights(folder / "w.bin")
    (folder / "link.bin").symlink_to("w.bin")
    assert np.array_equal(weights_of(read_model(write_model(folder, location="link.bin"))), WEIGHTS)


@pytest.mark.parametrize(
    "location",
    [
        *("../secret.bin", "inside/../../secret.bin", "..\\secret.bin", "{absolute}"),
        *("//secret.bin", "C:\\secret.bin", "", ".", "..", "w.bin\0"),
        *("/dev/zero", "/proc/self/mem"),
    ],
)
def test_locations_that_lead_out_are_refused(folder, location):
    (folder / "inside").mkdir()
    absolute = str(folder.parent / "secret.bin")
    with raises_code("M003"):
        read_model(write_model(folder, location=location.format(absolute=absolute)))


@pytest.mark.parametrize("target", ["../secret.bin", "{absolute}", "/dev/zero"])
def test_links_that_lead_out_are_refused(folder, target):
    (folder / "link.bin").symlink_to(target.format(absolute=folder.parent / "secret.bin"))
    with raises_code("M003", text="leads out of the folder"):
        read_model(write_model(folder, location="link.bin"))


def test_a_linked_folder_that_leads_out_is_refused(folder):
    (folder / "inside").symlink_to(folder.parent)
    with raises_code("M003", text="leads out of the folder"):
        read_model(write_model(folder, location="inside/secret.bin"))


def test_a_store_that_the_user_names_may_be_linked_to(folder, monkeypatch):
    (folder / "link.bin").symlink_to("../secret.bin")
    monkeypatch.setenv("TILEWRIGHT_DATA_FOLDERS", str(folder.parent))
    assert np.array_equal(weights_of(read_model(write_model(folder, location="link.bin"))), SECRET)


def test_a_pipe_is_refused_at_once(folder):
    os.mkfifo(folder / "pipe")
    with raises_code("M003", text="not a plain file"):
        read_model(write_model(folder, location="pipe"))


def test_a_folder_is_refused(folder):
    (folder / "inside").mkdir()
    with raises_code("M003"):
        read_model(write_model(folder, location="inside"))


@pytest.mark.parametrize(
    "entries",
    [
        {"length": WEIGHTS.nbytes - 4},
        {"length": WEIGHTS.nbytes + 4},
        {"length": 2**62},
        {"length": -1},
        {"offset": 4},
        {"offset": 2**63},
        {"offset": "1e3"},
        {"offset": "٣"},
        {"offset": "0x10"},
    ],
)
def test_sizes_that_do_not_fit_are_refused(folder, entries):
    write_weights(folder / "w.bin")
    with raises_code("M003"):
        read_model(write_model(folder, location="w.bin", **entries))


def test_unknown_keys_change_nothing(folder):
    write_weights(folder / "w.bin")
    path = write_model(folder, location="w.bin", basepath="/", __class__="x", checksum="0")
    assert np.array_equal(weights_of(read_model(path)), WEIGHTS)


def test_the_same_key_twice_is_refused(folder):
    write_weights(folder / "w.bin")
    model = onnx.load(write_model(folder, location="w.bin"), load_external_data=False)
    model.graph.initializer[0].external_data.add(key="location", value="other.bin")
    (folder / "model.onnx").write_bytes(model.SerializeToString())
    with raises_code("M003", text="twice"):
        read_model(folder / "model.onnx")


def test_tensors_that_share_few_bytes_many_times_are_refused(folder):
    write_weights(folder / "w.bin")
    model = onnx.load(write_model(folder, location="w.bin"), load_external_data=False)
    for number in range(100):
        copy = model.graph.initializer.add()
        copy.CopyFrom(model.graph.initializer[0])
        copy.name = f"w{number}"
    (folder / "model.onnx").write_bytes(model.SerializeToString())
    with raises_code("M003", text="more than could be"):
        read_model(folder / "model.onnx")


def test_other_names_of_a_file_do_not_make_it_larger(folder):
    """Each would have counted as another file, whose bytes may be shared again."""
    write_weights(folder / "w.bin")
    (folder / "link.bin").symlink_to("w.bin")
    os.link(folder / "w.bin", folder / "hard.bin")
    model = onnx.load(write_model(folder, location="w.bin"), load_external_data=False)
    locations = [f"{'./' * k}{name}" for k in range(9) for name in ("link.bin", "hard.bin")]
    for number, location in enumerate(locations):
        copy = model.graph.initializer.add()
        copy.CopyFrom(model.graph.initializer[0])
        copy.name, copy.external_data[0].value = f"w{number}", location
    (folder / "model.onnx").write_bytes(model.SerializeToString())
    with raises_code("M003", text="more than could be"):
        read_model(folder / "model.onnx")


def test_huge_dimensions_allocate_nothing(folder):
    (folder / "w.bin").touch()
    os.truncate(folder / "w.bin", 1 << 40)  # a file without a single block
    model = onnx.load(write_model(folder, location="w.bin"), load_external_data=False)
    model.graph.initializer[0].dims[:] = [1 << 19, 1 << 19]
    (folder / "model.onnx").write_bytes(model.SerializeToString())
    with raises_code("M002", text="fit into memory"):
        read_model(folder / "model.onnx")


@pytest.mark.parametrize("as_bytes", [True, False])
def test_a_model_without_a_folder_has_no_data_beside_it(folder, as_bytes):
    write_weights(folder / "w.bin")
    model = onnx.load(write_model(folder, location="w.bin"), load_external_data=False)
    with raises_code("M003", text="give the path"):
        tw.compile(model.SerializeToString() if as_bytes else model, cache=False)


def test_the_cache_looks_at_data_inside_of_the_folder_only(folder):
    """What is hashed for the key of the cache is opened as carefully as what is compiled."""
    write_weights(folder / "w.bin")
    inside = write_model(folder, location="w.bin")
    outside = write_model(folder, "other.onnx", location="../secret.bin")
    assert [file.read() for file in external_files(inside)] == [WEIGHTS.tobytes()]
    assert list(external_files(outside)) == []


@pytest.mark.parametrize("piece", [1, 7, 8, 9, 64])
def test_data_are_found_wherever_a_file_is_cut(folder, monkeypatch, piece):
    """A model is looked through in pieces: mapped, one that becomes shorter ends the process."""
    monkeypatch.setattr("tilewright.frontend.onnx.read._PIECE", piece)
    write_weights(folder / "w.bin")
    model = write_model(folder, location="w.bin")
    assert [file.read() for file in external_files(model)] == [WEIGHTS.tobytes()]


def test_other_data_are_another_model_for_the_cache(folder, tmp_path):
    """Also of tensors in attributes, which are not among the weights."""
    model = two_outputs()
    node = onnx.helper.make_node("Constant", [], ["w"], value=model.graph.initializer[0])
    del model.graph.initializer[:]
    model.graph.node.insert(0, node)
    tensor = model.graph.node[0].attribute[0].t
    tensor.ClearField("raw_data")
    tensor.data_location = onnx.TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="w.bin")
    (folder / "model.onnx").write_bytes(model.SerializeToString())
    x = np.ones((1, 8), np.float32)
    for array in (WEIGHTS, SECRET):
        write_weights(folder / "w.bin", array)
        module = tw.compile(folder / "model.onnx", cache=tmp_path / "cache", threads=1)
        assert np.allclose(module.run({"x": x})[0], x @ array, atol=1e-5)


def test_a_file_that_is_exchanged_meanwhile_is_never_one_outside(folder):
    """A thread swaps the file for a link while models are read: each read gives ours, or fails."""
    path = write_model(folder, location="w.bin")
    write_weights(folder / "w.bin")
    stop = threading.Event()

    def swap() -> None:
        number = 0
        while not stop.is_set():
            number += 1
            draft = folder / f"draft{number % 2}"
            draft.unlink(missing_ok=True)
            if number % 2:
                draft.symlink_to("../secret.bin")
            else:
                write_weights(draft)
            draft.replace(folder / "w.bin")

    thread = threading.Thread(target=swap)
    thread.start()
    read, refused = 0, []
    try:
        for _ in range(300):
            try:
                found = weights_of(read_model(path))
            except ModelError as error:
                refused.append(error.code.id)
            else:
                assert np.array_equal(found, WEIGHTS)
                read += 1
    finally:
        stop.set()
        thread.join()
    assert set(refused) <= {"M003"}
    assert read + len(refused) == 300


def test_a_model_that_is_a_pipe_is_refused(folder):
    os.mkfifo(folder / "model.onnx")
    with raises_code("M001", text="not a plain file"):
        tw.compile(folder / "model.onnx")


def test_a_model_that_is_a_device_is_refused():
    with raises_code("M001", text="not a plain file"):
        tw.compile(Path("/dev/zero"), cache=False)
