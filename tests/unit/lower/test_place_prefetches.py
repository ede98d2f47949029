import pytest

from tests.lowering import applied
from tilewright.lower.place_prefetches import place_prefetches
from tilewright.tensor import ir as tir
from tilewright.tensor.visit import free_vars, walk_stmts

PANELS = """
    def f(A: f32[40], W: f32[512], C: f32[80]):
        for p in range(8):
            for t in range(10):
                C[p * 10 + t] = 0.0
                for k in range(4, prefetch="W"):
                    for j in range(16):
                        C[p * 10 + t] = C[p * 10 + t] + A[t * 4 + k] * W[p * 64 + k * 16 + j]
"""

BATCHES = """
    def f(A: f32[96], W: f32[64], C: f32[20]):
        for b in range(2):
            with alloc(f32[32]) as T:
                for j in range(32):
                    T[j] = W[b * 32 + j]
                for t in range(tile_size(cover((3, 1), (2, 1)), b)):
                    for p in range(4):
                        for k in range(4, prefetch=("A", "W")):
                            C[b * 12 + t * 4 + p] = A[b * 48 + t * 16 + k] * T[p * 8 + k]
"""


def prefetches(func):
    return [s for s in walk_stmts(func) if type(s) is tir.Prefetch]


def test_the_next_panel_is_fetched_in_equal_shares(golden):
    assert golden == applied(place_prefetches, PANELS, remarks=[])


def test_operands_read_elsewhere_and_tiles_of_several_sizes(golden):
    assert golden == applied(place_prefetches, BATCHES, remarks=[])


def test_shares_together_are_the_next_part():
    """Every line of the next panel is asked for, and little else."""
    (wish,) = prefetches(applied(place_prefetches, PANELS))
    asked = set()
    for t in range(10):
        for k in range(4):
            values = {"p": 3, "t": t, "k": k}
            asked.add(evaluated(wish.indices[0], values) // 16)
    assert set(range(4 * 4, 5 * 4)) <= asked <= set(range(4 * 4, 5 * 4 + 2))


def test_parts_further_ahead_are_fetched_if_asked_for():
    text = PANELS.replace('prefetch="W"', 'prefetch="W", prefetch_ahead=3')
    (near,), (far,) = (prefetches(applied(place_prefetches, t)) for t in (PANELS, text))
    values = {"p": 1, "t": 2, "k": 3}
    assert evaluated(far.indices[0], values) == evaluated(near.indices[0], values) + 2 * 64


def evaluated(expr, values):
    match expr:
        case tir.Const(value=value):
            return value
        case tir.Var(name=name):
            return values[name]
        case tir.Add(a=a, b=b):
            return evaluated(a, values) + evaluated(b, values)
        case tir.Mul(a=a, b=b):
            return evaluated(a, values) * evaluated(b, values)
        case tir.FloorDiv(a=a, b=b):
            return evaluated(a, values) // evaluated(b, values)
        case tir.FloorMod(a=a, b=b):
            return evaluated(a, values) % evaluated(b, values)
    raise TypeError(type(expr))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('prefetch="W"', 'prefetch="X"'),  # no such parameter
        ("W[p * 64 + k * 16 + j]", "W[k * 16 + j]"),  # nothing comes next
        ("W[p * 64 + k * 16 + j]", "W[p + k * 128 + j * 8]"),  # gaps in every row
        ("W[p * 64 + k * 16 + j]", "(W[p * 64 + j] + W[p * 32 + j])"),  # two parts
    ],
)
def test_what_cannot_be_fetched_is_said(old, new):
    text = PANELS.replace(old, new)
    name = "X" if "X" in new else "W"
    made = applied(place_prefetches, text, remarks=[f"loop `k` cannot prefetch `{name}`"])
    assert not prefetches(made)


def test_rows_that_lie_apart_are_fetched_row_by_row():
    text = PANELS.replace("W[p * 64 + k * 16 + j]", "W[p * 16 + k * 128 + j]")
    (wish,) = prefetches(applied(place_prefetches, text, remarks=[]))

    def fetched(p: int) -> set[int]:
        every = [{"p": p, "t": t, "k": k} for t in range(10) for k in range(4)]
        return {evaluated(wish.indices[0], values) for values in every}

    assert fetched(0) == {16 + k * 128 for k in range(4)}  # a row is one line
    assert fetched(2) == {48 + k * 128 for k in range(4)}


def test_all_lines_of_all_rows_are_fetched():
    """A panel of rows of three lines, of which the walk passes by two at a time."""
    text = """
    def f(W: f32[2000], C: f32[20]):
        for p in range(4):
            with alloc(f32[160]) as T:
                for r in range(4):
                    for j in range(40):
                        T[r * 40 + j] = W[p * 40 + r * 400 + j]
                for t in range(5):
                    for k in range(2, prefetch="W"):
                        C[p * 5 + t] = T[t * 4 + k]
    """
    wishes = prefetches(applied(place_prefetches, text, remarks=[]))
    every = [{"p": 1, "t": t, "k": k} for t in range(5) for k in range(2)]
    fetched = {evaluated(wish.indices[0], values) for wish in wishes for values in every}
    assert fetched == {80 + row * 400 + line * 16 for row in range(4) for line in range(3)}


def test_programs_without_the_note_stay_as_they_are():
    text = PANELS.replace(', prefetch="W"', "")
    assert not prefetches(applied(place_prefetches, text, remarks=[]))


def test_iterations_of_a_loop_of_unknown_length_share_in_turns():
    text = PANELS.replace("A: f32[40]", "A: f32[n * 4]").replace("C: f32[80]", "C: f32[8, n]")
    text = text.replace("range(10)", "range(n)").replace("C[p * 10 + t]", "C[p, t]")
    (wish,) = prefetches(applied(place_prefetches, text, remarks=[], size_values={"n": 3}))
    assert {var.name for var in free_vars(wish.indices[0])} == {"p", "t", "k"}

    def fetched(t: int, k: int) -> int:
        return evaluated(wish.indices[0], {"p": 2, "t": t, "k": k})

    assert [fetched(t, k) for t in range(8) for k in range(4)] == [192 + 2 * n for n in range(32)]
    assert [fetched(t + 8, 1) for t in range(8)] == [fetched(t, 1) for t in range(8)]


def test_a_short_loop_does_not_fetch_much():
    text = PANELS.replace("range(10)", "range(1)").replace("range(8)", "range(1)")
    text = text.replace("range(16)", "range(256)").replace("W: f32[512]", "W: f32[2048]")
    text = text.replace("p * 64 + k * 16 + j", "p * 1024 + k * 256 + j").replace(
        "C: f32[80]", "C: f32[1]"
    )
    remark = "loop `k` is too short to prefetch `W`"
    assert not prefetches(applied(place_prefetches, text, remarks=[remark]))
