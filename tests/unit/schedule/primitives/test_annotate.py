from tests.expect import raises_code
from tests.programs import assert_same_meaning, copy_2d, vector_add
from tilewright.schedule import Schedule
from tilewright.tensor.visit import find_block, replace_node


def test_annotate_loop_and_block(golden, rng):
    program = copy_2d()
    schedule = Schedule(program)
    schedule.annotate("i", "prefetch", 2)
    schedule.annotate("C", "role", "copy")
    assert golden == schedule.func
    assert_same_meaning(schedule, program, rng)


def test_annotate_replaces_and_removes():
    schedule = Schedule(vector_add())
    schedule.annotate("i", "a", 1)
    schedule.annotate("i", "b", 2)
    schedule.annotate("i", "a", (3, "x"))
    assert schedule.loop("i").notes == (("b", 2), ("a", (3, "x")))
    schedule.annotate("i", "b", None)
    assert schedule.loop("i").notes == (("a", (3, "x")),)


def test_annotate_rejects_a_name_of_two_things():
    program = copy_2d()
    program = replace_node(program, block := find_block(program, "C"), block.with_fields(name="i"))
    with raises_code("S005", text="both a loop and a block"):
        Schedule(program).annotate("i", "a", 1)
