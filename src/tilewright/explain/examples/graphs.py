"""G: graphs whose shapes and types do not fit."""

from __future__ import annotations

from tilewright.explain.example import example

__all__ = ["EXAMPLES"]

BUILDER = """
from tilewright.graph import Builder

b = Builder("graph")
x = b.input("x", tw.f32, (4, 6))
"""
CONV = """
from tilewright.graph import Builder
from tilewright.graph.ops.window import Conv

b = Builder("graph")
conv = Conv(strides=(1, 1), dilations=(1, 1), pads=(0, 0, 0, 0), groups=1, dtype=tw.f32)
image = b.input("image", tw.f32, (1, 8, 8, 3))  # channels are last
"""
ATTEND = """
from tilewright.graph import Builder
from tilewright.graph.ops.attend import Attend

b = Builder("graph")
attend = Attend(layouts=("bhsd", "bhsd", "bhsd", "bhsd"), scale=0.25)
q, k, v = (b.input(name, tw.f32, (1, 2, 5, 16)) for name in "qkv")
"""
LOOPS = f"""{BUILDER}
from tilewright.graph.loops import Turn, branch, loop

count = b.input("count", tw.i64, ())
flag = b.input("flag", tw.boolean, ())
"""
NODES = """
from tilewright.graph import Graph, Node, TensorType, Value, verify_graph
from tilewright.graph.ops import Transpose

x = Value("x", TensorType(tw.f32, (tir.Const(4), tir.Const(6))))
y = Value("y", TensorType(tw.f32, (tir.Const(6), tir.Const(4))))
node = Node(Transpose((1, 0)), (x,), (y,))
"""

EXAMPLES = (
    example(
        "G001",
        """Shapes are broadcast by the rules of NumPy: aligned at their ends, two sizes are equal,
        or one of them is 1.""",
        given="from tilewright.graph.sizes import as_shape, broadcast",
        wrong="broadcast(as_shape([4, 6]), as_shape([4, 1, 5]))",
        right="broadcast(as_shape([4, 6]), as_shape([5, 1, 6]))",
    ),
    example(
        "G010",
        """A reshape keeps all elements: both shapes have the same number of them.""",
        given=BUILDER,
        wrong="b.reshape(x, (5, 5))",
        right="b.reshape(x, (3, 8))",
    ),
    example(
        "G011",
        """Tensors that are joined agree in all dimensions but the one along which they are
        joined.""",
        given=f'{BUILDER}y = b.input("y", tw.f32, (4, 5))',
        wrong="b.concat([x, y], 0)",
        right="b.concat([x, y], 1)",
    ),
    example(
        "G012",
        """Where a tensor is read follows from shapes or from data. Places that data says are
        brought inside of the tensor when the model runs; those that follow from shapes must be
        inside of it: the indices of a gather have no more rows than the data, for example.""",
        given=f"""{BUILDER}
from tilewright.graph.ops import Gather, axis, picked


def elements(indices):
    places = (axis(0), picked(0))
    return b.add(Gather(indices.shape, ((1, (axis(0), axis(1))),), places), x, indices)
""",
        wrong='elements(b.input("indices", tw.i64, (7, 2)))',
        right='elements(b.input("indices", tw.i64, (3, 2)))',
    ),
    example(
        "G020",
        """In a contraction each letter names one size, in whichever operand it stands.""",
        given=f"""{BUILDER}
from tilewright.graph.ops import Contract

w = b.input("w", tw.f32, (5, 6))
""",
        wrong='b.add(Contract("mk", "kn", "mn", tw.f32), x, w)',
        right='b.add(Contract("mk", "nk", "mn", tw.f32), x, w)',
    ),
    example(
        "G030",
        """Weights of a convolution are filters × channels of a group × window. Their second
        dimension times the number of groups is the number of channels of the data.""",
        given=CONV,
        wrong='b.add(conv, image, b.input("w", tw.f32, (16, 4, 3, 3)))',
        right='b.add(conv, image, b.input("w", tw.f32, (16, 3, 3, 3)))',
    ),
    example(
        "G031",
        """A window is larger than the data with their border, and has no place in them. If no
        more than a step is missing for one, the result is empty instead.""",
        given=CONV,
        wrong='b.add(conv, image, b.input("w", tw.f32, (16, 3, 12, 12)))',
        right='b.add(conv, image, b.input("w", tw.f32, (16, 3, 8, 8)))',
    ),
    example(
        "G040",
        """What a loop carries has one element type and one rank in all iterations, but for the
        first few; its sizes may change.""",
        given=LOOPS,
        wrong="""
        wider = lambda b, v: b.reshape(v, (1, *v.shape))
        deeper = lambda b, step, carried, outside: Turn([wider(b, carried[0])])
        loop(b, deeper, count, [x])
        """,
        right="""
        turned = lambda b, step, carried, outside: Turn([b.transpose(carried[0], (1, 0))])
        loop(b, turned, count, [x])
        """,
    ),
    example(
        "G041",
        """Both branches of a condition give results of the same element types and ranks; their
        sizes may differ.""",
        given=LOOPS,
        wrong="""
        flat = lambda b, outside: [b.reshape(outside(x), (24,))]
        branch(b, flag, flat, lambda b, outside: [b.transpose(outside(x), (1, 0))])
        """,
        right="""
        same = lambda b, outside: [b.transpose(outside(x), (0, 1))]
        branch(b, flag, same, lambda b, outside: [b.transpose(outside(x), (1, 0))])
        """,
    ),
    example(
        "G050",
        """Queries, keys and values of attention belong together: the same batch, as many keys as
        values, as many features in keys as in queries, and heads of queries that are a multiple of
        those of keys.""",
        given=ATTEND,
        wrong='b.add(attend, q, k, b.input("fewer", tw.f32, (1, 2, 4, 16)))',
        right="b.add(attend, q, k, v)",
    ),
    example(
        "G051",
        """A mask of attention has the shape of the scores, batch × heads × queries × keys, or one
        that is broadcast to it.""",
        given=ATTEND,
        wrong='b.add(attend, q, k, v, b.input("mask", tw.f32, (5, 4)))',
        right='b.add(attend, q, k, v, b.input("mask", tw.f32, (1, 1, 1, 5)))',
    ),
    example(
        "G060",
        """Layouts and algorithms are chosen for a whole graph at once. A node is left without one:
        each of its alternatives is impossible by itself, or with all that its neighbours can
        do.""",
        given="""
        from tilewright.layouts.solve import Problem, solve

        never = float("inf")
        costs, names = [[3.0, 2.0], [1.0, never]], ["conv", "pool"]
        """,
        wrong="solve(Problem(costs, [(0, 1, [[never, 0.0], [never, 0.0]])], names))",
        right="solve(Problem(costs, [(0, 1, [[0.0, 0.5], [0.5, 0.0]])], names))",
    ),
    example(
        "G101",
        """A node reads a value that no input, constant or node before it gives.""",
        given=NODES,
        wrong='verify_graph(Graph("turned", (), (y,), (node,)))',
        right='verify_graph(Graph("turned", (x,), (y,), (node,)))',
    ),
    example(
        "G102",
        """A value is given by one input, constant or node.""",
        given=NODES,
        wrong='verify_graph(Graph("turned", (x,), (y,), (node, node)))',
        right='verify_graph(Graph("turned", (x,), (y,), (node,)))',
    ),
    example(
        "G103",
        """The type of a value is not what its operator makes of its inputs. Passes are checked
        against this.""",
        given=NODES,
        wrong="""
        wrong = Node(Transpose((0, 1)), (x,), (y,))
        verify_graph(Graph("turned", (x,), (y,), (wrong,)))
        """,
        right='verify_graph(Graph("turned", (x,), (y,), (node,)))',
    ),
    example(
        "G104",
        """The layout of a value is a list of steps from its shape to what is stored. Each step fits
        the dimensions that there are then: they exist, a factor divides its dimension, an order
        names every dimension once. Inputs, constants and outputs have no layout.""",
        given=f"""{NODES}
from tilewright.tensor.layout import Split

def stored(*steps):
    between = Value("y", TensorType(tw.f32, (tir.Const(6), tir.Const(4)), steps))
    there, back = Node(Transpose((1, 0)), (x,), (between,)), Value("z", x.type)
    nodes = (there, Node(Transpose((1, 0)), (between,), (back,)))
    return Graph("turned", (x,), (back,), nodes)
""",
        wrong="verify_graph(stored(Split(0, 4)))",
        right="verify_graph(stored(Split(0, 3)))",
    ),
    example(
        "G201",
        """An array does not have the shape that the graph says, or disagrees with another one about
        a size.""",
        given=f"{BUILDER}\nfrom tilewright.graph import interpret",
        wrong='interpret(b.graph([x]), {"x": np.ones((4, 5), np.float32)})',
        right='interpret(b.graph([x]), {"x": np.ones((4, 6), np.float32)})',
    ),
)
