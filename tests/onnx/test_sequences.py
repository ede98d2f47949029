"""Sequences whose length only a run tells, beside the reference implementation."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from onnx import parser
from onnx.reference import ReferenceEvaluator

import tilewright as tw
from tests.onnx.small_models import close
from tilewright.frontend.onnx import import_model
from tilewright.graph import interpret

APPENDS = """
    s0 = SequenceEmpty ()
    last, s = Loop (k, yes, first, s0) <body = b (int64 i, bool c, float[w] h, seq(float[w]) t)
        => (bool go, float[w] h2, seq(float[w]) t2) {
        go = Identity (c)
        row = Gather (x, i)
        h2 = Add (h, row)
        t2 = SequenceInsert (t, h2) }>"""
TWICE = """
    s0 = SequenceConstruct (first)
    s = Loop (k, yes, s0) <body = b (int64 i, bool c, seq(float[w]) t)
        => (bool go, seq(float[w]) t3) {
        go = Identity (c)
        row = Gather (x, i)
        t2 = SequenceInsert (t, row)
        less = Neg (row)
        t3 = SequenceInsert (t2, less) }>"""
SPLIT = "s = SplitToSequence <axis = 0, keepdims = 0> (x)"


def sequences(made: str, used: str, result: str):
    """A model that makes a sequence `s` of the rows of x and uses it."""
    return parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 18]>
        g (float[n, w] x, float[w] first, int64[1] at) => ({result} y) {{
            yes = Constant <value = bool {{1}}> ()
            k0 = Shape <end = 1> (x)
            empty = Constant <value_ints = [0]> ()
            k = Squeeze (k0, empty)
            place = Squeeze (at, empty)
            {made} {used} }}"""
    )


USES = [
    ("y = ConcatFromSequence <axis = 0> (s)", "float[m]"),
    ("y = ConcatFromSequence <axis = 0, new_axis = 1> (s)", "float[m, w]"),
    ("y = ConcatFromSequence <axis = -1, new_axis = 1> (s)", "float[w, m]"),
    ("y = SequenceAt (s, place)", "float[w]"),
    ("y = SequenceLength (s)", "int64"),
]


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("made", [APPENDS, TWICE, SPLIT], ids=["appends", "twice", "split"])
def test_sequences_of_any_length_are_tensors(made, use):
    model = sequences(made, *use)
    meaning = import_model(model).graph
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        module = tw.compile(model, threads=1, cache=False)
    for n, place in ((4, 2), (1, 0), (7, -1)):
        x, first = (np.random.default_rng(n).normal(size=s).astype("f4") for s in ((n, 5), (5,)))
        feeds = {"x": x, "first": first, "at": np.array([place])}
        wanted = ReferenceEvaluator(model).run(None, feeds)
        for found in (module.run(feeds), interpret(meaning, feeds)):
            close(np.asarray(found[0]), np.asarray(wanted[0]))


def test_pieces_that_keep_their_axis_are_joined_along_another():
    model = sequences("s = SplitToSequence <axis = 1> (x)", USES[0][0], "float[m, o]")
    module = tw.compile(model, threads=1, cache=False)
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    feeds = {"x": x, "first": x[0], "at": np.array([0])}
    (found,) = module.run(feeds)
    np.testing.assert_array_equal(found, x.T.reshape(12, 1))


SHRINKS = """
    s0 = SequenceEmpty ()
    s = Loop (k, yes, s0) <body = b (int64 i, bool c, seq(float[p, w]) t)
        => (bool go, seq(float[p, w]) t2) {
        go = Identity (c)
        start = Reshape (i, one)
        rest = Slice (x, start, end)
        t2 = SequenceInsert (t, rest) }>"""


def test_elements_of_different_sizes_are_not_stacked():
    """Such a loop runs on the reference implementation with what reads its sequence."""
    constants = """
        one = Constant <value_ints = [1]> ()
        end = Constant <value_ints = [100]> ()"""
    model = sequences(constants + SHRINKS, USES[0][0], "float[m, w]")
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    feeds = {"x": x, "first": x[0], "at": np.array([0])}
    with pytest.warns(tw.TilewrightWarning, match="(?s)2 nodes run.*elements of different shapes"):
        module = tw.compile(model, threads=1, cache=False)
    np.testing.assert_array_equal(module.run(feeds)[0], np.concatenate([x, x[1:], x[2:]]))
