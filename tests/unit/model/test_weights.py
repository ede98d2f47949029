"""Constants of a model: equal ones are stored once, in each form that is wanted."""

from __future__ import annotations

import itertools
import tracemalloc
import weakref

import numpy as np
import pytest
from onnx import TensorProto, numpy_helper

import tilewright as tw
from tests.unit.model.test_control_flow import BOOL, FLOAT, INT64, body, graph, info, model, node
from tilewright.abi import ALIGNMENT
from tilewright.graph.ir import Value, array_type
from tilewright.graph.ops.winograd import WinogradWeights
from tilewright.model.weights import Derived, Weights
from tilewright.tensor.layout import Fuse, Pad, Reorder, Split, StoreAt
from tilewright.tensor.library.tile_weights import short_windows, tile_matrix, winograd_weights
from tilewright.tensor.library.tiles import Tiles
from tilewright.tensor.packing import Packing

SIDE = 256
TURNED = Packing((Reorder((1, 0)),), (3, 5), (5, 3))


def numbers(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def test_constants_begin_at_boundaries_and_are_there():
    weights, arrays = Weights(), [numbers(3, 5), numbers(7), np.arange(3), np.array(True)]
    places = [weights.place(array) for array in arrays]
    blob = weights.blob()
    assert blob.nbytes == weights.size_bytes == ALIGNMENT * 4
    for array, (offset, size) in zip(arrays, places, strict=True):
        assert offset % ALIGNMENT == 0
        assert blob[offset : offset + size].tobytes() == array.tobytes()


def test_equal_constants_are_one():
    weights, array = Weights(), numbers(40, 40)
    first = weights.place(array)
    assert weights.place(array) == weights.place(array.copy()) == first
    assert weights.place(np.asfortranarray(array)) == first
    almost = array.copy()
    almost[1, 1] = 5
    assert weights.place(almost) != first
    assert weights.place(array.reshape(1600)) != first, "another shape may be packed another way"


def test_values_that_differ_from_themselves_are_equal_all_the_same():
    weights = Weights()
    assert weights.place(np.full(9, np.nan)) == weights.place(np.full(9, np.nan))
    assert weights.place(np.zeros(3)) != weights.place(-np.zeros(3))


def test_constants_that_are_packed_together_are_one_form():
    weights, array, bias = Weights(), numbers(5, 3), numbers(3, seed=1)
    packing = Packing((StoreAt(0, "b", (3,)),), (5, 3), (6, 3))
    place = weights.place(array, packing, [bias])
    assert weights.place(array.copy(), packing, [bias.copy()]) == place
    other = weights.place(array, packing, [bias + 1])
    assert len({place, other, weights.place(array), weights.place(bias)}) == 4
    blob = weights.blob()
    for (offset, size), row in ((place, bias), (other, bias + 1)):
        stored = blob[offset : offset + size].view(np.float32).reshape(6, 3)
        np.testing.assert_array_equal(stored, np.vstack([array, row]))


def test_each_form_is_stored():
    weights, array = Weights(), numbers(3, 5)
    plain, turned = weights.place(array), weights.place(array, TURNED)
    assert plain != turned
    assert weights.place(array.copy(), TURNED) == turned
    blob = weights.blob()
    found = blob[turned[0] : turned[0] + turned[1]].view(np.float32).reshape(5, 3)
    np.testing.assert_array_equal(found, array.T)


def test_constants_without_elements():
    weights = Weights()
    assert weights.place(np.zeros((0, 3))) == (0, 0)
    assert weights.place(numbers(2)) == (0, 8)
    assert weights.blob().nbytes == ALIGNMENT


def looped():
    """x·W once outside of a loop and once inside; W is captured."""
    inside = [node("MatMul", "v W", "next"), node("Identity", "cond", "on")]
    loop = body(inside, [info("v", FLOAT, ["n", SIDE])], "on next")
    nodes = [node("MatMul", "x W", "a"), node("Loop", "trips  a", "y", body=loop)]
    inputs = [info("x", FLOAT, ["n", SIDE]), info("trips", INT64)]
    return model(nodes, inputs, "y", {"W": numbers(SIDE, SIDE)})


def branched():
    """x·W in both branches, whose sums differ."""
    then = graph([node("MatMul", "x W", "a"), node("Relu", "a", "r")], [], "r")
    other = graph([node("MatMul", "x W", "b")], [], "b")
    nodes = [node("If", "flag", "y", then_branch=then, else_branch=other)]
    inputs = [info("x", FLOAT, ["n", SIDE]), info("flag", BOOL)]
    return model(nodes, inputs, "y", {"W": numbers(SIDE, SIDE)})


def copied():
    """Each branch comes with the same constant."""
    constant = numpy_helper.from_array(numbers(SIDE, SIDE), "W")
    assert constant.data_type == TensorProto.FLOAT
    made = branched()
    made.graph.initializer.pop()
    for attribute in made.graph.node[0].attribute:
        attribute.g.initializer.append(constant)
    return made


@pytest.mark.parametrize("make", [looped, branched, copied])
def test_what_is_captured_is_stored_once(make, tmp_path):
    module = tw.compile(make(), threads=1, cache=False)
    once = SIDE * SIDE * 4
    assert once <= module.memory().weights_bytes < 2 * once
    module.save(tmp_path / "small.tw")
    assert (tmp_path / "small.tw").stat().st_size < 2 * once
    again = tw.load(tmp_path / "small.tw")
    x = np.eye(SIDE, dtype=np.float32)[:3]
    feeds = {"x": x} | ({"trips": np.array(1)} if make is looped else {"flag": np.array(False)})
    (found,) = again.run(feeds)
    weights = numbers(SIDE, SIDE)
    wanted = x @ weights @ weights if make is looped else x @ weights
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)


def test_each_constant_is_let_go_once_it_is_written():
    weights, arrays = Weights(), [numbers(4, 4, seed=k) for k in range(3)]
    for array in arrays:
        weights.place(array)
    held = [weakref.ref(array) for array in arrays]
    wanted = [array.tobytes() for array in arrays]
    del array, arrays
    alive = []
    for form in weights.taken():
        alive.append(sum(ref() is not None for ref in held))
        assert form.constant.tobytes() == wanted[len(alive) - 1]
        del form
    assert alive == [3, 2, 1]
    assert not any(ref() is not None for ref in held)


def test_constants_that_operators_make_are_placed_before_they_are_made():
    """Those of equal sources are one; places are those that they need in the end."""
    tiles = Tiles((3, 3), (2, 2), (1, 1), (1, 1))
    matrix, windows = tile_matrix(tiles), short_windows(numbers(5, 3, 3, 3), tiles)
    op = WinogradWeights(0, (4, 4))
    value = Value("u", *op.infer([array_type(matrix), array_type(windows)]))
    weights = Weights()
    first = weights.place(Derived(op, (matrix, windows), value))
    assert first == (0, 4 * 4 * 3 * 5 * 4)
    assert weights.place(Derived(op, (matrix.copy(), windows.copy()), value)) == first
    assert weights.place(Derived(op, (matrix, windows + 1), value)) != first
    wanted = winograd_weights(numbers(5, 3, 3, 3), tiles)
    assert weights.blob()[: first[1]].tobytes() == wanted.tobytes()


@pytest.mark.parametrize(
    ("steps", "by_slice"),
    [
        ((), True),
        ((Pad(3, 0, 3), Split(3, 4), Reorder((0, 1, 3, 2, 4))), True),
        ((Reorder((2, 0, 1, 3)),), False),
        ((Fuse(0, (4, 4)),), False),
    ],
    ids=["plain", "panels", "turned", "fused"],
)
def test_what_operators_make_is_packed_as_a_whole_would_be(steps, by_slice):
    """In slices where these are packed by themselves: the largest weights are not there twice."""
    tiles = Tiles((3, 3), (2, 2), (1, 1), (1, 1))
    plain = numbers(5, 3, 3, 3)
    matrix, windows = tile_matrix(tiles), short_windows(plain, tiles)
    assert np.shares_memory(windows, plain)
    op, wanted = WinogradWeights(0, (4, 4)), winograd_weights(plain, tiles)
    value = Value("u", *op.infer([array_type(matrix), array_type(windows)]))
    packing = Packing(steps, wanted.shape, ()) if steps else None
    assert packing is None or packing.is_by_slice == by_slice
    weights = Weights()
    _, size = weights.place(Derived(op, (matrix, windows), value), packing)
    packed = wanted if packing is None else packing.pack(wanted)
    assert weights.blob()[:size].tobytes() == packed.tobytes()


def test_what_operators_make_is_whole_where_others_lie_in_it():
    tiles = Tiles((3, 3), (2, 2), (1, 1), (1, 1))
    matrix, windows = tile_matrix(tiles), short_windows(numbers(5, 3, 3, 3), tiles)
    op, wanted = WinogradWeights(0, (4, 4)), winograd_weights(numbers(5, 3, 3, 3), tiles)
    value = Value("u", *op.infer([array_type(matrix), array_type(windows)]))
    guest = numbers(4, 4, 5)
    packing = Packing((StoreAt(2, "b", guest.shape),), wanted.shape, ())
    weights = Weights()
    _, size = weights.place(Derived(op, (matrix, windows), value), packing, [guest])
    packed = np.concatenate((wanted, guest[:, :, None]), axis=2)
    assert weights.blob()[:size].tobytes() == packed.tobytes()


LAYERS, WIDE = 8, 512


def test_compiling_holds_weights_once_and_a_module_only_as_it_runs_with_them():
    """Arrays and bytes of Python are counted; what kernels read is memory of the runtime."""
    names = ["x", *(f"h{k}" for k in range(LAYERS))]
    nodes = [node("MatMul", f"{a} w{a}", b) for a, b in itertools.pairwise(names)]
    held = {f"w{name}": numbers(WIDE, WIDE, seed=k) for k, name in enumerate(names[:-1])}
    content = model(nodes, [info("x", FLOAT, ["n", WIDE])], names[-1], held).SerializeToString()
    size = sum(array.nbytes for array in held.values())
    del held
    tw.compile(content, target="x86-64-v2", threads=1, cache=False)  # imports what it needs
    tracemalloc.start()
    try:
        module = tw.compile(content, target="x86-64-v2", threads=1, cache=False)
        kept, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert module.memory().weights_bytes >= size
    assert kept < size / 2
    assert most < 1.75 * size
