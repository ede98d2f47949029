import pytest

from tests.expect import raises_code
from tests.unit.tensor import samples
from tilewright.dtypes import f16, f32, f64, i32
from tilewright.tensor import ir as tir
from tilewright.tensor import library
from tilewright.tensor.build import size
from tilewright.tensor.parser import parse
from tilewright.tensor.printer import print_func
from tilewright.tensor.structural import structural_equal
from tilewright.tensor.verify import verify
from tilewright.tensor.visit import walk

PROGRAMS = {
    "matmul": library.matmul(4, 5, size("k"), f16, out=f16, bias=True, relu=True),
    "conv2d": library.conv2d(1, 4, 6, 6, 8, 3, padding=1, groups=2, stride=2),
    "transposed": library.transposed_conv2d(1, 2, 4, 4, 3, 4, stride=2, padding=1),
    "max_pool2d": library.max_pool2d(1, 2, size("h"), 6, 3, padding=1),
    "softmax": library.softmax(size("m"), size("n")),
    "layernorm": library.layernorm(3, 8),
    "total": library.total(2, 3),
    "scheduled": samples.scheduled_func(),
    "lowered": samples.lowered_func(),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_printed_program_parses_back(name):
    func = PROGRAMS[name]
    again = parse(print_func(func))
    assert structural_equal(again, func)
    assert print_func(again) == print_func(func)


@pytest.mark.parametrize("text", samples.EXPRESSIONS)
def test_printed_expression_parses_back(text):
    expr = samples.EXPRESSIONS[text]
    body = f"n_[0] = {'f32(0.0)' if expr.dtype != f32 else text}"
    func = parse(_frame(text, expr.dtype.name if expr.dtype.lanes == 1 else expr.dtype.scalar.name))
    store = [s for s in walk(func.body) if isinstance(s, tir.Store)][-1]
    again = print_func(func)
    assert f"= {text}" in again, body
    assert store.value.dtype == expr.dtype


def _frame(text, dtype):
    """A program in which all names of the samples are defined."""
    where = "ramp(0, 1, 8)" if "ramp" in text and "reduce" not in text else "0"
    lets = {"x": "f32", "y": "f32", "a8": "i8", "b8": "i8", "p": "bool", "q": "bool"}
    value = text
    for name, kind in lets.items():
        value = f"let({name} := reinterpret({kind}, s[0]), {value})" if False else value
    del value
    buffers = ", ".join(f"{kind}_s: {kind}[4]" for kind in dict.fromkeys(lets.values()))
    names = "".join(
        f"    {name}_b = alloc({kind}[1])\n" for name, kind in lets.items()
    )
    for name in lets:
        pass
    del names
    body = f"    for i in range(4):\n        for j in range(4):\n            Z[{where}] = {text}\n"
    return f"def f(A: f32[64], N: f32[n], {buffers}, Z: {dtype}[64]):\n{body}"
