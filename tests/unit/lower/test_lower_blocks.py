from tests.lowering import applied
from tests.programs import matmul
from tilewright.lower.lower_blocks import lower_blocks
from tilewright.schedule import Schedule


def test_bindings_take_the_place_of_iterators(golden):
    assert golden == applied(lower_blocks, matmul())


def test_init_asks_for_each_loop_of_a_split_reduction(golden):
    schedule = Schedule(matmul(k=12))
    outer, _ = schedule.split("k", [(4, 2), (2, 2)])
    schedule.split(outer, 2)
    assert golden == applied(lower_blocks, schedule.func)


def test_fused_loops_are_simplified(golden):
    schedule = Schedule(matmul())
    schedule.fuse("i", "j")
    assert golden == applied(lower_blocks, schedule.func)


def test_predicate_guards_init_and_body(golden):
    text = """
        def total(A: f32[30], C: f32[()]):
            for k in range(4):
                for l in range(8):
                    with block("C", vk=R(30, k * 8 + l)), where(k * 8 + l < 30):
                        reads(A[vk])
                        writes(C[()])
                        with init():
                            C[()] = 0.0
                        C[()] = C[()] + A[vk]
    """
    assert golden == applied(lower_blocks, text)


def test_blocks_inside_blocks(golden):
    schedule = Schedule(matmul(m=12))
    _, inner = schedule.split("i", 4)
    schedule.reorder("j", "k", inner)
    schedule.blockize(inner)
    assert golden == applied(lower_blocks, schedule.func)


def test_programs_without_blocks_stay_the_same_object():
    made = applied(lower_blocks, matmul())
    assert applied(lower_blocks, made) is made
