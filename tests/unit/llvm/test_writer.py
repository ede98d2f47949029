"""What is written once, where it goes, and what is never moved."""

from tilewright.llvm.writer import HOISTED_LOADS, Value, Writer

X, P = Value("%x", "i64"), Value("%p", "ptr")


def test_equal_instructions_are_written_once():
    w = Writer()
    assert w.binary("add", X, 1) is w.binary("add", X, 1)
    assert w.binary("add", X, 1) is not w.binary("add", X, 2)
    assert len(w.region.lines) == 2


def test_invariant_values_leave_loops():
    w = Writer()
    with w.inside(is_loop=True, writes=frozenset()) as outer:
        i = Value("%i", "i64", outer.depth)
        with w.inside(is_loop=True, writes=frozenset()) as inner:
            j = Value("%j", "i64", inner.depth)
            w.binary("mul", X, 3)
            w.binary("mul", i, 3)
            w.binary("mul", j, 3)
    assert [len(region.lines) for region in (w.region, outer, inner)] == [1, 1, 1]


def test_values_leave_branches_only_on_the_way_out_of_a_loop():
    w = Writer()
    with w.inside(is_loop=False) as branch:
        w.binary("add", X, 1)
    assert len(branch.lines) == 1
    with w.inside(is_loop=True, writes=frozenset()) as loop:
        i = Value("%i", "i64", loop.depth)
        with w.inside(is_loop=False) as inside:
            w.binary("add", X, 2)
            w.binary("add", i, 2)
    assert (len(w.region.lines), len(loop.lines), len(inside.lines)) == (1, 0, 1)


def test_values_of_a_closed_region_are_forgotten():
    w = Writer()
    with w.inside(is_loop=False):
        first = w.binary("add", X, 1)
    assert w.binary("add", X, 1) is not first


def test_loads_leave_loops_that_do_not_write_them():
    w = Writer()
    with w.inside(is_loop=True, writes=frozenset({"B"})) as loop:
        w.load("float", "load A", P, 0, "A")
        w.load("float", "load B", P, 0, "B")
    assert w.region.lines[0].endswith("load A")
    assert loop.lines[0].endswith("load B")


def test_loads_stay_behind_conditions_and_meetings():
    w = Writer()
    with w.inside(is_loop=True, writes=frozenset()) as loop, w.inside(is_loop=False) as branch:
        w.load("float", "load A", P, 0, "A")
    assert (len(loop.lines), len(branch.lines)) == (0, 1)
    with w.inside(is_loop=True, writes=None) as meeting:
        w.load("float", "load A", P, 0, "A")
    assert len(meeting.lines) == 1


def test_loads_of_another_version_are_new():
    w = Writer()
    assert w.load("float", "load A", P, 0, "A") is w.load("float", "load A", P, 0, "A")
    assert w.load("float", "load A", P, 1, "A") is not w.load("float", "load A", P, 0, "A")


def test_only_so_many_loads_leave_a_loop():
    w = Writer()
    with w.inside(is_loop=True, writes=frozenset()) as loop:
        for number in range(HOISTED_LOADS + 3):
            w.load("float", f"load {number}", P, 0, "A")
    assert (len(w.region.lines), len(loop.lines)) == (HOISTED_LOADS, 3)


def test_names_are_unique():
    w = Writer()
    assert [w.fresh("k"), w.fresh("k"), w.fresh("j")] == ["k", "k.1", "j"]
