"""Measured layers beside what the model of a target predicts."""

from __future__ import annotations

from benchmarks.predictions import Layer, main, predicted
from tilewright.layouts.costs import Machine
from tilewright.layouts.sites import Settings
from tilewright.target import Target

ROWS = """layer,alternative,best_us
28x28 128>128 3x3 s1 p1 g1 d1,F(4; 3) nhwc+halo→nhwc,1018
28x28 128>128 3x3 s1 p1 g1 d1,direct nhwc+halo→nhwc,1539
17x17 192>192 1x7 s1 p3 g1 d1,direct nhwc+halo→nhwc,993
"""


def test_fewer_multiplications_are_predicted_to_be_faster():
    names = {"F(4, 3) nhwc+halo→nhwc": 1.0, "direct nhwc+halo→nhwc": 1.0}
    layer = Layer("28x28 128>128 3x3 s1 p1 g1 d1", names)
    found = predicted(layer, Settings(Machine(Target.named("emeraldrapids"), 1)))
    assert found.keys() == names.keys()
    assert found["F(4, 3) nhwc+halo→nhwc"] < found["direct nhwc+halo→nhwc"]


def test_every_layer_has_a_line(tmp_path, capsys):
    path = tmp_path / "layers.csv"
    path.write_text(ROWS, encoding="utf-8")
    assert main([str(path), "--all"]) == 0
    shown = capsys.readouterr().out
    assert "28x28 128>128 3x3 s1 p1 g1 d1       1.00   1.00  F(4, 3) nhwc+halo→nhwc" in shown
    assert "chosen/best: mean 1.000" in shown
