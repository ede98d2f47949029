"""The compiler's and the runtime's view of programs: the same numbers, the same rows."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from tests.models import Draft
from tilewright.abi import MAX_THREADS
from tilewright.runtime import _native
from tilewright.runtime import tables as rows
from tilewright.runtime.failures import Outcome
from tilewright.runtime.program import Place, SizeOp
from tilewright.runtime.sizes import constant
from tilewright.runtime.verify import MAX_DEPTH

NATIVE = Path(__file__).parents[3] / "src/tilewright/runtime/native"


def header(name: str) -> str:
    text = (NATIVE / name).read_text(encoding="utf-8")
    return re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)


def enumerators(file: str, name: str) -> list[str]:
    body = re.search(rf"typedef enum {name} {{(.*?)}}", header(file), flags=re.DOTALL)
    assert body is not None
    return [word.strip().removeprefix("TW_") for word in body[1].split(",") if word.strip()]


def members(file: str, name: str) -> int:
    """How many numbers a structure of C has; a span or an expression is two."""
    body = re.search(rf"typedef struct {name} {{(.*?)}} {name};", header(file), flags=re.DOTALL)
    assert body is not None
    found = re.findall(r"(int64_t|tw_\w+) ([^;]*);", body[1])
    return sum(len(names.split(",")) * (1 if kind == "int64_t" else 2) for kind, names in found)


def test_operations_have_the_same_numbers():
    assert enumerators("expression.h", "tw_size_op") == [op.name for op in SizeOp]
    assert [op.value for op in SizeOp] == list(range(len(SizeOp)))


def test_outcomes_have_the_same_numbers():
    assert enumerators("frame.h", "tw_outcome") == [outcome.name for outcome in Outcome]
    assert [outcome.value for outcome in Outcome] == list(range(len(Outcome)))


def test_places_and_steps_have_the_same_numbers():
    places = [name.removesuffix("_MADE") for name in enumerators("program.h", "tw_place")]
    assert places == [place.name for place in rows.PLACES]
    kinds = enumerators("program.h", "tw_kind")
    assert [getattr(rows, kind) for kind in kinds] == list(range(len(kinds)))


def test_limits_are_the_same():
    assert f"#define TW_EXPRESSION_DEPTH {MAX_DEPTH}\n" in header("expression.h").replace(
        " \n", "\n"
    )
    assert _native.describe_abi()["max_threads"] == MAX_THREADS


def test_rows_have_as_many_numbers_as_structures_have_members():
    d = Draft()
    d.input("x", ["n"])
    d.buffer("w", Place.WEIGHTS, [1], offset=constant(0))
    d.kernel("k", 1)
    d.call("k", "x w", "n")
    tables = rows.encode(d.program(), 0)
    counts = {"tw_size": 1, "tw_buffer": 2, "tw_code": 1, "tw_step": 1}
    for table, (name, count) in zip(tables[1:5], counts.items(), strict=True):
        assert len(table) == count * members("program.h", name)


def test_equal_expressions_are_kept_once():
    d = Draft()
    d.input("x", ["n"])
    d.output("y", ["n"])
    operations, *_ = rows.encode(d.program(), 0)
    assert len(operations) == 2 * len(d.buffers[0].bytes)


def test_addresses_count_from_the_image():
    d = Draft()
    d.kernel("k", 16, scratch=32)
    d.kernel("l", 48)
    kernels = rows.encode(d.program(), 1 << 20)[3].reshape(2, -1)
    assert kernels[:, :2].tolist() == [[(1 << 20) + 16, (1 << 20) + 32], [(1 << 20) + 48, 0]]


def native(*tables: object, threads: int = 1) -> _native.Program:
    nothing: tuple[tuple[()], tuple[()], tuple[()]] = ((), (), ())
    return _native.Program(tables, 1, threads, b"", nothing, nothing)


@pytest.mark.parametrize(
    ("tables", "text"),
    [
        ((), "a program has six tables"),
        ((np.zeros(3, np.int64),) * 6, "a table does not consist of rows"),
    ],
)
def test_native_side_rejects_other_tables(tables, text):
    with pytest.raises(ValueError, match=text):
        native(*tables)


def test_native_program_is_initialised_once():
    empty = np.zeros(0, np.int64)
    program = native(*[empty] * 6)
    assert program.run({}) == []
    with pytest.raises(TypeError, match="initialised once"):
        program.__init__((empty,) * 6, 1, 1, b"", ((), (), ()), ((), (), ()))  # type: ignore[misc]
    with pytest.raises(TypeError, match="has not been initialised"):
        _native.Program.__new__(_native.Program).run({})


def test_ports_of_the_native_side_are_checked():
    empty = [np.zeros(0, np.int64)] * 6
    spec = (np.dtype(np.int64), 8, (), False, None, None)
    for ports, text in [(((spec,), ("x",), (0,)), "does not exist"), (((), ("x",), ()), "a name")]:
        with pytest.raises(ValueError, match=text):
            _native.Program(tuple(empty), 1, 1, b"", ports, ((), (), ()))
