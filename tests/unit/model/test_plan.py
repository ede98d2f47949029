"""Branches and loops as steps with jumps."""

from __future__ import annotations

import re

import numpy as np
import pytest

from tilewright.dtypes import boolean, f32, i64
from tilewright.graph import Builder, Graph, verify_graph
from tilewright.graph.loops import Turn, branch, loop
from tilewright.graph.ops.by_size import BySize
from tilewright.graph.ops.host import Host
from tilewright.graph.ops.window import Conv
from tilewright.graph.ops.winograd import WinogradConv
from tilewright.model.plan import plan_graph
from tilewright.model.steps import Assign, Branch, Enter, HostStep, KernelStep, Label, Plan
from tilewright.tensor import ir as tir
from tilewright.tensor.printer import print_node

N = tir.Var("n")


def listing(plan: Plan) -> str:
    """A line for each step; labels stand at the margin, with the number of their place."""
    labels = [s for s in plan.steps if isinstance(s, Label)]
    names = {label: f"{label.name}{k}" for k, label in enumerate(labels)}
    lines = []
    for step in plan.steps:
        match step:
            case Label():
                lines.append(f"{names[step]}:")
            case KernelStep():
                ops = " ".join(node.op.name for node in step.group.nodes)
                read = " ".join(plan.root(v).name for v in step.group.inputs())
                written = " ".join(v.name for v in step.outputs)
                lines.append(f"  call {ops}: {read} -> {written}")
            case HostStep(node=node, defines=defines):
                told = ", ".join(f"{var.name} by {k}, {axis}" for var, k, axis in defines)
                lines.append(f"  host {node.op}: {told}")
            case Enter(segment=segment, read=read):
                told = ", ".join(f"{size.name} = {value.name}" for size, value in read)
                lines.append(f"  enter {segment} {told}".rstrip())
            case Assign(size=size, value=value):
                lines.append(f"  {size.name} = {print_node(value)}")
            case Branch(to=to, unless=None):
                lines.append(f"  go to {names[to]}")
            case Branch(to=to, unless=tir.Expr() as condition):
                lines.append(f"  unless {print_node(condition)} go to {names[to]}")
            case Branch(to=to, unless=value):
                lines.append(f"  unless {plan.root(value).name} go to {names[to]}")
    return re.sub(r"\bfound\d+", "found", "\n".join(lines))  # others have made such sizes, too


def plus(b, x, number):
    return b.map(lambda v: v + number, x)


def test_views_and_order(golden):
    b = Builder()
    x = b.input("x", f32, (N, 6))
    y = b.reshape(plus(b, x, 1.0), (N, 2, 3))
    z = b.reduce(tir.Fold.MAX, y, (1,), keepdims=False)
    graph = b.graph([z, y])
    plan = plan_graph(graph)
    assert [plan.root(v).name for v in graph.outputs] == ["reduce", "map"]
    assert golden == listing(plan)


def test_a_branch(golden):
    b = Builder()
    c, x = b.input("c", boolean, ()), b.input("x", f32, (N,))
    (y,) = branch(
        b,
        c,
        lambda i, outside: [plus(i, plus(i, outside(x), 1.0), 2.0)],
        lambda _, outside: [outside(x)],
    )
    assert golden == listing(plan_graph(b.graph([plus(b, y, 3.0)])))


def test_a_branch_of_two_sizes_says_which_one_it_is(golden):
    b = Builder()
    c, x = b.input("c", boolean, ()), b.input("x", f32, (N,))
    (y,) = branch(
        b, c, lambda i, outside: [i.concat([outside(x)] * 2, 0)], lambda _, outside: [outside(x)]
    )
    plan = plan_graph(b.graph([y]))
    (size,) = (d for d in y.shape if isinstance(d, tir.Var))
    assert plan.segments[size] == 1
    assert golden == listing(plan)


def test_kernels_by_size(golden):
    b = Builder()
    x = b.input("x", f32, (N, N, 4, 16))
    weights = [
        b.constant(np.zeros(s, np.float32), n)
        for s, n in (((4, 4, 16, 8), "t"), ((8, 16, 3, 3), "w"))
    ]
    ones, pads = (1, 1), (1, 1, 1, 1)
    small = Conv(ones, ones, pads, 1, f32)
    large = WinogradConv((3, 3), (2, 2), ones, ones, pads, 1, f32)
    y = b.add(BySize(large, small, 100), x, *weights)
    assert golden == listing(plan_graph(b.graph([plus(b, y, 1.0)])))


def counting(tested=False, condition=None, collects=True) -> Graph:
    """Adds, collects squares, and swaps two carried values."""
    b = Builder()
    limit, *rest = b.input("m", i64, ()), *(b.input(name, f32, (N,)) for name in "pqw")
    p, q, w = rest

    def body(i, step, carried, outside):
        first, second = carried
        moved = i.map(lambda v, k, s: v + k * s.to(f32), second, outside(w), step)
        square = i.map(lambda v: v * v, moved)
        top = i.reshape(i.reduce(tir.Fold.MAX, square, (0,)), ())
        goes_on = i.map(lambda v: v < 100.0, top) if tested else None
        return Turn([moved, first], [square] if collects else [], goes_on)

    known = None if condition is None else b.constant(np.bool_(condition))
    return verify_graph(b.graph(loop(b, body, limit, [p, q], known)))


@pytest.mark.parametrize("tested", [False, True], ids=["counted", "tested"])
def test_a_loop(golden, tested):
    graph = counting(tested, collects=not tested)
    plan = plan_graph(graph)
    assert len(plan.loops) == 1
    assert [value.name for value in plan.parts] == ([] if tested else ["loop_2_part"])
    assert golden == listing(plan)


def test_a_loop_whose_condition_is_known_to_be_false_is_skipped():
    skipped = plan_graph(counting(condition=False))
    always = plan_graph(counting(condition=True))
    ends = [
        [step for step in plan.steps if isinstance(step, Branch) and step.to.name == "end"]
        for plan in (skipped, always)
    ]
    assert [len(steps) for steps in ends] == [2, 1]


def test_a_condition_that_is_carried_is_asked_as_it_was():
    """The body gives the old state as its condition; the state has changed when it is asked."""
    b = Builder()
    limit, flag = b.input("m", i64, ()), b.input("flag", boolean, ())

    def body(i, _step, carried, _outside):
        return Turn([i.map(lambda v: ~v, carried[0])], goes_on=carried[0])

    plan = plan_graph(b.graph(loop(b, body, limit, [flag])))
    (test,) = [s for s in plan.steps if isinstance(s, Branch) and hasattr(s.unless, "name")]
    writers = [k.outputs for k in plan.steps if isinstance(k, KernelStep)]
    assert (test.unless,) in writers
    assert sum(test.unless in values for values in writers) == 1


def test_a_loop_in_a_branch_in_a_loop():
    b = Builder()
    limit, x = b.input("m", i64, ()), b.input("x", f32, (N,))

    def inner(i, _step, carried, _outside):
        return Turn([plus(i, carried[0], 1.0)])

    def outer(i, step, carried, outside):
        even = i.map(lambda s: (s % 2).eq(0), step)
        return Turn(
            branch(
                i,
                even,
                lambda j, out: loop(j, inner, out(outside(limit)), [out(carried[0])]),
                lambda j, out: [plus(j, out(carried[0]), 10.0)],
            )
        )

    plan = plan_graph(b.graph(loop(b, outer, limit, [x])))
    labels = [s for s in plan.steps if isinstance(s, Label)]
    assert [label.name for label in labels] == ["again", "again", "end", "else", "end", "end"]
    places = {label: plan.steps.index(label) for label in labels}
    (first, second) = sorted((places[a], places[z]) for a, z in plan.loops)
    assert first[0] < second[0] < second[1] < first[1]
    jumps = [s.to for s in plan.steps if isinstance(s, Branch)]
    assert set(jumps) == set(labels)


def test_python_functions_may_tell_sizes():
    b = Builder()
    x, found = b.input("x", f32, (N,)), tir.Var("found")
    kind = b.input("like", f32, (found, 2)).type
    b.inputs.pop()
    op = Host("onnx", b"", "Unique", (kind,), lambda a: [a])
    plan = plan_graph(b.graph([b.map(lambda v: v + 1.0, b.add(op, x))]))
    assert listing(plan).splitlines() == [
        "  host host(function=Unique): found by 0, 0",
        "  enter 1",
        "  call map: host -> map",
    ]
    assert plan.segment([found * 2]) == 1
    assert plan.segment([N]) == 0


def test_carried_values_that_grow_are_moved_at_the_end_of_an_iteration(golden):
    b = Builder()
    limit, x = b.input("m", i64, ()), b.input("x", f32, (2,))

    def body(i, _step, carried, outside):
        return Turn([i.concat([carried[0], outside(x)], 0)])

    plan = plan_graph(b.graph(loop(b, body, limit, [x])))
    (held,) = (v for v in plan.segments if v.name.endswith("held"))
    (own,) = (v for v in plan.segments if v.name == "carried")
    assert plan.segment([held]) < plan.segment([own])
    assert golden == listing(plan)


@pytest.mark.parametrize(
    ("loop", "grows"),
    [
        ({}, False),
        ({"condition": True}, False),
        ({"condition": False}, True),
        ({"tested": True}, True),
        ({"condition": False, "collects": False}, False),
        ({"tested": True, "collects": False}, False),
    ],
    ids=str,
)
def test_rows_grow_if_nothing_small_limits_them(loop, grows):
    plan = plan_graph(counting(**loop))
    assert any(v.name.endswith("spare") for v in plan.homes) == grows


def test_rows_that_grow(golden):
    assert golden == listing(plan_graph(counting(tested=True)))


def test_assumptions_of_a_branch_belong_to_a_segment_of_its_own(golden):
    b = Builder()
    c, x, w = b.input("c", boolean, ()), b.input("x", f32, (N,)), b.input("w", f32, (tir.Var("m"),))
    (y,) = branch(
        b,
        c,
        lambda i, outside: [i.map(lambda p, q: p + q, outside(x), outside(w))],
        lambda i, outside: [plus(i, outside(x), 1.0)],
    )
    plan = plan_graph(b.graph([y]))
    assert [segment for _, segment in plan.nodes] == [0, 1, 0]
    assert golden == listing(plan)


def test_a_loop_learns_the_size_of_what_it_collects_from_its_first_iteration(golden):
    b = Builder()
    limit, x = b.input("m", i64, ()), b.input("x", f32, (N,))

    def body(i, step, _carried, outside):
        (place,) = i.integers(step)
        return Turn([], [i.remap(outside(x), [N - place], lambda o: [o + place])])

    plan = plan_graph(b.graph(loop(b, body, limit, [])))
    ((own, first, segment),) = plan.alike
    assert print_node(own) == "n - step + 1"
    assert plan.segment([first]) < segment == plan.segment_count - 1
    assert golden == listing(plan)
