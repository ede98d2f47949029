"""Files of models: names, made once, never half."""

from __future__ import annotations

import pytest

onnx = pytest.importorskip("onnx", reason="makes ONNX files")

from benchmarks.models.__main__ import main  # noqa: E402
from benchmarks.models.make import Choice, NotMade, default_folder, file_of, make  # noqa: E402
from benchmarks.models.registry import MODELS  # noqa: E402
from benchmarks.models.spec import Input, Model, Packaged, image  # noqa: E402
from tilewright import options  # noqa: E402

LIGHT = MODELS["light-squeezenet"]
FILE = "backend/test/data/light/light_squeezenet.onnx"


def silent(_text):
    pass


def packaged(dims, sizes, dynamic=(), **changes):
    given = (Input("data_0", dims, image),)
    return Model("m", "test", Packaged("onnx", FILE, **changes), given, (sizes,), dynamic)


def test_file_names_tell_the_choice():
    def name(model, *choice):
        return file_of(MODELS[model], default_folder(), Choice(*choice)).name

    assert name("resnet18") == "resnet18.onnx"
    assert name("resnet18", True) == "resnet18.dynamic.onnx"
    assert name("resnet18", False, "script") == "resnet18.script.onnx"
    assert name("resnet18", True, "dynamo") == "resnet18.dynamic.onnx"
    assert name("silero-vad", True, "script") == "silero-vad.dynamic.onnx"
    assert default_folder() == options.cache_dir() / "models"


def test_a_file_is_made_once(tmp_path):
    told = []
    path = make(LIGHT, tmp_path / "models", Choice(), told.append)
    assert len(told) == 2
    stamp = path.stat().st_mtime_ns
    assert make(LIGHT, tmp_path / "models", Choice(), told.append) == path
    assert (len(told), path.stat().st_mtime_ns) == (2, stamp)
    assert list(path.parent.iterdir()) == [path]


def test_a_failure_leaves_nothing_behind(tmp_path):
    def fail(_model):
        raise MemoryError

    with pytest.raises(MemoryError):
        make(packaged((1, 3, 224, 224), {}, edit=fail), tmp_path, Choice(), silent)
    assert not list(tmp_path.iterdir())


def test_what_cannot_be_made_is_said_with_the_reason(tmp_path):
    lost = Model("lost", "test", Packaged("no_such_package", "x.onnx"), LIGHT.inputs, ({},))
    with pytest.raises(NotMade, match="lost: no module named 'no_such_package'"):
        make(lost, tmp_path, Choice(), silent)
    with pytest.raises(NotMade, match="all its sizes are fixed"):
        make(LIGHT, tmp_path, Choice(dynamic=True), silent)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("dynamic", "expected"), [(False, [2, 3, 224, 224]), (True, ["n", 3, 224, 224])]
)
def test_packaged_files_get_numbers_or_names(tmp_path, dynamic, expected):
    model = packaged(("n", 3, 224, 224), {"n": 2}, ("n",))
    (given,) = onnx.load(make(model, tmp_path, Choice(dynamic), silent)).graph.input
    dims = given.type.tensor_type.shape.dim
    assert [dim.dim_param or dim.dim_value for dim in dims] == expected


def test_dimensions_that_cannot_be_numbers_keep_their_names(tmp_path):
    model = packaged(("n", 3, 224, 224), {"n": 2}, ("n",), takes_numbers=False)
    (given,) = onnx.load(make(model, tmp_path, Choice(), silent)).graph.input
    assert given.type.tensor_type.shape.dim[0].dim_param == "n"


def test_filled_twins_have_weights_instead_of_nodes_that_make_them(tmp_path):
    light = onnx.load(make(LIGHT, tmp_path, Choice(), silent))
    filled = onnx.load(make(MODELS["filled-squeezenet"], tmp_path, Choice(), silent))
    onnx.checker.check_model(filled, full_check=True)
    made = [node for node in light.graph.node if node.op_type == "ConstantOfShape"]
    assert made
    assert len(filled.graph.node) == len(light.graph.node) - len(made)
    weights = {item.name: onnx.numpy_helper.to_array(item) for item in filled.graph.initializer}
    assert weights.keys() >= {node.output[0] for node in made}
    assert all(array.std() > 0 for array in weights.values() if array.dtype == "f4")


def test_command_line_makes_and_lists(tmp_path, capsys):
    folder = ["--models", str(tmp_path)]
    assert main(["make", "light-squeezenet", *folder]) == 0
    assert f"1 of 1 models in {tmp_path}" in capsys.readouterr().out
    assert main(["list", *folder, "light-squeezenet", "light-vgg19"]) == 0
    made, missing = capsys.readouterr().out.splitlines()
    assert "MB" in made
    assert "not made" in missing
    assert main(["make", *folder, "--dynamic", "light-squeezenet"]) == 1
    assert "skipped light-squeezenet: all its sizes are fixed" in capsys.readouterr().out
    assert main(["make", "abacus"]) == 2
    assert "unknown: abacus" in capsys.readouterr().err
