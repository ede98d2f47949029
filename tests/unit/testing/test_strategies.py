import numpy as np
from hypothesis import Phase, given, settings

from tilewright.dtypes import f32, i32
from tilewright.tensor import ir as tir
from tilewright.tensor.interpret import interpret
from tilewright.tensor.regions import allocated, blocks, outputs, sizes
from tilewright.tensor.validate import validate
from tilewright.tensor.verify import verify
from tilewright.tensor.visit import walk
from tilewright.testing.strategies import MAX_POINTS, programs


@given(programs())
def test_programs_are_well_formed_and_run(program):
    verify(program.func)
    validate(program.func)
    found = interpret(program.func, program.inputs(0), program.sizes)
    assert found.keys() == {b.name for b in outputs(program.func)}
    assert set(sizes(program.func)) == set(program.sizes)


@given(programs(max_blocks=1, symbolic=False, dtypes=(i32,)))
def test_programs_can_be_narrowed_down(program):
    assert len(list(blocks(program.func))) == 1
    assert not program.sizes
    assert all(p.dtype == i32 for p in program.func.params)


@given(programs(dtypes=(f32,)))
def test_inputs_are_the_same_for_a_seed(program):
    for one, other in zip(program.inputs(5).values(), program.inputs(5).values(), strict=True):
        np.testing.assert_array_equal(one, other)


def has_diamond(program):
    readers = [
        sum(any(r.buffer is b for r in block.reads) for block in blocks(program.func))
        for b in allocated(program.func)
    ]
    return any(count >= 2 for count in readers)


STRUCTURES = {
    "diamond": has_diamond,
    "symbolic": lambda p: bool(p.sizes),
    "reduction": lambda p: any(b.init is not None for b in blocks(p.func)),
    "select": lambda p: any(type(n) is tir.Select for b in blocks(p.func) for n in walk(b)),
    "extent one": lambda p: any(
        tir.int_value(i.extent) == 1 for b in blocks(p.func) for i in b.iters
    ),
    "several outputs": lambda p: len(outputs(p.func)) > 1,
    "no dimensions": lambda p: any(not b.shape for b in outputs(p.func)),
}


def test_programs_have_the_structures_that_matter():
    """Each of these appears among a few hundred programs, or the strategy has lost something."""
    seen = set()

    @settings(max_examples=300, derandomize=True, database=None, phases=[Phase.generate])
    @given(programs())
    def collect(program):
        seen.update(name for name, condition in STRUCTURES.items() if condition(program))

    collect()
    assert seen == STRUCTURES.keys()


@given(programs())
def test_blocks_are_small_enough_for_the_interpreter(program):
    for block in blocks(program.func):
        lengths = [program.sizes.get(i.extent) or tir.int_value(i.extent) or 1 for i in block.iters]
        assert np.prod(lengths) <= MAX_POINTS * 12
