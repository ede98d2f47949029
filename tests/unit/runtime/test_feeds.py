"""What a model accepts as feeds, what it refuses and how it says so, and outputs to write into."""

from __future__ import annotations

import array
import traceback
from collections import OrderedDict
from types import MappingProxyType

import ml_dtypes
import numpy as np
import pytest

from tests.expect import raises_code
from tests.models import Code, Draft, product
from tilewright.dtypes import bf16, i64
from tilewright.errors import CallError
from tilewright.runtime.executable import Executable
from tilewright.runtime.program import Enter, Place, SizeOp


def floats(*shape: int) -> np.ndarray:
    return np.arange(1, 1 + np.prod(shape), dtype=np.float32).reshape(shape)


@pytest.fixture
def model(entry) -> Executable:
    """`sum` = left + right; `count` comes back as it is."""
    d = Draft("pair")
    d.input("left", ["batch", 2])
    d.input("right", ["batch", 2])
    d.input("count", [], i64)
    d.size("all", product(2, d.of("batch")))
    d.output("sum", ["batch", 2])
    d.output("count again", [], i64, of="count")
    d.kernel("add", entry("add"))
    d.call("add", "left right sum", "all")
    return Executable(d.program(), Code(), threads=1)


def feeds(**others: object) -> dict[str, object]:
    return {"left": floats(3, 2), "right": floats(3, 2), "count": np.int64(7), **others}


class Foreign:
    """An array of some other library."""

    def __init__(self, array: np.ndarray) -> None:
        self.inner = array

    def __dlpack__(self, **options: object) -> object:
        return self.inner.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.inner.__dlpack_device__()


class Lazy:
    def __array__(self, dtype=None, copy=None):
        return floats(3, 2)


def read_only(values: np.ndarray) -> np.ndarray:
    values.flags.writeable = False
    return values


ACCEPTED = {
    "plain": floats(3, 2),
    "read-only": read_only(floats(3, 2)),
    "transposed": np.ascontiguousarray(floats(3, 2).T).T,
    "reversed": floats(3, 2)[::-1, ::-1][::-1, ::-1].copy()[::1],
    "strided": np.repeat(floats(3, 2), 2, axis=0)[::2],
    "byte order": floats(3, 2).astype(">f4"),
    "misaligned": np.frombuffer(b"\0" + floats(3, 2).tobytes(), np.uint8)[1:]
    .view(np.float32)
    .reshape(3, 2),
    "list": floats(3, 2).tolist(),
    "tuple of ints": ((1, 2), (3, 4), (5, 6)),
    "dlpack": Foreign(floats(3, 2)),
    "__array__": Lazy(),
    "buffer": memoryview(array.array("f", range(1, 7))).cast("B").cast("f", (3, 2)),
    "subclass": floats(3, 2).view(np.matrix),
}


@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")
@pytest.mark.parametrize("kind", ACCEPTED)
def test_feeds_of_every_kind(model, kind):
    total, _ = model.run(feeds(left=ACCEPTED[kind]))
    np.testing.assert_array_equal(total, 2 * floats(3, 2))


@pytest.mark.parametrize("kind", [OrderedDict, MappingProxyType])
def test_any_mapping_will_do(model, kind):
    assert model.run(kind(feeds()))[1] == 7


@pytest.mark.parametrize("value", [7, np.int64(7), np.array(7), True, np.array([7]), [7]])
def test_numbers_for_scalars(model, value):
    assert model.run(feeds(count=value))[1] == value


def test_one_element_stays_where_it_is(model):
    """A scalar in an array of one dimension is the same memory, with another shape."""
    one = np.array([7])
    shared = model._reader.read(feeds(count=one))["count"]
    assert (shared.shape, np.shares_memory(shared, one)) == ((), True)
    outputs = {"count again": np.zeros((), np.int64)}
    model.run_into(feeds(count=one), outputs)
    assert outputs["count again"] == 7


def test_feeds_are_not_changed(model):
    given = feeds(left=floats(3, 2).astype(">f4"))
    before = dict(given)
    model.run(given)
    assert given == before


REFUSED = {
    "C021-missing": ("C021", {"left": floats(3, 2), "right": floats(3, 2)}),
    "C022-unknown": ("C022", feeds(rigth=floats(3, 2))),
    "C022-other-case": ("C022", feeds(LEFT=floats(3, 2))),
    "C022-no-string": ("C022", {**feeds(), 5: floats(1)}),
    "C023-renamed": ("C023", {"left": floats(3, 2), "rihgt": floats(3, 2), "count": 7}),
    "C023-everything": (
        "C023",
        {"left": floats(3), "right": np.ones((3, 2)), "count": None, "extra": 1},
    ),
    "C002-none": ("C002", feeds(left=None)),
    "C002-text": ("C002", feeds(left="abc")),
    "C002-ragged": ("C002", feeds(left=[[1.0], [2.0, 3.0]])),
    "C002-masked": ("C002", feeds(left=np.ma.masked_array(floats(3, 2)))),
    "C003-f64": ("C003", feeds(left=np.ones((3, 2)))),
    "C003-f64-other-order": ("C003", feeds(left=np.ones((3, 2), ">f8"))),
    "C003-floats-for-integers": ("C003", feeds(count=7.5)),
    "C003-i32": ("C003", feeds(count=np.int32(7))),
    "C004-rank": ("C004", feeds(left=floats(6))),
    "C004-two-for-one": ("C004", feeds(count=np.array([7, 8]))),
    "C005-extent": ("C005", feeds(left=floats(3, 4))),
    "C006-disagree": ("C006", feeds(right=floats(4, 2))),
}


@pytest.mark.parametrize("case", REFUSED)
def test_feeds_reject(model, golden, case):
    code, given = REFUSED[case]
    with raises_code(code) as caught:
        model.run(given)
    assert golden == caught.value


def test_traceback_ends_at_the_call(model):
    with pytest.raises(CallError) as caught:
        model.run({})
    assert [frame.filename for frame in traceback.extract_tb(caught.tb)] == [__file__]


def test_traceback_of_wrong_outputs_ends_at_the_call(model):
    with pytest.raises(CallError) as caught:
        model.run_into(feeds(), {"sum": None})
    assert [frame.filename for frame in traceback.extract_tb(caught.tb)] == [__file__]


def test_sizes_that_follow_from_others(golden):
    """An input may have a size that is computed from those of others."""
    d = Draft("twice")
    d.input("x", ["n"])
    d.size("n + n", (*d.of("n"), *d.of("n"), (SizeOp.ADD, 0)))
    d.input("y", ["n + n"])
    d.output("z", ["n + n"], of="y")
    model = Executable(d.program(), Code())
    assert model.run({"x": floats(2), "y": floats(4)})[0].tolist() == [1, 2, 3, 4]
    with raises_code("C024") as caught:
        model.run({"x": floats(2), "y": floats(5)})
    assert golden == caught.value


def test_sizes_with_the_same_word_are_told_apart():
    d = Draft()
    d.input("x", ["n"])
    d.input("y", ["m"])
    d.inputs[1] = type(d.inputs[1])("y", d.inputs[1].dtype, d.inputs[1].dims, ("n",), 1)
    d.output("z", ["m"], of="y")
    model = Executable(d.program(), Code())
    assert model.run({"x": floats(2).tolist(), "y": floats(3).tolist()})[0].shape == (3,)


def test_bits_of_bfloat16_are_not_guessed():
    d = Draft()
    d.input("x", ["n"], bf16)
    d.output("y", ["n"], bf16, of="x")
    model = Executable(d.program(), Code())
    with raises_code("C003", text="pass `array.view(ml_dtypes.bfloat16)`"):
        model.run({"x": np.zeros(3, np.uint16)})
    assert model.run({"x": [1.5, 2]})[0].dtype == ml_dtypes.bfloat16


def test_results_are_left_in_the_arrays_of_the_caller(model):
    total, count = np.zeros((3, 2), np.float32), np.zeros((), np.int64)
    model.run_into(feeds(), {"sum": total, "count again": count})
    np.testing.assert_array_equal(total, 2 * floats(3, 2))
    assert count == 7
    total[:] = 0
    model.run_into(feeds(left=floats(3, 2).tolist(), count=8), {"sum": total})
    np.testing.assert_array_equal(total, 2 * floats(3, 2))
    assert count == 7


def test_output_may_be_an_input(model):
    x = floats(3, 2)
    model.run_into(feeds(left=x, right=x), {"sum": x})
    np.testing.assert_array_equal(x, 2 * floats(3, 2))
    y = floats(4, 2)
    model.run_into(feeds(left=y[:3], right=y[1:]), {"sum": y[1:]})
    np.testing.assert_array_equal(y[1:], floats(4, 2)[:3] + floats(4, 2)[1:])


BOTH = np.zeros(10, np.float32)
REFUSED_OUTPUTS = {
    "C022-unknown": ("C022", {"summ": np.zeros((3, 2), np.float32)}),
    "C002-list": ("C002", {"sum": [0.0] * 6}),
    "C003-type": ("C003", {"sum": np.zeros((3, 2))}),
    "C006-size": ("C006", {"sum": np.zeros((4, 2), np.float32)}),
    "C005-shape": ("C005", {"sum": np.zeros((3, 3), np.float32)}),
    "C007-read-only": ("C007", {"sum": read_only(np.zeros((3, 2), np.float32))}),
    "C008-order": ("C008", {"sum": np.zeros((2, 3), np.float32).T}),
    "C009-overlap": (
        "C009",
        {"sum": BOTH[:6].reshape(3, 2), "count again": BOTH[4:6].view(np.int64)[0:1].reshape(())},
    ),
}


@pytest.mark.parametrize("case", REFUSED_OUTPUTS)
def test_outputs_reject(model, golden, case):
    code, given = REFUSED_OUTPUTS[case]
    with raises_code(code) as caught:
        model.run_into(feeds(), given)
    assert golden == caught.value


def test_output_whose_shape_depends_on_data(entry):
    d = Draft("choose", segments=2)
    d.input("x", ["n"])
    d.size("m", segment=1)
    d.temporary("count", [1], 0, 1, i64)
    d.output("y", ["m"], segment=1)
    d.kernel("count_positive", entry("count_positive"), parallel=False)
    d.kernel("take_positive", entry("take_positive"), parallel=False)
    d.call("count_positive", "x count", "n")
    d.steps.append(Enter(1, ((d.number("m"), d.at("count"), 0),)))
    d.call("take_positive", "x y", "n m")
    model = Executable(d.program(), Code(), threads=1)
    y = np.zeros(2, np.float32)
    model.run_into({"x": np.array([3, -1, 4], np.float32)}, {"y": y})
    assert y.tolist() == [3, 4]
    with raises_code("C005", facts={"param": "y", "axis": 0}):
        model.run_into({"x": np.array([3, 1, 4], np.float32)}, {"y": y})
    assert y.tolist() == [3, 4]


def test_output_with_more_memory_than_its_array(entry):
    """A kernel may write whole blocks: then the array of the caller is too small for it."""
    d = Draft()
    d.input("x", ["n"])
    d.buffer("y", Place.OUTPUT, ["n", 2])
    d.output("y", ["n"], of="y")
    d.kernel("add", entry("add"))
    d.call("add", "x x y", "n")
    model = Executable(d.program(), Code(), threads=1)
    y = np.zeros(3, np.float32)
    model.run_into({"x": floats(3)}, {"y": y})
    assert y.tolist() == [2, 4, 6]
    assert model.run({"x": floats(3)})[0].tolist() == [2, 4, 6]
