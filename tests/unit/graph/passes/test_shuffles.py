"""Orders of channels go into constant weights, or stay where nothing can take them in."""

from __future__ import annotations

import numpy as np
import pytest

from tests.rewriting import keeps, operators, picture, rewritten
from tilewright.dtypes import f32
from tilewright.graph import Builder, Graph, Value
from tilewright.graph.ops import Contract, Gather, Transpose
from tilewright.graph.ops.window import Conv, ConvTranspose, Pool
from tilewright.graph.passes.shuffles import sink_shuffles
from tilewright.tensor import ir as tir

N = tir.Var("n")
PLAIN = (1, 1), (1, 1), (0, 0, 0, 0)


def numbers(b: Builder, *shape: int) -> Value:
    rng = np.random.default_rng(shape)
    return b.constant(rng.uniform(0.5, 2, shape).astype(np.float32), "k")


def image(b: Builder, channels: int = 12, size: int = 4) -> Value:
    return b.input("x", f32, (N, size, size, channels))


def shuffle(b: Builder, x: Value, groups: int = 3) -> Value:
    """Channels of groups one after another become channels in turn."""
    channels = tir.int_value(x.shape[-1]) or 1
    parts = b.reshape(x, (*x.shape[:-1], groups, channels // groups))
    return b.reshape(b.transpose(parts, (0, 1, 2, 4, 3)), x.shape)


def flat(b: Builder, x: Value) -> Value:
    """Channels first, in a row."""
    row = x.shape[1] * x.shape[2] * x.shape[3]
    return b.reshape(b.transpose(x, (0, 3, 1, 2)), (x.shape[0], row))


def conv(b: Builder, x: Value, filters: int = 6, groups: int = 1, taps: int = 1) -> Value:
    channels = tir.int_value(x.shape[-1]) or 1
    return b.add(Conv(*PLAIN, groups, f32), x, numbers(b, filters, channels // groups, taps, taps))


def some(b: Builder, x: Value, start: int, size: int) -> Value:
    """A slice of channels."""
    return b.remap(x, (*x.shape[:-1], size), lambda *o: [*o[:-1], o[-1] + start])


def larger(b: Builder, x: Value) -> Value:
    shape = (x.shape[0], x.shape[1] * 2, x.shape[2] * 2, x.shape[3])
    return b.remap(x, shape, lambda n, h, w, c: [n, h // 2, w // 2, c])


def relu(b: Builder, x: Value) -> Value:
    return b.map(lambda v: tir.maximum(v, 0.0), x)


def moves(graph: Graph) -> int:
    return sum(isinstance(node.op, Transpose | Gather) for node in graph.nodes)


def after(b: Builder, y: Value) -> Graph:
    """What is left, with the same meaning."""
    return rewritten(b.graph([y], ["y"]), sink_shuffles)


def test_a_shuffle_goes_into_the_weights_behind_it(golden):
    b = Builder("shuffle")
    y = conv(b, shuffle(b, image(b)))
    assert golden == picture(b.graph([y], ["y"]), sink_shuffles)


def test_groups_read_runs(golden):
    """Between grouped convolutions, with a depthwise one and a bias on the way."""
    b = Builder("groups")
    x = shuffle(b, conv(b, image(b, 18), 18, groups=3))
    x = b.map(lambda v, c: v + c, conv(b, x, 18, groups=18, taps=3), numbers(b, 18))
    assert golden == picture(b.graph([conv(b, x, 9, groups=3)], ["y"]), sink_shuffles)


def test_an_image_is_flattened_as_it_is_stored(golden):
    b = Builder("flat")
    y = b.contract("mk", "nk", "mn", flat(b, image(b, 3)), numbers(b, 5, 48))
    assert golden == picture(b.graph([y], ["y"]), sink_shuffles)


BEHIND = {
    "dense": lambda b, x: conv(b, x, taps=3),
    "transposed": lambda b, x: b.add(
        ConvTranspose((2, 2), (1, 1), (0,) * 4, (0, 0), 1, f32), x, numbers(b, 12, 5, 2, 2)
    ),
    "product": lambda b, x: b.contract("nhwk", "ko", "nhwo", x, numbers(b, 12, 5)),
    "turned product": lambda b, x: b.contract("ok", "nhwk", "nhwo", numbers(b, 5, 12), x),
    "pool": lambda b, x: conv(b, b.add(Pool(tir.Fold.MAX, (2, 2), *PLAIN), x)),
    "mean": lambda b, x: conv(b, b.reduce(tir.Fold.ADD, x, (1, 2))),
    "sum of channels": lambda b, x: b.reduce(tir.Fold.ADD, x, (3,)),
    "crop": lambda b, x: conv(
        b, b.remap(x, (*x.shape[:1], 2, 2, 12), lambda n, h, w, c: [n, h + 1, w, c])
    ),
    "map": lambda b, x: conv(b, b.map(lambda v, c: v * c, x, numbers(b, 12))),
    "one for each place": lambda b, x: conv(b, b.map(lambda v, c: v * c, x, numbers(b, 4, 4, 1))),
}


@pytest.mark.parametrize("behind", BEHIND.values(), ids=BEHIND)
def test_what_takes_a_shuffle_in(behind):
    b = Builder("behind")
    assert moves(after(b, behind(b, shuffle(b, image(b))))) == 0


def both(b: Builder, x: Value, y: Value) -> Value:
    return b.map(lambda v, w: v + w, x, y)


def depthwise(b: Builder, x: Value) -> Value:
    channels = tir.int_value(x.shape[-1]) or 1
    return conv(b, x, channels, channels)


TAKEN = {
    "two weights": lambda b, s: both(b, conv(b, s), conv(b, relu(b, s))),
    "what comes from it meets": lambda b, s: conv(b, both(b, depthwise(b, s), relu(b, s))),
    "and is read again": lambda b, s: both(
        b, conv(b, both(b, s, y := depthwise(b, s))), conv(b, relu(b, y))
    ),
    "a larger image": lambda b, s: conv(b, larger(b, s), taps=3),
    "a part": lambda b, s: conv(b, b.concat([s, relu(b, s)], 3)),
    "a part of what is shuffled": lambda b, s: conv(b, shuffle(b, b.concat([s, relu(b, s)], 3), 2)),
    "a part of a larger image": lambda b, s: conv(
        b, larger(b, relu(b, b.concat([depthwise(b, s), s], 3)))
    ),
    "groups that read parts whole": lambda b, s: conv(b, b.concat([s, s], 3), groups=2),
}


@pytest.mark.parametrize("read", TAKEN.values(), ids=TAKEN)
def test_a_shuffle_that_several_read_ends_on_all_ways(read):
    b = Builder("taken")
    assert moves(after(b, read(b, shuffle(b, image(b))))) == 0


def test_a_slice_takes_some_of_each_run(golden):
    """Halves of a shuffle: one goes into weights, the other is shuffled as it is copied."""
    b = Builder("halves")
    x = shuffle(b, image(b, 8), 2)
    halves = some(b, x, 0, 4), conv(b, some(b, x, 4, 4), 4)
    assert golden == picture(b.graph(halves, ["y", "z"]), sink_shuffles)


def test_a_shuffle_and_its_inverse_are_nothing():
    b = Builder("inverse")
    x = image(b)
    made = after(b, relu(b, shuffle(b, shuffle(b, x, 3), 4)))
    assert operators(made) == operators(b.graph([relu(b, x)]))


def test_two_values_that_are_shuffled_alike_meet():
    b = Builder("meet")
    x = image(b)
    y = both(b, shuffle(b, x), shuffle(b, relu(b, x)))
    assert moves(after(b, conv(b, y))) == 0


def test_rows_of_weights_in_front_of_a_shuffle():
    b = Builder("front")
    y = b.map(lambda v, c: tir.maximum(v + c, 0.0), conv(b, image(b), 12), numbers(b, 12))
    made = after(b, b.map(lambda v: v + 1.0, shuffle(b, y)))
    assert [node.op.name for node in made.nodes] == ["conv", "map", "map"]


def test_inside_of_groups_the_order_is_free():
    """Two halves, each with its own shuffle: every group reads what it read, in another order."""
    b = Builder("inside")
    x = image(b, 16)
    parts = b.reshape(x, (*x.shape[:-1], 2, 2, 4))
    y = conv(b, b.reshape(b.transpose(parts, (0, 1, 2, 3, 5, 4)), x.shape), 6, groups=2, taps=3)
    made = after(b, y)
    assert operators(made) == [str(Conv(*PLAIN, 2, f32))]


REFUSED = {
    "runs of unequal length": lambda b, x: conv(b, shuffle(b, x, 4), groups=2 * 3, filters=12),
    "windows of groups": lambda b, x: conv(b, shuffle(b, x, 2), groups=2, taps=3),
    "weights that are computed": lambda b, x: b.contract(
        "nhwk", "ko", "nhwo", shuffle(b, x), b.input("w", f32, (12, 5))
    ),
    "elements that meet others": lambda b, x: b.map(lambda v, w: v + w, shuffle(b, x), x),
    "another shuffle": lambda b, x: b.map(lambda v, w: v + w, shuffle(b, x), shuffle(b, x, 2)),
    "channels that end within a run": lambda b, x: some(b, shuffle(b, x), 0, 5),
    "some channels, and all of them": lambda b, x: b.map(
        lambda v, w: v + w, some(b, s := shuffle(b, x), 0, 6), some(b, b.concat([s, x], 3), 6, 6)
    ),
    "a part of a result": lambda b, x: b.concat([shuffle(b, x), x], 3),
    "a larger image": lambda b, x: larger(b, shuffle(b, x)),
    "a larger image that meets another": lambda b, x: conv(
        b, b.map(lambda v, w: v + w, larger(b, shuffle(b, x)), larger(b, x))
    ),
}


@pytest.mark.parametrize("made", REFUSED.values(), ids=REFUSED)
def test_what_stays_a_copy(made):
    b = Builder("refused")
    assert keeps(b.graph([made(b, image(b))]), sink_shuffles)


def test_a_value_that_others_read_shuffled_is_not_shuffled_twice():
    b = Builder("readers")
    x = shuffle(b, image(b))
    graph = b.graph([x, b.map(lambda v: v + 1.0, x)])
    assert keeps(graph, sink_shuffles)


def test_many_groups():
    """Runs of every length that groups of both sides allow."""
    for groups, run in [(2, 1), (2, 3), (3, 2), (4, 17)]:
        b = Builder("runs")
        channels = groups * groups * run
        y = conv(b, shuffle(b, image(b, channels), groups), 2 * groups, groups)
        made = after(b, y)
        assert moves(made) == 0
        assert sum(isinstance(node.op, Contract) for node in made.nodes) == 1
