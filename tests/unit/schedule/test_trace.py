"""Traces print as Python, go to JSON and back, and replay to the same program."""

import json

import pytest

from tests.expect import raises_code
from tests.programs import assert_same_meaning, matmul, matmul_relu, vector_add
from tilewright.schedule import Schedule, Step, Trace


def scheduled() -> Schedule:
    schedule = Schedule(matmul_relu(10, 8, 6))
    schedule.split("i", [(4, 2), (2, 1)])
    schedule.split("j", 4)
    schedule.reorder("i_0", "j_0", "k", "i_1", "j_1")
    schedule.decompose_reduction("C", "k")
    schedule.vectorize("j_1")
    schedule.annotate("C", "role", ("tile", 1.5, None, True))
    schedule.parallel("x")
    return schedule


def test_trace_prints_as_python(golden):
    assert golden == scheduled().trace.as_python()


def test_printed_trace_runs():
    first, second = scheduled(), Schedule(matmul_relu(10, 8, 6))
    exec(first.trace.as_python("s"), {"s": second})
    assert second.trace == first.trace
    assert str(second.func) == str(first.func)


def test_json_round_trip():
    trace = scheduled().trace
    text = trace.to_json()
    assert "\n" not in text
    assert json.loads(text)["format"] == "tilewright-trace-1"
    assert Trace.from_json(text) == trace
    assert hash(Trace.from_json(text)) == hash(trace)


def test_replay_gives_the_same_program(rng):
    first = scheduled()
    second = Schedule(matmul_relu(10, 8, 6)).replay(first.trace)
    assert str(second.func) == str(first.func)
    assert_same_meaning(second, matmul_relu(10, 8, 6), rng)


def test_traces_join():
    a, b = Trace((Step.of("split", loop="i", tiles=4),)), Trace((Step.of("unroll", loop="i_1"),))
    schedule = Schedule(vector_add(8), a + b)
    assert len(schedule.trace) == 2
    assert list(schedule.trace) == [*a, *b]


def test_lists_and_tuples_are_the_same_step():
    assert Step.of("reorder", loops=["j", "i"]) == Step.of("reorder", loops=("j", "i"))


def test_positional_and_keyword_arguments_are_the_same_step():
    first, second = Schedule(matmul()), Schedule(matmul())
    first.decompose_reduction("C", "k")
    second.decompose_reduction(loop="k", block="C")
    assert str(first.func) == str(second.func)
    assert dict(first.trace.steps[0].args) == dict(second.trace.steps[0].args)


def test_a_refused_step_is_not_recorded():
    schedule = scheduled()
    before = schedule.trace
    with raises_code("S101"):
        schedule.split("j_1", 2)
    assert schedule.trace == before


def test_copies_go_their_own_way():
    first = Schedule(vector_add(8))
    first.split("i", 4)
    second = first.copy()
    second.unroll("i_1")
    assert len(first.trace) == 1
    assert len(second.trace) == 2


def test_replay_names_the_step_that_fails():
    trace = Trace((Step.of("split", loop="i", tiles=4), Step.of("unroll", loop="j")))
    with raises_code("S001", text='step: unroll("j")'):
        Schedule(vector_add(8), trace)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"format": "tilewright-trace-0", "steps": []}',
        '{"format": "tilewright-trace-1"}',
        '{"format": "tilewright-trace-1", "steps": [["split"]]}',
        '{"format": "tilewright-trace-1", "steps": [["split", ["i", 4]]]}',
        '{"format": "tilewright-trace-1", "steps": [["split", {"loop": {"a": 1}}]]}',
        '{"format": "tilewright-trace-1", "steps": 3}',
    ],
)
def test_from_json_rejects_other_texts(text):
    with raises_code("S004", text="a trace is made by `Trace.to_json`"):
        Trace.from_json(text)


def test_from_json_rejects_unknown_primitives():
    with raises_code("S003", text="no primitive `bind`"):
        Trace.from_json('{"format": "tilewright-trace-1", "steps": [["bind", {"loop": "i"}]]}')


def test_apply_rejects_unknown_primitives():
    with raises_code("S003", text="known: "):
        Schedule(vector_add()).apply(Step.of("bind", loop="i"))


def test_steps_store_plain_values_only():
    with pytest.raises(TypeError, match="cannot store"):
        Step.of("split", loop=object())
