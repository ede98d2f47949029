"""A compiled model that has changed anywhere since it was written is never run."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import tilewright as tw
from tests.expect import raises_code
from tilewright.cli import main
from tilewright.errors import ArtefactError
from tilewright.runtime import artefact

SAMPLES = 40
"""Places of each section and gap that are changed, beside its first and its last byte."""


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A model with several blocks of weights."""
    weights = np.random.default_rng(3).standard_normal((700, 800)).astype(np.float32)
    x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, ["n", None]) for n in "xy")
    x.type.tensor_type.shape.dim[1].dim_value = 700
    nodes = [helper.make_node("MatMul", ["x", "w"], ["m"]), helper.make_node("Relu", ["m"], ["y"])]
    graph = helper.make_graph(nodes, "layer", [x], [y], [numpy_helper.from_array(weights, "w")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)], ir_version=10)
    path = tmp_path_factory.mktemp("damaged") / "layer.tw"
    tw.compile(model, cache=False).save(path)
    return path


def regions(data):
    """The header, all sections, and what lies between them, as (begin, end)."""
    table = data[artefact._HEADER.size : artefact._CHECKSUM_AT]
    sections = [(at, at + size) for at, size, _ in artefact._SECTION.iter_unpack(table)]
    found, end = [(0, artefact._START)], artefact._START
    for begin, after in sections:
        found += [(end, begin), (begin, after)]
        end = after
    assert end == len(data)
    return [(begin, end) for begin, end in found if end > begin]


def test_one_bit_anywhere_is_noticed(saved, tmp_path, rng):
    data = saved.read_bytes()
    found = regions(data)
    assert len(found) == 7  # the header, four sections, and two gaps
    path = tmp_path / "changed.tw"
    for begin, end in found:
        places = {begin, end - 1, *map(int, rng.integers(begin, end, SAMPLES))}
        for at in places:
            changed = bytearray(data)
            changed[at] ^= 1 << int(rng.integers(8))
            path.write_bytes(changed)
            with pytest.raises(ArtefactError) as refused:
                tw.load(path, threads=1)
            assert refused.value.code.id in {"A110", "A111", "A112"}


@pytest.mark.parametrize("threads", [1, 2])
def test_scattered_and_regular_damage_of_weights_is_noticed(saved, tmp_path, rng, threads):
    """Many bytes, equal pieces that change places, and the same bit of every number."""
    data = np.frombuffer(saved.read_bytes(), np.uint8)
    begin, end = regions(data.tobytes())[-1]
    pieces = slice(begin, begin + 4096), slice(begin + 65536, begin + 69632)
    path = tmp_path / "changed.tw"

    def scattered(copy):
        copy[rng.integers(begin, end, 50)] ^= 255

    def exchanged(copy):
        copy[pieces[0]], copy[pieces[1]] = data[pieces[1]], data[pieces[0]]

    def signs(copy):
        copy[begin + 3 : end : 4] ^= 128

    def erased(copy):
        copy[pieces[0]] = 0

    for damage in (scattered, exchanged, signs, erased):
        copy = data.copy()
        damage(copy)
        path.write_bytes(copy)
        with raises_code("A111", text="of its weights"):
            tw.load(path, threads=threads)


def test_the_command_line_says_so_and_fails(saved, tmp_path, capsys):
    path = tmp_path / "changed.tw"
    data = saved.read_bytes()
    path.write_bytes(data[:-9] + bytes([data[-9] ^ 64]) + data[-8:])
    for command in ("run", "show", "bench"):
        assert main([command, str(path), "--size", "n=2"]) != 0
        assert "A111: `changed.tw` is damaged" in capsys.readouterr().err
