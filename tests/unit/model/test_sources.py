"""What is compiled goes into the cache only under the name of the model that it was made of."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import tilewright as tw
from tests.background import wait_for_writers
from tilewright.model.sources import Sources
from tilewright.runtime.cache import default_caches


def doubled(factor: float) -> onnx.ModelProto:
    node = helper.make_node("Mul", ["x", "w"], ["y"])
    infos = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [4]) for name in "xy"]
    weight = numpy_helper.from_array(np.full(4, factor, np.float32), "w")
    graph = helper.make_graph([node], "scaled", infos[:1], infos[1:], [weight])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)], ir_version=10)


def result(path: Path, cache: Path) -> float:
    return float(tw.compile(path, cache=cache, threads=1).run({"x": np.ones(4, np.float32)})[0][0])


@pytest.mark.parametrize("back", [False, True], ids=["exchanged", "exchanged-and-put-back"])
def test_a_file_that_is_exchanged_after_it_was_hashed_is_not_kept(tmp_path, monkeypatch, back):
    path, cache = tmp_path / "model.onnx", tmp_path / "cache"
    onnx.save(doubled(2), path)
    onnx.save(doubled(7), tmp_path / "other.onnx")
    honest = Sources.of

    def exchanged(model: object, caches: object) -> Sources:
        seen = honest(model, caches)  # type: ignore[arg-type]
        path.rename(tmp_path / "own.onnx")
        os.link(tmp_path / "other.onnx", path)
        return seen

    with monkeypatch.context() as patch:
        patch.setattr(Sources, "of", exchanged)
        if back:
            from tilewright.frontend.onnx import read

            plain = read.read_model

            def put_back(source: object) -> onnx.ModelProto:
                model = plain(source)  # type: ignore[arg-type]
                (tmp_path / "own.onnx").replace(path)
                return model

            patch.setattr("tilewright.frontend.onnx.read_model", put_back)
        assert result(path, cache) == 7
    wait_for_writers()
    onnx.save(doubled(2), tmp_path / "again.onnx")
    assert result(tmp_path / "again.onnx", cache) == 2


def test_a_file_that_stays_is_found_again(tmp_path):
    path, cache = tmp_path / "model.onnx", tmp_path / "cache"
    onnx.save(doubled(3), path)
    assert result(path, cache) == 3
    wait_for_writers()
    assert len(list(default_caches(cache).models.entries())) == 1
    assert result(path, cache) == 3


def test_external_data_belong_to_a_model(tmp_path):
    caches, path = default_caches(tmp_path / "cache"), tmp_path / "model.onnx"
    model = doubled(2)
    onnx.save(model, path, save_as_external_data=True, location="w.bin", size_threshold=0)
    seen = Sources.of(path, caches)
    assert len(seen.digests) == 2
    assert seen.are_unchanged
    (tmp_path / "w.bin").write_bytes(np.full(4, 9, np.float32).tobytes())
    assert not seen.are_unchanged
    assert Sources.of(path, caches).digests[0] == seen.digests[0]
    assert Sources.of(path, caches).digests[1] != seen.digests[1]
