"""Loops and scans whose iterations collect what only a body knows the size of."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from onnx import parser

import tilewright as tw
from tests.expect import raises_code
from tests.onnx.beside_ort import assert_alike, onnxruntime_results
from tilewright.frontend.onnx import import_model
from tilewright.frontend.onnx.reference.evaluator import evaluator_of
from tilewright.graph import interpret

HEAD = '<ir_version: 9, opset_import: ["" : 20]>'

PLACES = """
    y = Scan <num_scan_inputs = 1, body = b (float[n] r) => (int64[q] u) {
        nz = NonZero(r)
        u = Squeeze(nz, zero) }> (x)"""

BACKWARDS = """
    w = Scan <num_scan_inputs = 1, scan_output_directions = [1], scan_output_axes = [1],
        body = b (float[n] r) => (int64[q] u) {
            nz = NonZero(r)
            u = Squeeze(nz, zero) }> (x)
    y = Add(w, one)"""


def scanned(nodes: str):
    return parsed("(float[t, n] x) => (int64[a, b] y)", nodes)


def windows(body: str, size: str = "q"):
    """A loop that collects `w`, a part of `x` that begins at the number of the iteration."""
    nodes = f"""
        s = Loop(k, yes) <body = o (int64 i, bool c) => (bool go, float[{size}] w) {{
            go = Identity(c)
            begin = Unsqueeze(i, zero)
            end = Add(begin, two)
            {body} }}>"""
    return parsed("(float[n] x, int64 k) => (float[a, b] s)", nodes)


def parsed(signature: str, nodes: str):
    constants = """
        yes = Constant <value = bool {1}> ()
        zero = Constant <value_ints = [0]> ()
        one = Constant <value_ints = [1]> ()
        two = Constant <value_ints = [2]> ()
        single = Constant <value_int = 1> ()"""
    return parser.parse_model(f"{HEAD} g {signature} {{ {constants} {nodes} }}")


SLICED = "w = Slice(x, begin, end, zero)"
RANGED = """
    last = Add(i, single)
    reach = Add(last, single)
    r = Range(i, reach, single)
    w = Gather(x, r)"""


def natively(model, threads: int):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return tw.compile(model, threads=threads, cache=False)


def check(model, *feeds):
    """As native code, by meaning, by reference and as onnxruntime."""
    meaning = import_model(model).graph
    modules = [natively(model, threads) for threads in (1, 2)]
    for arrays in feeds:
        wanted = onnxruntime_results(model, arrays)
        ways = [*(module.run(arrays) for module in modules), interpret(meaning, arrays)]
        ways.append(evaluator_of(model).run(None, arrays))
        for found in ways:
            for a, b in zip(found, wanted, strict=True):
                assert_alike(np.asarray(a), b)


def floats(*shape):
    return np.random.default_rng(len(shape)).uniform(1, 2, shape).astype(np.float32)


SOME = [floats(3, 4), np.eye(3, 4, k=1, dtype=np.float32), floats(5, 2), floats(1, 900)]


def test_a_scan_collects_places_of_what_is_not_zero():
    arrays = *SOME, np.zeros((2, 4), np.float32)
    check(scanned(PLACES), *({"x": x} for x in arrays))


def test_a_scan_collects_from_the_end_along_another_axis():
    check(scanned(BACKWARDS), *({"x": x} for x in SOME))


@pytest.mark.parametrize("size", ["q", "2"])
@pytest.mark.parametrize("body", [SLICED, RANGED], ids=["slice", "range"])
def test_a_loop_collects_windows(body, size):
    turns = (3, 5, 1, 0, -1) if size == "2" or body is SLICED else (3, 5, 1)
    check(windows(body, size), *({"x": floats(6), "k": np.array(k)} for k in turns))


def test_a_loop_collects_windows_of_columns():
    nodes = """
        s = Loop(k, yes) <body = o (int64 i, bool c) => (bool go, float[m, q] w) {
            go = Identity(c)
            number = Unsqueeze(i, zero)
            begin = Mul(number, two)
            end = Add(begin, two)
            w = Slice(x, begin, end, one) }>"""
    made = parsed("(float[m, n] x, int64 k) => (float[a, b, c] s)", nodes)
    check(made, {"x": floats(3, 8), "k": np.array(4)}, {"x": floats(700, 8), "k": np.array(2)})


def test_a_branch_in_a_loop_tells_the_size():
    nodes = """
        s = Loop(k, yes) <body = o (int64 i, bool c) => (bool go, int64[q] w) {
            go = Identity(c)
            r = Gather(x, i)
            odd = Mod(i, second)
            which = Cast <to = 9> (odd)
            w = If(which) <
                then_branch = p () => (int64[q1] a1) { nz = NonZero(r)
                    a1 = Squeeze(nz, zero) },
                else_branch = q () => (int64[q2] b1) { m = Neg(r)
                    nz2 = NonZero(m)
                    pl = Squeeze(nz2, zero)
                    b1 = Add(pl, one) }> }>"""
    nodes = f"second = Constant <value_int = 2> () {nodes}"
    made = parsed("(float[m, n] x, int64 k) => (int64[a, b] s)", nodes)
    check(made, *({"x": x, "k": np.array(3)} for x in (np.eye(3, dtype=np.float32), floats(3, 5))))


def test_a_loop_that_ends_early_collects_what_only_its_body_knows():
    nodes = """
        most = Constant <value_int = 9> ()
        last, s = Loop(most, yes, start) <body = o (int64 i, bool c, float h)
                => (bool go, float h1, float[q] w) {
            h1 = Add(h, h)
            go = Less(h1, top)
            begin = Unsqueeze(i, zero)
            end = Add(begin, two)
            w = Slice(x, begin, end, zero) }>"""
    made = parsed("(float[n] x, float start, float top) => (float last, float[a, b] s)", nodes)
    start = np.float32(1)
    tops = (np.array(top, np.float32) for top in (3, 0, 100))
    check(made, *({"x": floats(20), "start": np.array(start), "top": t} for t in tops))


def test_loops_inside_of_loops_learn_sizes_again():
    """The inner loop has another size in every turn of the outer one, which adds them up."""
    nodes = """
        none = Constant <value_float = 0.0> ()
        y, all = Loop(k, yes, none) <body = o (int64 i, bool c, float h)
                => (bool go, float h1, float[p, q] rows) {
            go = Identity(c)
            rows = Loop(k, c) <body = u (int64 j, bool c2) => (bool go2, float[p] w) {
                go2 = Identity(c2)
                begin = Unsqueeze(j, zero)
                end = Add(begin, two)
                w = Slice(x, begin, end, zero) }>
            part = Loop(k, c) <body = v (int64 j, bool c3) => (bool go3, float[r] w2) {
                go3 = Identity(c3)
                n = Unsqueeze(i, zero)
                n1 = Add(n, one)
                w2 = Slice(x, zero, n1, zero) }>
            sum = ReduceSum <keepdims = 0> (part)
            h1 = Add(h, sum) }>"""
    made = parsed("(float[n] x, int64 k) => (float y, float[a, b, c] all)", nodes)
    check(made, *({"x": floats(9), "k": np.array(k)} for k in (4, 1, 7)))


@pytest.mark.parametrize(
    ("model", "feeds"),
    [
        (scanned(PLACES), {"x": np.tri(3, 4, dtype=np.float32)}),
        (windows(SLICED), {"x": floats(6), "k": np.array(6)}),
    ],
    ids=["places", "windows"],
)
def test_iterations_that_do_not_agree_are_refused(model, feeds):
    module = natively(model, 1)
    with raises_code("C025", text="same in every iteration"):
        module.run(feeds)


def test_no_iteration_leaves_nothing():
    """After a run that had some, too: sizes of the last run are not those of this one."""
    module = natively(scanned(PLACES), 1)
    for rows in (3, 0, 2):
        (y,) = module.run({"x": floats(rows, 4)})
        assert y.shape == (rows, 4 if rows else 0)


@pytest.mark.parametrize("backward", [0, 1])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_scans_that_carry_what_grows_walk_along_any_axis_in_both_directions(axis, backward):
    """Natively, and by reference."""
    nodes = f"""
        last, w = Scan <num_scan_inputs = 1, scan_input_axes = [{axis}], body = b
            (float[q] h, float[p] r) => (float[q1] h1, float[p] u) {{
                h1 = Concat <axis = 0> (h, r)
                u = Neg(r) }}, scan_input_directions = [{backward}],
            scan_output_axes = [{axis}], scan_output_directions = [{1 - backward}]> (start, x)
        z = Identity(last)"""
    made = parsed("(float[t, n] x, float[k] start) => (float[a] z, float[b, c] w)", nodes)
    module, reference = natively(made, 1), evaluator_of(made)
    x, start = floats(3, 4), floats(2)
    rows = np.moveaxis(x, axis, 0)[:: -1 if backward else 1]
    nothing = {"x": floats(0, 4) if axis == 0 else floats(3, 0), "start": start}
    for run in (module.run, lambda feeds: reference.run(None, feeds)):
        z, w = run({"x": x, "start": start})
        assert np.array_equal(z, np.concatenate([start, *rows]))
        assert np.array_equal(w, -np.flip(x, axis))  # either what is read or what is written
        z, w = run(nothing)
        assert np.array_equal(z, start)
        assert w.shape == nothing["x"].shape
