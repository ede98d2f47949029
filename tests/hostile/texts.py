"""What tests of models that are written as texts have in common."""

from __future__ import annotations

import onnx

import tilewright as tw

HEAD = '<ir_version: 9, opset_import: ["" : 20, "own" : 1]>\n'
OTHER_DOMAINS = '<ir_version: 9, opset_import: ["" : 20, "ai.onnx.ml" : 3, "com.microsoft" : 1]>'


def compiled(model: onnx.ModelProto) -> object:
    """The way that a file takes."""
    return tw.compile(model.SerializeToString(), cache=False, threads=1)
