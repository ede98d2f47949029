"""NumPy checks the interpreter on every program of the library."""

import math

import numpy as np
import pytest

from tilewright.dtypes import bf16, dtype_of, f16, f32, f64, i8, i32, u8
from tilewright.tensor import library
from tilewright.tensor.build import size
from tilewright.tensor.interpret import interpret
from tilewright.tensor.verify import verify
from tilewright.testing import assert_same, random_inputs

erf = np.vectorize(math.erf, otypes=[np.float64])


def conv(x, w, *, stride=1, padding=0, dilation=1, groups=1):
    """Any convolution, one output element at a time."""
    rank = x.ndim - 2
    x = np.pad(x, [(0, 0), (0, 0)] + [(padding, padding)] * rank)
    reach = [(k - 1) * dilation + 1 for k in w.shape[2:]]
    space = [(s - r) // stride + 1 for s, r in zip(x.shape[2:], reach, strict=True)]
    y = np.zeros((x.shape[0], w.shape[0], *space))
    per, each = w.shape[1], w.shape[0] // groups
    for o in range(w.shape[0]):
        first = o // each * per
        for at in np.ndindex(*space):
            window = tuple(
                slice(p * stride, p * stride + r, dilation) for p, r in zip(at, reach, strict=True)
            )
            part = x[(slice(None), slice(first, first + per), *window)]
            y[(slice(None), o, *at)] = (part * w[o]).sum(axis=tuple(range(1, rank + 2)))
    return y


def transposed(x, w, *, stride, padding):
    """Every input element adds a scaled kernel to the output."""
    kernel = w.shape[-1]
    full = [(s - 1) * stride + kernel for s in x.shape[2:]]
    y = np.zeros((x.shape[0], w.shape[1], *full))
    for h, v in np.ndindex(*x.shape[2:]):
        part = np.einsum("nc,coij->noij", x[:, :, h, v], w)
        y[:, :, h * stride : h * stride + kernel, v * stride : v * stride + kernel] += part
    cut = slice(padding, -padding or None)
    return y[:, :, cut, cut]


def pool(x, fold, kernel, stride, padding, fill):
    x = np.pad(x, [(0, 0), (0, 0), (padding, padding), (padding, padding)], constant_values=fill)
    windows = np.lib.stride_tricks.sliding_window_view(x, (kernel, kernel), (2, 3))
    return fold(windows[:, :, ::stride, ::stride], axis=(4, 5))


def softmax(x):
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def layernorm(x, g, b):
    return (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5) * g + b


def gelu(x):
    return 0.5 * x * (1 + erf(x / math.sqrt(2)))


def chain(x, b):
    return np.minimum(gelu(x * 0.5 + b) ** 2, 6.0)


def stencil(x):
    t = x[1:-1, 1:-1] + x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:]
    return t[:-2, :-2] + t[2:, :-2] + t[1:-1, 1:-1] + t[2:, 2:]


def relu(x):
    return np.maximum(x, 0)


CASES = {
    "matmul": (library.matmul(5, 7, 3), lambda a, b: a @ b),
    "matmul f64": (library.matmul(2, 3, 4, f64), lambda a, b: a @ b),
    "matmul i8": (library.matmul(4, 3, 5, i8), lambda a, b: a @ b),
    "matmul u8": (library.matmul(4, 3, 5, u8), lambda a, b: a @ b),
    "matmul i32": (library.matmul(4, 3, 5, i32), lambda a, b: a @ b),
    "matmul f16": (library.matmul(4, 3, 5, f16, out=f16), lambda a, b: a @ b),
    "matmul bf16": (library.matmul(4, 3, 5, bf16), lambda a, b: a @ b),
    "matmul transposed": (library.matmul(4, 3, 5, transpose_b=True), lambda a, b: a @ b.T),
    "matmul bias": (library.matmul(4, 3, 5, bias=True), lambda a, b, d: a @ b + d),
    "matmul bias relu": (
        library.matmul(4, 3, 5, bf16, bias=True, relu=True, out=bf16),
        lambda a, b, d: relu(a @ b + d),
    ),
    "matmul relu": (library.matmul(4, 3, 5, relu=True), lambda a, b: relu(a @ b)),
    "batched_matmul": (library.batched_matmul(3, 2, 4, 5), lambda a, b: a @ b),
    "matvec": (library.matvec(4, 6), lambda a, x: a @ x),
    "outer_product": (library.outer_product(3, 4), np.outer),
    "conv1d": (library.conv1d(2, 3, 9, 4, 3, stride=2, padding=1), conv),
    "conv2d": (library.conv2d(2, 3, 5, 6, 4, 3), conv),
    "conv2d padded": (library.conv2d(1, 2, 5, 4, 3, 3, stride=2, padding=1), conv),
    "conv2d dilated": (library.conv2d(1, 2, 7, 7, 2, 3, dilation=2, padding=2), conv),
    "conv2d grouped": (library.conv2d(1, 4, 4, 4, 6, 3, groups=2), conv),
    "conv2d 1x3": (library.conv2d(1, 2, 4, 5, 3, (1, 3)), conv),
    "conv3d": (library.conv3d(1, 2, 4, 4, 3, 2, 3, padding=1), conv),
    "depthwise_conv2d": (
        library.depthwise_conv2d(1, 3, 6, 5, 3, stride=2, padding=1),
        lambda x, w: conv(x, w[:, None], stride=2, padding=1, groups=3),
    ),
    "transposed_conv2d": (
        library.transposed_conv2d(1, 2, 3, 4, 3, 4, stride=2, padding=1),
        lambda x, w: transposed(x, w, stride=2, padding=1),
    ),
    "transposed_conv2d plain": (
        library.transposed_conv2d(2, 2, 3, 3, 1, 3),
        lambda x, w: transposed(x, w, stride=1, padding=0),
    ),
    "max_pool2d": (
        library.max_pool2d(1, 2, 6, 7, 3, stride=2, padding=1),
        lambda x: pool(x, np.max, 3, 2, 1, -np.inf),
    ),
    "max_pool2d i8": (
        library.max_pool2d(1, 2, 5, 5, 2, padding=1, dtype=i8),
        lambda x: pool(x, np.max, 2, 1, 1, -128),
    ),
    "average_pool2d": (
        library.average_pool2d(1, 2, 6, 7, 3, stride=2, padding=1),
        lambda x: pool(x, np.mean, 3, 2, 1, 0),
    ),
    "softmax": (library.softmax(3, 7), softmax),
    "softmax f16": (library.softmax(3, 5, f16), softmax),
    "layernorm": (library.layernorm(3, 8), layernorm),
    "layernorm bf16": (library.layernorm(2, 8, bf16), layernorm),
    "gelu": (library.gelu(3, 5), gelu),
    "tanh f64": (library.unary("tanh", 3, 5, f64), np.tanh),
    "add": (library.add(3, 5), np.add),
    "add i8": (library.add(3, 5, i8), np.add),
    "broadcast_add": (library.broadcast_add(3, 5), np.add),
    "convert f32 to bf16": (library.convert(3, 4, f32, bf16), lambda x: x),
    "convert i8 to f32": (library.convert(3, 4, i8, f32), lambda x: x),
    "convert f32 to i32": (library.convert(3, 4, f32, i32), np.trunc),
    "elementwise_chain": (library.elementwise_chain(4, 6), chain),
    "row_sum": (library.row_sum(4, 6), lambda x: x.sum(1)),
    "row_sum i8": (library.row_sum(4, 6, i8), lambda x: x.sum(1)),
    "column_sum": (library.column_sum(4, 6), lambda x: x.sum(0)),
    "row_max": (library.row_max(4, 6), lambda x: x.max(1)),
    "total": (library.total(3, 5, f64), lambda x: x.sum()),
    "cumulative_sum": (library.cumulative_sum(9), np.cumsum),
    "transpose": (library.transpose(3, 5, bf16), np.transpose),
    "pad2d": (library.pad2d(3, 4, 2), lambda x: np.pad(x, 2)),
    "stencil": (library.stencil(7, 8), stencil),
}

CONV_ARGUMENTS = {
    "conv1d": {"stride": 2, "padding": 1},
    "conv2d padded": {"stride": 2, "padding": 1},
    "conv2d dilated": {"dilation": 2, "padding": 2},
    "conv2d grouped": {"groups": 2},
    "conv3d": {"padding": 1},
}


@pytest.mark.parametrize("name", CASES)
def test_program_computes_what_numpy_computes(name, rng):
    program, reference = CASES[name]
    verify(program)
    inputs = random_inputs(program, rng)
    wide = [
        a.astype(np.int64 if dtype_of(a.dtype).is_integer else np.float64) for a in inputs.values()
    ]
    expected = np.asarray(reference(*wide, **CONV_ARGUMENTS.get(name, {})))
    (out,) = interpret(program, inputs).items()
    assert_same(dict([out]), {out[0]: expected.astype(out[1].dtype)})


def test_every_program_of_the_library_has_a_case():
    covered = " ".join(CASES)
    elsewhere = {"unary", "attend", "attention"}  # attention: tests/numeric/test_attention.py
    missing = [n for n in library.__all__ if n not in covered and n not in elsewhere]
    assert not missing


SYMBOLIC = {
    "matmul": lambda: library.matmul(size("m"), 3, size("k"), bias=True),
    "conv2d": lambda: library.conv2d(size("n"), 2, size("h"), size("w"), 3, 3, padding=1),
    "softmax": lambda: library.softmax(size("m"), size("n")),
    "layernorm": lambda: library.layernorm(size("m"), size("n")),
    "max_pool2d": lambda: library.max_pool2d(1, size("c"), size("h"), 5, 3, padding=1),
    "cumulative_sum": lambda: library.cumulative_sum(size("n")),
}


@pytest.mark.parametrize("name", SYMBOLIC)
def test_symbolic_sizes_compute_the_same(name, rng):
    program = verify(SYMBOLIC[name]())
    values = {var: 4 + number for number, var in enumerate(_sizes(program))}
    inputs = random_inputs(program, rng, values)
    (found,) = interpret(program, inputs).values()
    fixed = {
        "matmul": lambda a, b, d: a @ b + d,
        "conv2d": lambda x, w: conv(x, w, padding=1),
        "softmax": softmax,
        "layernorm": layernorm,
        "max_pool2d": lambda x: pool(x, np.max, 3, 1, 1, -np.inf),
        "cumulative_sum": np.cumsum,
    }[name]
    expected = fixed(*(a.astype(np.float64) for a in inputs.values()))
    assert_same({"out": found}, {"out": expected.astype(found.dtype)})


def _sizes(program):
    from tilewright.tensor.regions import sizes

    return sizes(program)


def test_groups_must_divide():
    with pytest.raises(ValueError, match="3 groups do not divide 4 channels"):
        library.conv2d(1, 4, 4, 4, 6, 3, groups=3)
    with pytest.raises(ValueError, match="padding 3"):
        library.transposed_conv2d(1, 1, 4, 4, 1, 3, padding=3)
