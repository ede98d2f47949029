"""Whole programs, run on one and several threads and compared with the interpreter by the book."""

from __future__ import annotations

import dataclasses
import gc
import itertools
import mmap
import weakref

import ml_dtypes
import numpy as np
import pytest

from tests.expect import raises_code
from tests.models import Code, Draft, interpret, product
from tilewright.dtypes import bf16, boolean, f32, f64, i64
from tilewright.runtime import default_threads
from tilewright.runtime.executable import Executable
from tilewright.runtime.program import Assign, Enter, Host, Jump, Operand, Place, SizeOp
from tilewright.runtime.sizes import constant
from tilewright.shown import counted

THREADS = pytest.mark.parametrize("threads", [1, 2, 3])


def floats(*shape: int) -> np.ndarray:
    return np.arange(1, 1 + np.prod(shape), dtype=np.float32).reshape(shape)


def chain(entry, length: int, *, parallel: bool = True) -> Draft:
    """y = x doubled `length` times."""
    d = Draft()
    d.input("x", ["n"])
    d.output("y", ["n"])
    d.kernel("add", entry("add"), parallel=parallel)
    for i in range(length - 1):
        d.temporary(f"t{i}", ["n"], i, i + 1)
    names = ["x", *(f"t{i}" for i in range(length - 1)), "y"]
    for source, target in itertools.pairwise(names):
        d.call("add", f"{source} {source} {target}", "n")
    return d


def agree(draft: Draft, feeds, threads: int, **more) -> list[np.ndarray]:
    """Run both ways, twice; the results of the executor."""
    program = draft.program()
    model = Executable(program, Code(), threads=threads, **more)
    weights = bytes(more.get("weights", b""))
    for _ in range(2):
        expected = interpret(program, feeds, weights, more.get("functions", ()))
        found = model.run(feeds)
        for a, b in zip(found, expected, strict=True):
            assert a.dtype == b.dtype
            np.testing.assert_array_equal(a, b)
    return found


@THREADS
@pytest.mark.parametrize("parallel", [True, False])
def test_chain_with_changing_sizes(entry, threads, parallel):
    model = Executable(chain(entry, 5, parallel=parallel).program(), Code(), threads=threads)
    for n in (1, 7, 1000, 7, 0, 3):
        x = floats(n)
        (y,) = model.run({"x": x})
        np.testing.assert_array_equal(y, 32 * x)


def test_interpreter_knows_the_chain(entry):
    (y,) = interpret(chain(entry, 3).program(), {"x": floats(4)})
    np.testing.assert_array_equal(y, 8 * floats(4))


def test_threads_are_those_of_the_machine_unless_said(entry):
    model = Executable(chain(entry, 1).program(), Code())
    assert model.threads == default_threads()
    threads = counted(model.threads, "thread")
    assert repr(model) == f"<model model(x: f32[n]) -> (y: f32[n]), {threads}>"


def test_number_of_threads_is_checked(entry):
    with raises_code("K004"):
        Executable(chain(entry, 1).program(), Code(), threads=0)


def test_arrays_that_die_share_memory(entry):
    model = Executable(chain(entry, 12).program(), Code(), threads=1)
    model.run({"x": floats(1024)})
    memory = model.memory()
    assert memory.frames == 1
    assert 2 * 4096 <= memory.arena_bytes <= 2 * 4096 + 64
    assert memory.scratch_bytes == memory.weights_bytes == memory.image_bytes == 0


def test_outputs_are_the_callers_own(entry):
    model = Executable(chain(entry, 2).program(), Code(), threads=1)
    (first,) = model.run({"x": floats(8)})
    (second,) = model.run({"x": 10 * floats(8)})
    del model
    gc.collect()
    np.testing.assert_array_equal(first, 4 * floats(8))
    np.testing.assert_array_equal(second, 40 * floats(8))
    assert first.flags.writeable
    assert first.ctypes.data % 64 == 0


def test_executable_can_be_collected(entry):
    """Also if its own functions refer to it."""
    functions = [lambda: model]
    model = Executable(chain(entry, 2).program(), Code(), functions=functions, threads=1)
    model.run({"x": floats(8)})
    gone = weakref.ref(model)
    model = None
    del functions
    gc.collect()
    assert gone() is None


@THREADS
def test_ports_of_every_kind(entry, threads):
    """A graph may return an input, a constant, an inner array, a part, and the same array twice."""
    d = Draft()
    d.input("x", ["n"])
    d.output("y", ["n"])
    d.buffer("w", Place.WEIGHTS, [3], offset=constant(4))
    d.temporary("t", ["n"], 0, 1)
    d.buffer("p", Place.PART, [1], parent=d.at("t"), offset=constant(4))
    d.buffer("q", Place.PART, [1], parent=d.at("y"), offset=constant(8))
    d.kernel("add", entry("add"))
    d.call("add", "x x t", "n")
    d.call("add", "t t y", "n")
    for name, shape in {
        "x": ["n"],
        "w": [3],
        "t": ["n"],
        "p": [1],
        "q": [1],
        "y": [1, "n"],
    }.items():
        d.output(f"{name} again", shape, of=name)
    found = agree(d, {"x": floats(5)}, threads, weights=floats(4).tobytes())
    assert [list(array.ravel()) for array in found] == [
        [4, 8, 12, 16, 20],
        [1, 2, 3, 4, 5],
        [2, 3, 4],
        [2, 4, 6, 8, 10],
        [4],
        [12],
        [4, 8, 12, 16, 20],
    ]
    assert not any(np.shares_memory(found[0], other) for other in found[1:])


def test_weights_of_every_kind(tmp_path):
    d = Draft()
    d.buffer("w", Place.WEIGHTS, [4], offset=constant(0))
    d.output("y", [4], of="w")
    program, values = d.program(), floats(4)
    path = tmp_path / "weights"
    path.write_bytes(values.tobytes())
    with path.open("rb") as file:
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    skewed = memoryview(b"\0" + values.tobytes())[1:]
    brains = values.astype(ml_dtypes.bfloat16)
    for weights in (values, values.tobytes(), bytearray(values), mapped, skewed, floats(2, 2)):
        model = Executable(program, Code(), weights)
        np.testing.assert_array_equal(model.run({})[0], values)
        assert model.memory().weights_bytes == 16
        assert model.weights.ctypes.data % 64 == 0
    assert Executable(Draft().program(), Code(), brains).memory().weights_bytes == 8


def test_weights_that_are_too_short():
    d = Draft()
    d.buffer("w", Place.WEIGHTS, [4], offset=constant(4))
    d.output("y", [4], of="w")
    with raises_code("A204", text="`w` does not have room for 16 bytes"):
        Executable(d.program(), Code(), bytes(19)).run({})


@THREADS
def test_parts_are_written_in_place(entry, threads):
    """Two halves of one array, by kernels of their own; a part of a part; parts of an input."""
    d = Draft()
    d.input("x", ["n"])
    d.size("twice", product(2, d.of("n")))
    d.output("y", ["twice"])
    d.buffer("left", Place.PART, ["n"], parent=d.at("y"), offset=constant(0))
    d.buffer("right", Place.PART, ["n"], parent=d.at("y"), offset=product(4, d.of("n")))
    rest = (*d.of("n"), (SizeOp.CONST, 1), (SizeOp.SUB, 0))
    d.size("rest", rest)
    d.buffer("tail", Place.PART, ["rest"], parent=d.at("right"), offset=constant(4))
    d.buffer("head", Place.PART, ["rest"], parent=d.at("x"), offset=constant(0))
    d.kernel("add", entry("add"))
    d.call("add", "x x left", "n")
    d.call("add", "left x right", "n")
    d.call("add", "tail head tail", "rest")
    (y,) = agree(d, {"x": floats(4)}, threads)
    assert y.tolist() == [2, 4, 6, 8, 3, 7, 11, 15]
    assert agree(d, {"x": floats(1)}, threads)[0].tolist() == [2, 3]


def test_part_outside_of_its_parent():
    d = Draft()
    d.input("x", ["n"])
    d.buffer("part", Place.PART, ["n"], parent=d.at("x"), offset=constant(4))
    d.output("y", ["n"], of="part")
    with raises_code("A204", text="`part` does not have room for 12 bytes"):
        Executable(d.program(), Code()).run({"x": floats(3)})


def positive(entry) -> Draft:
    """y = the positive elements of x, doubled."""
    d = Draft(segments=2)
    d.input("x", ["n"])
    d.size("m", segment=1)
    d.temporary("count", [1], 0, 1, i64)
    d.temporary("chosen", ["m"], 2, 3, segment=1)
    d.output("y", ["m"], segment=1)
    d.kernel("count_positive", entry("count_positive"), parallel=False)
    d.kernel("take_positive", entry("take_positive"), parallel=False)
    d.kernel("add", entry("add"))
    d.call("count_positive", "x count", "n")
    d.steps.append(Enter(1, ((d.number("m"), d.at("count"), 0),)))
    d.call("take_positive", "x chosen", "n m")
    d.call("add", "chosen chosen y", "m")
    return d


@THREADS
def test_segments_have_sizes_that_depend_on_data(entry, threads):
    d = positive(entry)
    for x in ([1, -1, 2], [-1], [5, 6, 7, 8], [1, -1, 3], [0, 0, 0]):
        array = np.array(x, np.float32)
        (y,) = agree(d, {"x": array}, threads)
        np.testing.assert_array_equal(y, 2 * array[array > 0])


@THREADS
def test_jumps_choose_and_repeat(entry, threads):
    """While y < limit: y = y + x."""
    d = Draft()
    d.input("x", ["n"])
    d.input("limit", [])
    d.output("y", ["n"])
    d.temporary("t", ["n"], 0, 5)
    d.temporary("flag", [1], 0, 5, boolean)
    d.kernel("add", entry("add"))
    d.kernel("is_below", entry("is_below"), parallel=False)
    d.call("add", "x x y", "n")
    d.call("is_below", "y limit flag")
    d.steps.append(Jump(6, d.at("flag")))
    d.call("add", "y x t", "n")
    d.call("add", "t x y", "n")
    d.steps.append(Jump(1))
    for limit, steps in ((0, 2), (2.5, 4), (3, 4), (9, 10), (101, 102)):
        feeds = {"x": floats(6), "limit": np.float32(limit)}
        (y,) = agree(d, feeds, threads)
        np.testing.assert_array_equal(y, steps * floats(6))


@THREADS
def test_counted_loops_move_parts(entry, threads):
    """Row by row: y[k] = x[k] + x[k]; the number of an iteration is a size that is assigned."""
    d = Draft(segments=2)
    d.input("x", ["rows", 3])
    d.size("width", constant(3))
    d.size("k", segment=1)
    d.output("y", ["rows", 3])
    before = (*d.of("k"), (SizeOp.CONST, 1), (SizeOp.SUB, 0))
    for name, whole in (("from", "x"), ("to", "y")):
        offset = product(12, before)
        d.buffer(name, Place.PART, [3], parent=d.at(whole), offset=offset, segment=1)
    d.kernel("add", entry("add"))
    d.steps.append(Assign(d.number("k"), constant(0)))
    d.steps.append(Assign(d.number("k"), (*d.of("k"), (SizeOp.CONST, 1), (SizeOp.ADD, 0))))
    d.steps.append(Jump(6, condition=(*d.of("k"), *d.of("rows"), (SizeOp.LE, 0))))
    d.steps.append(Enter(1))
    d.call("add", "from from to", "width")
    d.steps.append(Jump(1))
    for rows in (1, 5, 0, 2):
        (y,) = agree(d, {"x": floats(rows, 3)}, threads)
        np.testing.assert_array_equal(y, 2 * floats(rows, 3))


def test_steps_that_cannot_be_computed():
    d = Draft(segments=2)
    d.input("x", ["n"])
    d.size("k", segment=1)
    d.steps.append(Assign(d.number("k"), ((SizeOp.CONST, 1), *d.of("n"), (SizeOp.MOD, 0))))
    model = Executable(d.program(), Code(), threads=1)
    assert model.run({"x": floats(1)}) == []
    with raises_code("C025", text="step 0"):
        model.run({"x": floats(0)})


@THREADS
def test_steps_of_python(entry, threads):
    """Kernels before and after functions that know the sizes, and keep what they are given."""
    kept = []

    def reverse(a, b):
        kept.append(a)
        return (a + b)[::-1], b.astype(np.float64)

    d = Draft()
    d.input("x", ["n"])
    d.temporary("t", ["n"], 0, 1)
    d.buffer("h", Place.HOST, ["n"])
    d.buffer("g", Place.HOST, ["n"], f64)
    d.buffer("first", Place.PART, [1], parent=d.at("h"), offset=constant(0))
    d.output("y", ["n"])
    d.output("z", ["n"], f64, of="g")
    d.output("f", [1], of="first")
    d.kernel("add", entry("add"))
    d.call("add", "x x t", "n")
    operands = tuple(Operand(d.at(name), d.inputs[0].dtype, (-1,)) for name in ("t", "x"))
    made = (Operand(d.at("h"), f32, (-1,)), Operand(d.at("g"), f64, (-1,)))
    d.steps.append(Host(0, operands, made))
    d.call("add", "h x y", "n")
    y, z, f = agree(d, {"x": floats(3)}, threads, functions=[reverse])
    assert (y.tolist(), z.tolist(), f.tolist()) == ([10, 8, 6], [1, 2, 3], [9])
    assert all(a.tolist() == [2, 4, 6] for a in kept)


@THREADS
def test_steps_of_python_tell_sizes(entry, threads):
    """The function says how long its result is; everything after depends on it."""
    d = Draft(segments=2)
    d.input("x", ["n"])
    d.size("m", segment=1)
    d.buffer("h", Place.HOST, ["m"], segment=1)
    d.output("y", ["m"], segment=1)
    d.kernel("add", entry("add"))
    operand = Operand(d.at("x"), d.inputs[0].dtype, (-1,))
    made = Operand(d.at("h"), f32, (-1 - d.number("m"),))
    d.steps.append(Host(0, (operand,), (made,), ((d.number("m"), 0, 0),), "repeat"))
    d.steps.append(Enter(1))
    d.call("add", "h h y", "m")
    model = Executable(
        d.program(), Code(), functions=[lambda x: [np.repeat(x, 3)]], threads=threads
    )
    for n in (2, 5, 0, 1):
        x = floats(n)
        np.testing.assert_array_equal(model.run({"x": x})[0], 2 * np.repeat(x, 3))
        assert interpret(model.program, {"x": x}, b"", model.functions)[0].shape == (3 * n,)


def host_only(function) -> Executable:
    d = Draft()
    d.input("x", ["n"])
    d.buffer("h", Place.HOST, ["n"])
    d.output("y", ["n"], of="h")
    operand = Operand(d.at("x"), d.inputs[0].dtype, (-1,))
    made = Operand(d.at("h"), f32, (-1,))
    d.steps.append(Host(0, (operand,), (made,), label="fallback"))
    return Executable(d.program(), Code(), functions=[function], threads=1)


def test_exception_of_a_python_step_reaches_the_caller():
    def refuse(x):
        raise KeyError(f"{len(x)} elements")

    model = host_only(refuse)
    for _ in range(2):
        with pytest.raises(KeyError, match="3 elements"):
            model.run({"x": floats(3)})
    assert model.memory().frames == 1


@pytest.mark.parametrize("answer", [[], [floats(3), floats(3)]])
def test_python_step_that_returns_another_number_of_arrays(answer):
    with pytest.raises(SystemError, match=r"`fallback` returned [02] arrays instead of 1"):
        host_only(lambda _: answer).run({"x": floats(3)})


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        (floats(2), "a result of shape [2], where the model says [3]"),
        (floats(4), "a result of shape [4], where the model says [3]"),
        (floats(3).reshape(1, 3), "a result of 2 dimensions, where the model says 1"),
        (np.array([1, 2, 3], np.complex64), "a result of type complex64, where the model says f32"),
        (np.array(["a", "b", "c"], object), "a result of type object, where the model says f32"),
    ],
    ids=["short", "long", "rank", "complex", "texts"],
)
def test_python_step_that_returns_another_array(answer, found):
    with raises_code("C025", text=f"`fallback` gives {found}"):
        host_only(lambda _: [answer]).run({"x": floats(3)})


@pytest.mark.parametrize("dtype", ["f8", "f2", "i4", "?"])
def test_numbers_of_a_python_step_are_converted(dtype):
    """Integers have as many bytes as floats: they must not be taken for them."""
    (y,) = host_only(lambda x: [x.astype(dtype)]).run({"x": floats(3)})
    assert y.dtype == np.float32
    np.testing.assert_array_equal(y, floats(3).astype(dtype))


def test_sizes_that_results_of_a_python_step_share_must_agree():
    d = Draft(segments=2)
    d.input("x", ["n"])
    d.size("m", segment=1)
    made = []
    for name in ("h", "g"):
        d.buffer(name, Place.HOST, ["m"], segment=1)
        d.output(f"y{name}", ["m"], of=name, segment=1)
        made.append(Operand(d.at(name), f32, (-1 - d.number("m"),)))
    operand = Operand(d.at("x"), f32, (-1,))
    d.steps.append(Host(0, (operand,), tuple(made), ((d.number("m"), 0, 0),), "cut"))
    d.steps.append(Enter(1))
    model = Executable(d.program(), Code(), functions=[lambda x: [x[:2], x[:2]]], threads=1)
    assert [y.tolist() for y in model.run({"x": floats(3)})] == [[1, 2], [1, 2]]
    model = Executable(d.program(), Code(), functions=[lambda x: [x[:2], x]], threads=1)
    with raises_code("C025", text="of shape [3], where the model says [2]"):
        model.run({"x": floats(3)})


def test_python_step_may_run_another_model(entry):
    inner = Executable(chain(entry, 2).program(), Code(), threads=2)
    model = host_only(lambda x: inner.run({"x": x}))
    np.testing.assert_array_equal(model.run({"x": floats(3)})[0], 4 * floats(3))


def test_kernels_that_are_not_in_the_image(entry):
    class Short(Code):
        bytes = b"1234"

    d = chain(entry, 1)
    with raises_code("A204", text="kernel `add` is not in the machine code"):
        Executable(d.program(), Short())
    d.kernels[0] = type(d.kernels[0])("add", 3, True)
    assert Executable(d.program(), Short()).memory().image_bytes == 4


def test_functions_that_are_not_given():
    d = Draft()
    d.steps.append(Host(2, (), ()))
    with pytest.raises(ValueError, match="uses function 2, and 1 functions are given"):
        Executable(d.program(), Code(), functions=[list])


def test_scalars_and_other_types(entry):
    d = Draft()
    d.input("x", [])
    d.input("b", ["n", 2], bf16)
    d.output("y", [])
    d.output("c", ["n", 2], bf16, of="b")
    d.kernel("negate_scalar", entry("negate_scalar"), parallel=False)
    d.call("negate_scalar", "x y")
    b = floats(3, 2).astype(ml_dtypes.bfloat16)
    y, c = agree(d, {"x": np.array(2, np.float32), "b": b}, 1)
    assert y.shape == ()
    assert y == -2
    np.testing.assert_array_equal(c, b)


@THREADS
def test_scratch_of_kernels(entry, threads):
    d = Draft()
    d.input("x", ["n"], i64)
    d.output("y", ["n"], i64)
    d.output("sum", [1], i64)
    d.temporary("t", ["n"], 0, 2, i64)
    d.kernel("reverse", entry("reverse"), scratch=entry("reverse_scratch"))
    d.kernel("use_scratch", entry("use_scratch"), shared_bytes=8 * 1024, local_bytes=8)
    d.call("reverse", "x t", "n")
    d.call("use_scratch", "sum", wait=False)  # but they share scratch, so they wait
    d.call("reverse", "t y", "n", wait=False)
    model = Executable(d.program(), Code(), threads=threads)
    for n in (10, 3000, 10):
        x = np.arange(n)
        for _ in range(20):
            y, total = model.run({"x": x})
            np.testing.assert_array_equal(y, x)
            assert total == [threads]
    assert model.memory().scratch_bytes >= 3000 * 8 + threads * 8


def test_empty_calls_are_left_out(entry):
    """Kernels are compiled for sizes of at least one: this one would fail."""
    d = Draft()
    d.input("x", ["n"])
    d.output("y", ["n"])
    d.kernel("fail", entry("fail"))
    d.call("fail", "x y", "n")
    model = Executable(d.program(), Code(), threads=2)
    assert model.run({"x": floats(0)})[0].shape == (0,)
    with raises_code("C013", text="step: fail"):
        model.run({"x": floats(1)})


@pytest.mark.parametrize("threads", [2, 3])
def test_failure_of_one_thread(entry, threads):
    d = Draft()
    d.input("x", ["n"])
    d.output("y", ["n"])
    d.kernel("add", entry("add"))
    d.kernel("fail", entry("fail_on_thread_one"))
    d.call("add", "x x y", "n")
    d.call("fail", "x y", "n")
    d.call("add", "x x y", "n")
    model = Executable(d.program(), Code(), threads=threads)
    for _ in range(20):
        with raises_code("C013", facts={"code": 41}):
            model.run({"x": floats(10)})
    assert model.memory().frames == 1


def test_sizes_and_bytes_that_cannot_be(entry):
    d = Draft()
    d.input("x", ["n"])
    d.size("huge", product(*[d.of("n")] * 6))
    d.size("rest", (*d.of("n"), (SizeOp.CONST, 1000), (SizeOp.SUB, 0)))
    d.size("ratio", ((SizeOp.CONST, 10), *d.of("rest"), (SizeOp.FLOORDIV, 0)))
    d.temporary("t", ["rest"], 0, 0)
    d.kernel("add", entry("add"))
    d.call("add", "x x x", "n")
    model = Executable(d.program(), Code(), threads=1)
    problems = [(1 << 11, "`huge` is too large"), (1000, "`ratio` is too large, or a division by")]
    problems += [(999, "`t` would have -4 bytes")]
    for n, text in problems:
        with raises_code("C025", text=text):
            model.run({"x": floats(n)})
    assert model.run({"x": floats(1001)}) == []


def test_memory_that_nobody_has(entry):
    d = Draft()
    d.input("x", ["n"])
    d.temporary("t", ["n", 1 << 62], 0, 0)
    d.temporary("u", ["n", 1 << 60], 0, 0)
    d.temporary("v", ["n", 1 << 60], 0, 0)
    d.kernel("add", entry("add"))
    d.call("add", "x x x", "n")
    with raises_code("C025", text="`t` would have more bytes than there are addresses"):
        Executable(d.program(), Code(), threads=1).run({"x": floats(1)})
    del d.buffers[1]
    with raises_code("C025", text="`u` would have more bytes than there are addresses"):
        Executable(d.program(), Code(), threads=1).run({"x": floats(1)})
    del d.buffers[1]
    with raises_code("C026", text="for: `v` and smaller arrays"):
        Executable(d.program(), Code(), threads=1).run({"x": floats(1)})


def test_scratch_that_nobody_has(entry):
    d = Draft()
    d.input("x", ["n"], i64)
    d.output("y", ["n"], i64)
    d.kernel("reverse", entry("reverse"), scratch=entry("endless_scratch"))
    d.call("reverse", "x y", "n")
    with raises_code("C026", text="for: scratch of kernels"):
        Executable(d.program(), Code(), threads=1).run({"x": np.arange(3)})


def test_output_that_no_step_has_made(entry):
    d = Draft()
    d.input("x", ["n"])
    d.buffer("h", Place.HOST, ["n"])
    d.output("y", ["n"], of="h")
    with raises_code("A204", text="an output needs `h`, which has no memory"):
        Executable(d.program(), Code(), threads=1).run({"x": floats(1)})
    d.kernel("add", entry("add"))
    d.call("add", "x h x", "n")
    with raises_code("A204", text=r"step 0 (add) needs `h`, which has no memory"):
        Executable(d.program(), Code(), threads=2).run({"x": floats(1)})


def test_calls_with_little_to_do_run_on_one_thread(entry):
    """`use_scratch` counts its threads; its work is said to be a thousand operations for each n."""
    d = Draft()
    d.input("x", ["n"])
    d.output("count", [1], i64)
    d.kernel("count", entry("use_scratch"), shared_bytes=4096, local_bytes=64)
    d.call("count", "count", "n")
    thousand = (*d.of("n"), *constant(1000), (SizeOp.MUL, 0))
    d.steps[-1] = dataclasses.replace(d.steps[-1], flops=thousand, moved_bytes=constant(8))
    model = Executable(d.program(), Code(), threads=2)
    for n, threads in ((10, 1), (5000, 2), (10, 1), (0, 1)):
        assert model.run({"x": floats(n)})[0] == threads
