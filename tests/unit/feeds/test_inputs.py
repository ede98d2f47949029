"""Arrays that are made up for a model, and those that are given."""

from __future__ import annotations

import os

import numpy as np
import pytest

from tests.expect import raises_code
from tilewright.cli.models import bytes_text, time_text
from tilewright.cli.table import aligned
from tilewright.dtypes import boolean, f16, f32, i64, u8
from tilewright.feeds.inputs import INDEX_LIMIT, arrays_for
from tilewright.model.info import TensorInfo, type_name


def info(name, dtype, *shape):
    return TensorInfo(name, dtype, shape, type_name(dtype))


INFOS = [
    info("pixels", f16, "batch", 3),
    info("picture", u8, 4, 4),
    info("input_ids", i64, "batch", "seq"),
    info("attention_mask", i64, "batch", "seq"),
    info("token_type_ids", i64, "batch", "seq"),
    info("position_ids", i64, "batch", "seq"),
    info("flags", boolean, "seq"),
]


def test_values_are_plausible():
    found = arrays_for(INFOS, [], ["batch=2", "seq=5"])
    assert {name: array.shape for name, array in found.items()} == {
        "pixels": (2, 3),
        "picture": (4, 4),
        "input_ids": (2, 5),
        "attention_mask": (2, 5),
        "token_type_ids": (2, 5),
        "position_ids": (2, 5),
        "flags": (5,),
    }
    assert found["pixels"].dtype == np.float16
    assert 0 <= found["input_ids"].min() <= found["input_ids"].max() < INDEX_LIMIT
    assert found["attention_mask"].all()
    assert not found["token_type_ids"].any()
    assert found["position_ids"].tolist() == [[0, 1, 2, 3, 4]] * 2
    assert found["flags"].all()


def test_symbolic_sizes_are_one_unless_told():
    assert arrays_for(INFOS, [], ["seq=5"])["input_ids"].shape == (1, 5)


def test_arrays_that_are_given_tell_sizes(tmp_path):
    np.save(tmp_path / "ids.npy", np.zeros((3, 7), np.int64))
    found = arrays_for(INFOS, [f"input_ids={tmp_path / 'ids.npy'}"], [])
    assert found["attention_mask"].shape == (3, 7)
    assert list(found) == [known.name for known in INFOS]


@pytest.mark.parametrize(("text", "shape"), [("16000", ()), ("[1, 2]", (2,)), ("[[0]]", (1, 1))])
def test_numbers_stand_for_themselves(text, shape):
    (array,) = arrays_for([info("sr", i64)], [f"sr={text}"], []).values()
    assert array.shape == shape
    assert array.dtype == np.int64


def test_files_with_objects_are_not_loaded(tmp_path):
    np.save(tmp_path / "evil.npy", np.array([{}], object), allow_pickle=True)
    with raises_code("K043"):
        arrays_for([info("x", f32, 1)], [f"x={tmp_path / 'evil.npy'}"], [])


def test_pipes_are_not_read(tmp_path):
    """Of a pipe that nobody writes to one would wait for ever."""
    os.mkfifo(tmp_path / "pipe.npy")
    with raises_code("K043"):
        arrays_for([info("x", f32, 1)], [f"x={tmp_path / 'pipe.npy'}"], [])


@pytest.mark.parametrize("shape", [f"({1 << 60},)", "(" * 3000, "(-1,)"])
def test_files_that_claim_much_are_refused(tmp_path, shape):
    head = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    start = b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little")
    (tmp_path / "much.npy").write_bytes(start + head)
    with raises_code("K043"):
        arrays_for([info("x", f32, 1)], [f"x={tmp_path / 'much.npy'}"], [])


@pytest.mark.parametrize("size", [10**20, 1 << 50])
def test_arrays_beyond_all_memory_are_not_made_up(size):
    with raises_code("K044"):
        arrays_for([info("x", f32, "n")], [], [f"n={size}"])


def test_strings_are_not_made_up():
    with raises_code("K044", facts={"name": "words", "type": "tensor(string)"}):
        arrays_for([TensorInfo("words", None, ("n",), "tensor(string)")], [], [])


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0 B"), (999, "999 B"), (1000, "1.0 kB"), (44_700_000, "44.7 MB")]
)
def test_bytes_for_people(count, text):
    assert bytes_text(count) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 ns"),
        (5e-8, "50 ns"),
        (1.234e-3, "1.23 ms"),
        (2e-6, "2 µs"),
        (75, "75 s"),
        (4000, "4000 s"),
    ],
)
def test_times_for_people(seconds, text):
    assert time_text(seconds) == text


def test_tables_are_aligned():
    assert aligned([["name", "size"], ["a", "10"]]) == "name  size\na       10"


def test_inputs_with_a_default_are_given_or_left_out():
    x, w = info("x", f32, 1), info("w", f32, 1)
    assert list(arrays_for([x], [], [], overridable=[w])) == ["x"]
    found = arrays_for([x], ["w=[2]"], [], overridable=[w])
    assert list(found) == ["x", "w"]
    assert found["w"].tolist() == [2]
