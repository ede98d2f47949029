"""Ill-formed programs are refused, each with the code that says what is wrong."""

import pytest

from tests.expect import raises_code
from tests.unit.tensor import samples
from tilewright.dtypes import bf16, boolean, f16, f32, f64, i8, i32, index, u8
from tilewright.tensor import ir as tir
from tilewright.tensor import library
from tilewright.tensor.build import make_block, size
from tilewright.tensor.parser import parse
from tilewright.tensor.verify import Level, verify
from tilewright.tensor.visit import find_block, replace_node

A = tir.Buffer("A", (tir.Const(8), tir.Const(8)), f32)
B = tir.Buffer("B", (tir.Const(8),), f32)
H = tir.Buffer("H", (tir.Const(8),), f16)
Z = tir.Buffer("Z", (tir.Const(8),), index)
P = tir.Buffer("P", (tir.Const(8),), boolean)
i, j, v, w = tir.Var("i"), tir.Var("j"), tir.Var("v"), tir.Var("w")
zero, one, eight = tir.Const(0), tir.Const(1), tir.Const(8)
x = tir.Var("x", f32)
half = tir.Const(0.5, f32)
PARAMS = (A, B, H, Z, P)


def program(body, params=PARAMS):
    return tir.Func("f", params, body)


def block(body, *, init=None, kind=tir.IterKind.SPATIAL, **changes):
    """`body` as the only block of a loop, with the iterator v."""
    made = make_block("T", (tir.Iter(v, eight, kind),), (i,), body, init)
    return tir.For(i, eight, made.with_fields(**changes))


def stored(value, buffer=B, at=(v,)):
    """A program that stores `value` in a block."""
    return program(block(tir.Store(buffer, at, value)))


def load(buffer, *at):
    return tir.Load(buffer, at)


def call(name, *args, dtype=f32):
    return tir.Call(name, args, dtype)


STORE = tir.Store(B, (v,), half)
ALLOCATED = tir.Buffer("T", (tir.Const(8),), f32)
SIZED = size("n")

ILL_FORMED = {
    "unbound variable": ("V001", stored(load(A, v, j))),
    "loop variable after its loop": (
        "V001",
        program(tir.Seq((block(STORE), tir.For(j, i, block(STORE).body)))),
    ),
    "block looks outside": ("V002", stored(load(A, v, i))),
    "init looks outside": (
        "V002",
        program(block(tir.Store(B, (v,), load(B, v)), init=tir.Store(B, (v,), tir.Cast(f32, i)))),
    ),
    "region looks outside": (
        "V002",
        program(block(STORE, reads=(tir.Region(B, (tir.Range(i, one),)),))),
    ),
    "loop binds twice": ("V003", program(tir.For(i, eight, block(STORE)))),
    "two loops with one variable": ("V003", program(tir.Seq((block(STORE), block(STORE))))),
    "unknown buffer": ("V004", stored(load(ALLOCATED, v))),
    "store to unknown buffer": ("V004", program(block(tir.Store(ALLOCATED, (v,), half)))),
    "region of unknown buffer": (
        "V004",
        program(block(STORE, reads=(tir.Region(ALLOCATED, (tir.Range(v, one),)),))),
    ),
    "buffer after its scope": (
        "V004",
        program(
            tir.Seq(
                (
                    tir.Alloc(ALLOCATED, block(tir.Store(ALLOCATED, (v,), half))),
                    tir.For(
                        j,
                        eight,
                        make_block(
                            "U", (tir.Iter(w, eight),), (j,), tir.Store(B, (w,), load(ALLOCATED, w))
                        ),
                    ),
                )
            )
        ),
    ),
    "parameter twice": ("V005", program(block(STORE), (B, B))),
    "parameter allocated": ("V005", program(tir.Alloc(B, block(STORE)))),
    "allocated twice": (
        "V005",
        program(tir.Alloc(ALLOCATED, tir.Alloc(ALLOCATED, block(STORE)))),
    ),
    "too few indices": ("V006", stored(load(A, v))),
    "too many indices in a store": (
        "V006",
        program(
            tir.For(
                i,
                eight,
                tir.Block("T", (tir.Iter(v, eight),), (i,), (), (), tir.Store(B, (v, v), half)),
            )
        ),
    ),
    "region with wrong rank": (
        "V006",
        program(block(STORE, reads=(tir.Region(A, (tir.Range(v, one),)),))),
    ),
    "float index": ("V007", stored(load(B, tir.Cast(f32, v)))),
    "narrow integer index": ("V007", stored(load(B, tir.Cast(i32, v)))),
    "mixed operands": ("V008", stored(tir.Add(load(B, v), tir.Const(1.0, f64)))),
    "compare unlike things": (
        "V008",
        stored(tir.Select(tir.Lt(load(B, v), v), half, half)),
    ),
    "arithmetic on f16": ("V009", stored(tir.Cast(f32, tir.Add(load(H, v), load(H, v))))),
    "negation of f16": ("V009", stored(tir.Cast(f32, tir.Neg(load(H, v))))),
    "comparison of f16": (
        "V009",
        stored(tir.Select(tir.Lt(load(H, v), load(H, v)), half, half)),
    ),
    "function of bf16": (
        "V009",
        stored(tir.Cast(f32, call("exp", tir.Const(1.0, bf16), dtype=bf16))),
    ),
    "division of integers": ("V010", stored(tir.Cast(f32, tir.Div(v, v)))),
    "floor division of floats": ("V010", stored(tir.FloorDiv(load(B, v), half))),
    "bits of floats": ("V010", stored(tir.BitAnd(load(B, v), half))),
    "sum of bools": ("V010", stored(tir.Cast(f32, tir.Add(load(P, v), tir.TRUE)))),
    "shift of bools": ("V010", stored(tir.Cast(f32, tir.ShiftLeft(load(P, v), tir.TRUE)))),
    "not of a float": ("V010", stored(tir.Not(load(B, v)))),
    "sine of an integer": ("V010", stored(tir.Cast(f32, call("sin", v, dtype=index)))),
    "number as condition": ("V011", stored(tir.Select(v, half, half))),
    "number as predicate": ("V011", program(block(STORE, predicate=i))),
    "number in if": ("V011", program(block(tir.If(load(B, v), STORE)))),
    "stored value of other type": ("V012", program(block(tir.Store(H, (v,), half)))),
    "stored index": ("V012", program(block(tir.Store(B, (v,), v)))),
    "sides of a select": ("V013", stored(tir.Select(load(P, v), half, v))),
    "missing binding": ("V014", program(block(STORE, bindings=()))),
    "binding of a float": ("V014", program(block(STORE, bindings=(tir.Cast(f32, i),)))),
    "loop over a float": (
        "V015",
        program(tir.For(j, tir.Const(8.0, f32), block(STORE))),
    ),
    "loop variable of i32": (
        "V015",
        program(tir.For(tir.Var("k", i32), eight, block(STORE))),
    ),
    "reads too little": ("V016", program(block(tir.Store(B, (v,), load(A, v, zero)), reads=()))),
    "reads another element": (
        "V016",
        program(
            block(
                tir.Store(B, (v,), load(A, v, zero)),
                reads=(tir.Region(A, (tir.Range(v, one), tir.Range(one, one))),),
            )
        ),
    ),
    "writes too little": ("V017", program(block(STORE, writes=()))),
    "init of another element": (
        "V018",
        program(
            block(
                tir.Store(B, (zero,), tir.Add(load(B, zero), load(A, v, v))),
                init=tir.Store(B, (one,), half),
                kind=tir.IterKind.REDUCE,
            )
        ),
    ),
    "init with a reduce iterator": (
        "V018",
        program(
            block(
                tir.Store(B, (zero,), tir.Add(load(B, zero), load(A, v, v))),
                init=tir.Store(B, (zero,), tir.Cast(f32, v)),
                kind=tir.IterKind.REDUCE,
            )
        ),
    ),
    "negative extent": ("V019", program(tir.For(j, tir.Const(-1), block(STORE)))),
    "negative domain": (
        "V019",
        program(block(STORE, iters=(tir.Iter(v, tir.Const(-8)),))),
    ),
    "negative dimension": (
        "V019",
        program(block(STORE), (B, tir.Buffer("N", (tir.Const(-1),), f32))),
    ),
    "nested sequence": (
        "V020",
        program(block(tir.Seq((STORE, tir.Seq((STORE, STORE)))))),
    ),
    "sequence of one": ("V020", program(block(tir.Seq((STORE,))))),
    "unknown function": ("V021", stored(call("wobble", half))),
    "wrong number of arguments": ("V021", stored(call("exp", half, half))),
    "arguments of other types": ("V021", stored(call("pow", half, tir.Const(1.0, f64)))),
    "reinterpreted width": ("V022", stored(tir.Reinterpret(f32, tir.Const(1, i8)))),
    "reinterpreted bool": (
        "V022",
        stored(tir.Cast(f32, tir.Reinterpret(boolean, load(P, v)))),
    ),
    "cast changes lanes": ("V022", stored(tir.Cast(f32.vector(4), half))),
    "literal too large": ("V023", stored(tir.Cast(f32, tir.Const(300, u8)))),
    "integer as float": ("V023", stored(tir.Const(1, f32))),
    "bool as integer": ("V023", stored(tir.Cast(f32, tir.Const(True, i32)))),
    "vector too early": ("V024", stored(tir.Reduce(tir.Fold.ADD, tir.Broadcast(half, 4)))),
    "let too early": ("V024", stored(tir.Let(x, half, x))),
    "barrier too early": ("V024", program(tir.Seq((tir.Barrier(), block(STORE))))),
    "register parameter": (
        "V028",
        program(block(STORE), (B, tir.Buffer("R", (eight,), f32, tir.Scope.REGISTER))),
    ),
    "size that no dimension gives": (
        "V029",
        program(block(STORE), (B, tir.Buffer("S", (SIZED * 2,), f32))),
    ),
    "cover with empty tiles": (
        "V030",
        program(tir.For(j, tir.TileSize(tir.Cover(((0, one),)), zero), block(STORE))),
    ),
    "tile number of a float": (
        "V030",
        program(tir.For(j, tir.TileSize(tir.Cover(((4, one),)), half), block(STORE))),
    ),
    "declared type of a sum": ("V031", stored(tir.Cast(f32, tir.Add(v, v, f32)))),
    "declared type of a load": ("V031", stored(tir.Load(B, (v,), f64))),
    "dimension of a float": (
        "V034",
        program(block(STORE), (B, tir.Buffer("D", (tir.Const(1.0, f32),), f32))),
    ),
    "store outside of blocks": ("V035", program(tir.Store(B, (zero,), half))),
    "condition outside of blocks": ("V035", program(tir.If(tir.TRUE, block(STORE)))),
    "reduction that writes many elements": (
        "V036",
        program(block(STORE, kind=tir.IterKind.REDUCE)),
    ),
    "two parameters with one name": (
        "V037",
        program(block(STORE), (B, tir.Buffer("B", (eight,), f32))),
    ),
}

RAMP = tir.Ramp(zero, one, 8)
VECTOR = tir.Broadcast(half, 8)

NOT_LOWERED = {
    "block left": ("V026", program(block(STORE), (B,))),
    "vector loop left": (
        "V026",
        program(tir.For(i, eight, tir.Store(B, (i,), half), tir.LoopKind.VECTOR), (B,)),
    ),
    "unrolled loop left": (
        "V026",
        program(tir.For(i, eight, tir.Store(B, (i,), half), tir.LoopKind.UNROLLED), (B,)),
    ),
    "tile left": (
        "V026",
        program(tir.Store(B, (tir.TileStart(tir.Cover(((4, one),)), zero),), half), (B,)),
    ),
    "parameter not flat": ("V027", program(tir.Store(A, (zero, zero), half), (A,))),
    "allocation not flat": (
        "V027",
        program(tir.Alloc(A, tir.Store(A, (zero, zero), half)), (B,)),
    ),
    "registers of unknown size": (
        "V028",
        program(
            tir.Alloc(
                tir.Buffer("R", (SIZED,), f32, tir.Scope.REGISTER), tir.Store(B, (zero,), half)
            ),
            (B, tir.Buffer("S", (SIZED,), f32)),
        ),
    ),
    "barrier in a parallel loop": (
        "V033",
        program(tir.For(i, eight, tir.Barrier(), tir.LoopKind.PARALLEL), (B,)),
    ),
    "lanes in an operation": (
        "V025",
        program(tir.Store(B, (RAMP,), tir.Add(VECTOR, tir.Broadcast(half, 4))), (B,)),
    ),
    "lanes of a condition": (
        "V025",
        program(
            tir.Store(B, (RAMP,), tir.Select(tir.Broadcast(tir.TRUE, 4), VECTOR, VECTOR)), (B,)
        ),
    ),
    "lanes of a store": ("V012", program(tir.Store(B, (RAMP,), half), (B,))),
    "vector into one element": ("V012", program(tir.Store(B, (zero,), VECTOR), (B,))),
    "ramp of floats": (
        "V032",
        program(tir.Store(B, (zero,), tir.Reduce(tir.Fold.ADD, tir.Ramp(half, half, 4))), (B,)),
    ),
    "prefix of one lane": (
        "V032",
        program(tir.Store(B, (tir.Prefix(zero, zero, 1),), half), (B,)),
    ),
    "prefix as a value": (
        "V032",
        program(tir.Store(B, (RAMP,), tir.Cast(f32.vector(4), tir.Prefix(zero, zero, 4))), (B,)),
    ),
    "broadcast of a vector": (
        "V032",
        program(tir.Store(B, (RAMP,), tir.Broadcast(VECTOR, 2)), (B,)),
    ),
    "fold of a scalar": (
        "V032",
        program(tir.Store(B, (zero,), tir.Reduce(tir.Fold.ADD, half)), (B,)),
    ),
    "let of another type": (
        "V031",
        program(tir.Store(B, (zero,), tir.Let(x, tir.Const(1.0, f64), x)), (B,)),
    ),
    "let inside itself": (
        "V003",
        program(tir.Store(B, (zero,), tir.Let(x, half, tir.Let(x, x, x))), (B,)),
    ),
}


@pytest.mark.parametrize("what", ILL_FORMED)
def test_verify_rejects(what):
    code, func = ILL_FORMED[what]
    with raises_code(code) as caught:
        verify(func)
    assert str(caught.value).count("\n") >= 1


@pytest.mark.parametrize("what", NOT_LOWERED)
def test_verify_rejects_when_lowered(what):
    code, func = NOT_LOWERED[what]
    with raises_code(code):
        verify(func, Level.LOWERED)


def test_lowered_program_is_accepted():
    func = samples.lowered_func()
    assert verify(func, Level.LOWERED) is func
    assert verify(func, Level.LOOPS) is func
    with raises_code("V035"):
        verify(func)


def test_scheduled_program_is_accepted_between_passes():
    func = library.matmul(4, 4, 4)
    assert verify(func) is func
    assert verify(func, Level.LOOPS) is func


def test_declared_regions_may_be_larger():
    func = parse(
        """
        def f(A: f32[8, 8], B: f32[8]):
            for i in range(8):
                with block("B", vi=S(8, i)):
                    reads(A[0:8, 0:8])
                    writes(B[vi])
                    B[vi] = A[vi, vi // 2]
        """
    )
    verify(func)


def test_copies_of_loops_are_fine_after_unrolling():
    store = tir.For(j, eight, tir.Store(B, (j,), half))
    func = tir.Func("f", (B,), tir.Seq((store, store)))
    verify(func, Level.LOWERED)


def test_implementation_of_an_instruction_may_use_vectors():
    body = tir.Store(B, (zero,), tir.Reduce(tir.Fold.ADD, tir.Broadcast(half, 4)))
    made = make_block("dot", (), (), body).with_fields(notes=(("intrinsic", "dot"),))
    verify(tir.Func("f", (B,), made))


def test_error_marks_the_place(golden):
    func = library.matmul(4, 4, 4)
    inner = find_block(func, "C")
    damaged = replace_node(func, inner, inner.with_fields(bindings=inner.bindings[:2]))
    with raises_code("V014") as caught:
        verify(damaged)
    assert golden == caught.value
