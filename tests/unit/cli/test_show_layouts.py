"""`show --layouts`: what it prints, that it compiles nothing, and where it has nothing to show."""

from __future__ import annotations

import dataclasses
import json

import onnx
import pytest

from tests.feature_maps import network
from tests.small import sequence_model
from tilewright.cli import main
from tilewright.cli import show_model as shown
from tilewright.cli.show_layouts import layouts_text
from tilewright.layouts.show import ConversionRow, Overview, SiteRow

WIDTH = 80
COMMAND = ["--target", "x86-64-v3", "--threads", "1"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("layouts")
    onnx.save(network(), path / "network.onnx")
    return path


@pytest.fixture(autouse=True)
def _own_cache(folder, monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(folder / "cache"))


@pytest.fixture
def model(folder):
    return str(folder / "network.onnx")


@pytest.fixture
def _no_kernels(monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("kernels are compiled")

    monkeypatch.setattr(shown, "compile_parts", refuse)


SITE = SiteRow(
    site=0,
    reads=("x",),
    operators=("conv", "relu"),
    computes="conv 3×3",
    algorithm="F(4, 3)",
    source="nchw",
    result="nhwc+halo",
    value="y",
    dtype="f32",
    shape=("batch * 2", "20", "20", "48"),
    cycles=12_345.0,
    margin=1.15,
    is_view=False,
)
MOVED = ConversionRow("y", ("1",), "nhwc", "nchw", 0, (1, 4), "site 4 reads nchw only", 999.6)


def drawn(**changes):
    """A text of two sites and a conversion between them, with what is said here changed."""
    second = dataclasses.replace(SITE, site=1, reads=(0,), cycles=None, algorithm="", margin=1.0)
    made = Overview(
        layouts="auto",
        target="x86-64-v3",
        threads=4,
        sites=(SITE, second),
        conversions=(MOVED,),
        cycles=2.5e9,
        seconds=1.0,
        exact=True,
        others={"nhwc": 2.6e6, "nchw": 99.0},
    )
    return layouts_text(dataclasses.replace(made, **changes), WIDTH)


def test_it_is_drawn_in_columns(golden):
    assert golden == drawn()


def test_guesses_are_called_so():
    text = drawn(exact=False, layouts="nchw8c")
    assert "a choice that is faster may exist" in text
    assert "with nchw8c wherever it is possible" in text


@pytest.mark.parametrize(
    "changes",
    [
        {"operators": ("a_very_long_name_of_a_layer" * 3,)},
        {"operators": ("/encoder/stages.0/layers.0/layer/layer.0/convolution/Conv", "/a/Relu")},
        {"shape": ("a_symbolic_dimension * 12",) * 4},
        {"reads": tuple(range(100, 130))},
        {"computes": "conv 11×11×11 /16", "source": "ncdhw16c+halo", "result": "ncdhw16c+halo"},
        {"source": "ncdhw16c+halo", "result": "ncdhw16c+halo", "shape": ("batch * 16",) * 5},
    ],
)
def test_no_line_is_too_long(changes):
    rows = (dataclasses.replace(SITE, **changes), SITE)
    moved = dataclasses.replace(MOVED, value="v" * 120, reason="because " * 20)
    text = drawn(sites=rows, conversions=(moved,))
    assert max(map(len, text.splitlines())) <= WIDTH
    assert "→" in text


def test_paths_keep_their_end():
    labels = ("/encoder/stages.0/layers.0/layer/layer.0/convolution/Conv", "/a/b/Relu")
    row = dataclasses.replace(SITE, operators=labels, result="nchw16c+halo", source="nchw16c+halo")
    assert "…" in drawn(sites=(row, SITE))
    assert "/Conv, Relu" in drawn(sites=(row, SITE))


@pytest.mark.usefixtures("_no_kernels")
def test_nothing_is_compiled_for_it(model, capsys):
    for command in ([model, "--layouts"], ["--layouts", model]):
        assert main(["show", *command, *COMMAND]) == 0
        text = capsys.readouterr().out
        assert text.startswith("network, 1 thread\n  input   picture: f32[1, 4, 16, 16]\n")
        assert "layouts: auto, for x86-64-v3 and 2 threads" in text
        assert "transpose" in text
        assert "no copy" in text


@pytest.mark.usefixtures("_no_kernels")
def test_machines_of_another_kind_have_layouts(model, capsys):
    assert main(["show", model, "--layouts", "--target", "aarch64"]) == 0
    assert "for aarch64 and " in capsys.readouterr().out


def test_programs_are_told_the_same(model, capsys):
    assert main(["show", model, "--layouts", "nchw8c", "--json", *COMMAND]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts.keys() == {"model", "layouts"}
    (picture,) = facts["model"]["inputs"]
    assert (picture["name"], picture["dtype"]) == ("picture", "f32")
    assert picture["shape"] == [1, 4, 16, 16]
    assert facts["model"]["outputs"][0]["shape"] == [1, 10]
    assert facts["layouts"]["layouts"] == "nchw8c"
    assert facts["layouts"]["others"].keys() == {"auto", "nhwc", "nchw", "nchw16c"}
    sites = facts["layouts"]["sites"]
    assert [row["site"] for row in sites] == list(range(len(sites)))
    assert facts["layouts"]["conversions"] == []  # the mean reads blocks, too


def test_it_stands_beside_other_parts(model, capsys):
    assert main(["show", model, "--layouts", "--memory", "--json", "--threads", "1"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts.keys() == {"model", "layouts", "memory"}
    assert main(["show", model, "--layouts", "nchw", "--graph", "--threads", "1"]) == 0
    text = capsys.readouterr().out
    assert "graph network" in text
    assert "reorder([0, 3, 1, 2])" in text
    assert "layouts: nchw, for host" in text


@pytest.mark.parametrize("command", ["show", "compile", "run", "bench"])
def test_unknown_layouts_are_refused(command, model, capsys):
    assert main([command, model, "--layouts", "nchw8"]) == 1
    error = capsys.readouterr().err
    assert error.startswith("tilewright: K060: there is no layout `nchw8`")


def test_a_compiled_model_has_no_graph_to_draw(model, folder, capsys):
    path = str(folder / "made.tw")
    assert main(["compile", model, "-o", path, "--layouts", "nchw", "--threads", "1"]) == 0
    assert main(["run", path]) == 0
    assert main(["show", path, "--layouts"]) == 1
    error = capsys.readouterr().err
    assert error.startswith("tilewright: K046: `network` cannot show its layouts: ")


@pytest.mark.filterwarnings("default")
def test_a_model_that_runs_by_reference_has_none(tmp_path, capsys):
    onnx.save(sequence_model(), tmp_path / "sequence.onnx")
    assert main(["show", str(tmp_path / "sequence.onnx"), "--layouts"]) == 1
    assert "K046" in capsys.readouterr().err


def test_files_for_other_machines_have_the_layouts_that_were_asked_for(model, folder, capsys):
    files = []
    for layouts in ("nhwc", "nhwc", "nchw"):
        path = folder / "other.tw"
        command = ["compile", model, "-o", str(path), "--target", "aarch64"]
        assert main([*command, "--layouts", layouts]) == 0
        files.append(path.read_bytes())
    assert files[0] == files[1] != files[2]
    assert capsys.readouterr().out.count("other.tw: ") == 3
