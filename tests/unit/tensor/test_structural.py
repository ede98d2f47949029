import os
import subprocess
import sys

import pytest

from tests.unit.tensor import samples
from tilewright.dtypes import f32, f64
from tilewright.tensor import ir as tir
from tilewright.tensor import library
from tilewright.tensor.build import compute, func, placeholder, size
from tilewright.tensor.structural import structural_equal, structural_hash

SCRIPT = """
from tilewright.tensor import library
from tilewright.tensor.build import size
from tilewright.tensor.structural import structural_hash
print(structural_hash(library.softmax(size("n"), 7)), structural_hash(library.matmul(3, 4, 5)))
"""


def renamed(prefix):
    a = placeholder(f"{prefix}A", (4, size(f"{prefix}n")))
    b = compute(f"{prefix}B", a.shape, lambda *i: a[i] * 2.0)
    c = compute(f"{prefix}C", a.shape, lambda p, q: b[p, q] + a[p, q])
    return func(f"{prefix}f", [a], [c])


def test_names_do_not_matter():
    assert structural_equal(renamed(""), renamed("other_"))
    assert structural_hash(renamed("")) == structural_hash(renamed("other_"))


def test_repeated_construction_is_equal():
    assert structural_equal(library.conv2d(1, 4, 6, 6, 8, 3), library.conv2d(1, 4, 6, 6, 8, 3))


a, b = tir.Buffer("A", (tir.Const(4),), f32), tir.Buffer("B", (tir.Const(4),), f32)
i, j = tir.Var("i"), tir.Var("j")
zero = tir.Const(0.0, f32)
store = tir.Store(a, (i,), zero)
loop = tir.For(i, tir.Const(4), store)

DIFFERENT = {
    "extent": (library.matmul(3, 4, 5), library.matmul(4, 3, 5)),
    "dtype": (library.add(3, 4), library.add(3, 4, f64)),
    "symbolic or not": (library.add(3, 4), library.add(size("n"), 4)),
    "one size or two": (library.add(size("n"), size("m")), library.add(*[size("n")] * 2)),
    "loop kind": (loop, loop.with_fields(kind=tir.LoopKind.PARALLEL)),
    "notes": (loop, loop.with_fields(notes=(("unroll", 4),))),
    "sign of zero": (store, store.with_fields(value=tir.Const(-0.0, f32))),
    "which buffer": (
        tir.Seq((store, tir.Store(b, (i,), zero), store)),
        tir.Seq((store, tir.Store(b, (i,), zero), tir.Store(b, (i,), zero))),
    ),
    "which variable": (
        tir.For(i, tir.Const(4), tir.For(j, tir.Const(4), tir.Store(a, (i,), zero))),
        tir.For(i, tir.Const(4), tir.For(j, tir.Const(4), tir.Store(a, (j,), zero))),
    ),
    "function": (
        tir.Store(a, (i,), tir.Call("exp", (zero,), f32)),
        tir.Store(a, (i,), tir.Call("log", (zero,), f32)),
    ),
    "scope": (
        tir.Alloc(a, store),
        tir.Alloc(r := tir.Buffer("A", a.shape, f32, tir.Scope.REGISTER), tir.Store(r, (i,), zero)),
    ),
    "operator": (i + j, i - j),
    "order": (i - 1, 1 - i),
}


@pytest.mark.parametrize("what", DIFFERENT)
def test_difference_shows(what):
    one, other = DIFFERENT[what]
    assert not structural_equal(one, other)
    assert structural_hash(one) != structural_hash(other)


def test_not_a_number_equals_itself():
    one = tir.Const(float("nan"), f32)
    other = tir.Const(-float("nan"), f32)
    assert structural_equal(one, other)


def test_any_part_of_a_program_has_a_hash():
    assert len(structural_hash(samples.scheduled_func().body)) == 32
    assert structural_hash(samples.lowered_func()) == structural_hash(samples.lowered_func())


@pytest.mark.parametrize("seed", ["0", "1", "12345"])
def test_hash_is_the_same_in_every_process(seed):
    expected = structural_hash(library.softmax(size("n"), 7))
    path = os.pathsep.join(sys.path)
    environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": path}
    ran = subprocess.run(
        [sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, check=True
    )
    assert ran.stdout.split() == [expected, structural_hash(library.matmul(3, 4, 5))]
