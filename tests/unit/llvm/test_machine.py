"""Assembly and object code of a matmul tile, on this machine and on others."""

from pathlib import Path

import pytest

from tests.expect import raises_code
from tests.lowered import flat, function, ramp
from tilewright.dtypes import f32
from tilewright.llvm.assembly import count_spills, innermost_loops, instructions
from tilewright.llvm.emit import emit
from tilewright.llvm.machine import assembly_of, object_of, parsed
from tilewright.target import Target
from tilewright.tensor import ir as tir
from tilewright.tensor.build import seq


def matmul_tile(rows, vectors, lanes, depth=1024):
    """A tile of `rows` × `vectors` vectors in registers; B is packed by the tile's width."""
    width = vectors * lanes
    i, j, k = tir.Var("i"), tir.Var("j"), tir.Var("k")
    a, b = flat("A", 96 * depth, f32), flat("B", 1024 * depth, f32)
    c, tile = flat("C", 96 * 1024, f32), flat("tile", rows * width, f32, tir.Scope.REGISTER)
    clear, update, write = [], [], []
    for row in range(rows):
        for column in range(0, width, lanes):
            slot = ramp(row * width + column, lanes)
            element = tir.Load(a, ((i * rows + row) * depth + k,))
            product = tir.Broadcast(element, lanes) * tir.Load(
                b, (ramp((j * depth + k) * width + column, lanes),)
            )
            clear.append(tir.Store(tile, (slot,), tir.as_expr(0.0, f32.vector(lanes))))
            update.append(tir.Store(tile, (slot,), tir.Load(tile, (slot,)) + product))
            place = ramp((i * rows + row) * 1024 + j * width + column, lanes)
            write.append(tir.Store(c, (place,), tir.Load(tile, (slot,))))
    body = tir.Alloc(tile, seq(*clear, tir.For(k, tir.Const(depth), seq(*update)), *write))
    rows_loop = tir.For(i, tir.Const(96 // rows), body)
    loops = tir.For(j, tir.Const(1024 // width), rows_loop, tir.LoopKind.PARALLEL)
    return function([a, b, c], loops, name="matmul")


def test_inner_loop_of_a_tile_is_minimal():
    """Two loads of B, six broadcasts of A, twelve FMAs, three instructions to go round."""
    target = Target.named("x86-64-v3")
    assembly = assembly_of(emit(matmul_tile(6, 2, 8), target), target)
    assert count_spills(assembly).stores == 0
    (loop,) = innermost_loops(assembly)
    found = [line.split()[0] for line in instructions(loop)]
    assert found.count("vfmadd231ps") == 12
    assert found.count("vbroadcastss") == 6
    assert found.count("vmovups") == 2
    assert len(found) <= 12 + 6 + 2 + 4


def test_tile_beyond_the_registers_spills():
    target = Target.named("x86-64-v3")
    assembly = assembly_of(emit(matmul_tile(8, 3, 8), target), target)
    assert count_spills(assembly).reloads > 0


@pytest.mark.parametrize(
    ("name", "lanes", "fma"),
    [
        ("x86-64-v4", 16, "vfmadd231ps"),
        ("x86-64-v2", 4, "mulps"),
        ("aarch64", 4, "fmla"),
        ("neoverse-v1", 4, "fmla"),
        ("riscv64+v", 4, "vfmacc"),
    ],
)
def test_other_targets_multiply_and_add(name, lanes, fma):
    target = Target.named(name)
    text = emit(matmul_tile(4, 2, lanes), target)
    (loop,) = innermost_loops(assembly_of(text, target))
    assert sum(line.startswith(fma) for line in instructions(loop)) == 8
    assert object_of(text, target)[:4] == b"\x7fELF"


def test_text_that_llvm_refuses_is_kept_for_the_report():
    refused = parsed("define void @f() { ret i32 %x }")
    with raises_code("I110", text="function result type") as caught, refused:
        pass
    saved = Path(str(caught.value.facts["module"]))
    assert "ret i32 %x" in saved.read_text()
    saved.unlink()
