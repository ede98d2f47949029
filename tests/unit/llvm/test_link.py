"""Linked images against the JIT, bit by bit, and what an image refuses."""

from __future__ import annotations

import ctypes
import shutil
import struct
import subprocess

import numpy as np
import pytest

from tests.expect import raises_code
from tests.images import kernel_of, program_of, renamed, texts_of, write_program
from tilewright.dtypes import bf16, f16, f32, f64, i8, i32, i64, u8
from tilewright.errors import InternalError
from tilewright.llvm.builtins import BUILTINS
from tilewright.llvm.elf import RISCV64, read_object
from tilewright.llvm.interface import Interface
from tilewright.llvm.jit import load
from tilewright.llvm.link import link
from tilewright.llvm.machine import object_of
from tilewright.llvm.relocate import KINDS, apply
from tilewright.runtime import Kernel
from tilewright.runtime.image import Image
from tilewright.target import Target
from tilewright.tensor import library
from tilewright.tensor.build import size
from tilewright.tensor.regions import outputs, sizes
from tilewright.testing.inputs import random_array, shape_of

N, M = size("n"), size("m")
PROGRAMS = {
    "matmul": library.matmul(33, 47, 65),
    "matmul_of_any_rows": library.matmul(N, 64, 48, bias=True, relu=True),
    "matmul_i8": library.matmul(12, 16, 32, i8, out=i32),
    "conv": library.conv2d(1, 8, 10, 10, 16, 3, padding=1),
    "depthwise": library.depthwise_conv2d(1, 8, 10, 10, 3),
    "pool": library.max_pool2d(1, 8, 10, 10, 2),
    "softmax": library.softmax(6, 50),
    "softmax_of_any_size": library.softmax(N, M),
    "layernorm": library.layernorm(6, 50),
    "gelu": library.gelu(7, 33),
    "transpose": library.transpose(17, 9),
    "total": library.total(33, 20),
    "running_sum": library.cumulative_sum(40),
    "largest": library.row_max(10, 20, i8),
    "pad": library.pad2d(10, 12, 2),
    "to_half": library.convert(10, 33, f32, f16),
    "from_bf16": library.convert(10, 33, bf16, f32),
    "to_u8": library.convert(10, 33, f32, u8),
    "from_i64": library.convert(10, 33, i64, f32),
    **{f"f32_{name}": library.unary(name, 9, 21) for name in ("exp", "sin", "tan", "log", "erf")},
    **{f"f32_{name}": library.unary(name, 5, 9) for name in ("floor", "ceil", "round", "trunc")},
    **{f"f64_{name}": library.unary(name, 9, 21, f64) for name in ("exp", "cos", "tanh", "acos")},
}
KERNELS = {name: renamed(program, name) for name, program in PROGRAMS.items()}
HOST = Target.host()


def arrays_of(func, rng):
    """Arrays of all parameters, and the values of the symbolic sizes."""
    values = dict(zip(sizes(func), (13, 37), strict=False))
    arrays = [random_array(rng, shape_of(p, values), p.dtype) for p in func.params]
    return arrays, values


def jitted(text, threads=2):
    interface, code = Interface.of_text(text), load(text, HOST)
    return Kernel(
        code.address(interface.symbol),
        interface.params,
        interface.size_names,
        threads if interface.parallel else 1,
        interface.shared_bytes or 0,
        interface.local_bytes or 0,
        keep_alive=code,
        scratch_address=0
        if interface.has_known_scratch
        else code.address(interface.scratch_symbol),
    )


def bits_of(kernel, func, arrays):
    arrays = [array.copy() for array in arrays]
    kernel(*arrays)
    return [arrays[n].tobytes() for n, p in enumerate(func.params) if p in outputs(func)]


@pytest.mark.parametrize("trace", ["draft", "none"])
def test_kernels_of_one_image_compute_what_jitted_ones_do(trace, rng):
    texts = texts_of(KERNELS.values(), HOST, trace)
    linked = link([object_of(text, HOST) for text in texts])
    image = Image.from_bytes(linked.code)
    for func, text in zip(KERNELS.values(), texts, strict=True):
        arrays, _ = arrays_of(func, rng)
        found = bits_of(kernel_of(text, linked, image), func, arrays)
        assert found == bits_of(jitted(text), func, arrays), func.name


def test_image_does_not_depend_on_where_it_is(rng):
    """The same bytes, mapped twice, and from a file at an offset."""
    func = KERNELS["f32_tan"]
    (text,) = texts_of([func], HOST)
    linked = link([object_of(text, HOST)])
    images = [Image.from_bytes(linked.code) for _ in range(2)]
    arrays, _ = arrays_of(func, rng)
    first, second = (bits_of(kernel_of(text, linked, i), func, arrays) for i in images)
    assert images[0].address != images[1].address
    assert first == second


@pytest.mark.parametrize(
    "level", ["x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4", "aarch64", "riscv64", "riscv64+v"]
)
def test_every_kernel_links_for_every_level(level):
    target = Target.named(level)
    objects = [object_of(text, target) for text in texts_of(KERNELS.values(), target)]
    linked = link(objects)
    assert linked.symbols.keys() >= KERNELS.keys()
    assert all(linked.symbols[name] % 64 == 0 for name in KERNELS)
    assert len(linked.code) < sum(map(len, objects))


@pytest.mark.parametrize("name", ["x86-64", "aarch64", "riscv64"])
@pytest.mark.parametrize(
    "kernel", ["matmul", "softmax", "f64_exp", "f32_tan", "matmul_of_any_rows", "pool", "to_half"]
)
def test_program_of_an_image_runs_by_itself(kernel, name, rng, tmp_path):
    """Without this process around it; what is not for this machine, in an emulator."""
    target, func = Target.named(name), KERNELS[kernel]
    emulator = [] if target.arch == HOST.arch else [shutil.which(f"qemu-{target.arch}")]
    if None in emulator:
        pytest.skip(f"qemu-{target.arch} (package qemu-user) is not installed")
    (text,) = texts_of([func], target, threads=1)
    arrays, values = arrays_of(func, rng)
    program, places = program_of(text, arrays, list(values.values()), target)
    path = write_program(tmp_path / "program", program)
    done = subprocess.run([*emulator, path], capture_output=True, timeout=60, check=True)
    (own,) = texts_of([func], HOST)
    expected = [array.copy() for array in arrays]
    jitted(own)(*expected)
    for at, array in zip(places, expected, strict=True):
        found = np.frombuffer(done.stdout[at : at + array.nbytes], array.dtype).reshape(array.shape)
        np.testing.assert_allclose(found, array, rtol=1e-3, atol=1e-5)


CALLS = """\
source_filename = "calls"
target triple = "{triple}"
declare ptr @{name}({types})
define void @{name}_of(ptr %to, ptr %from, i64 %size) nounwind {{
  call ptr @{name}(ptr %to, {second}, i64 %size)
  ret void
}}
"""


def call_of(name, target):
    is_fill = name == "memset"
    types = "ptr, i32, i64" if is_fill else "ptr, ptr, i64"
    second = "i32 421" if is_fill else "ptr %from"
    return CALLS.format(triple=target.triple, name=name, types=types, second=second)


@pytest.mark.parametrize("name", ["memcpy", "memmove", "memset"])
@pytest.mark.parametrize("count", [0, 1, 15, 16, 17, 63, 64, 100])
def test_builtin_moves_exactly_the_bytes(name, count):
    linked = link([object_of(call_of(name, HOST), HOST)])
    image = Image.from_bytes(linked.code)
    kind = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)
    function = kind(image.address + linked.symbols[f"{name}_of"])
    for to, source in [(8, 200), (200, 8), (30, 33), (33, 30)]:
        if name == "memcpy" and abs(to - source) < count:
            continue  # must not overlap
        memory = np.arange(400, dtype=np.uint8)
        expected = memory.copy()
        expected[to : to + count] = 421 % 256 if name == "memset" else memory[source:][:count]
        base = memory.ctypes.data
        function(base + to, base + source, count)
        np.testing.assert_array_equal(memory, expected)


ROUNDED = """\
target triple = "{triple}"
declare {kind} @{name}({kind})
define void @all(ptr %x, ptr %y, i64 %count) nounwind {{
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %from = getelementptr {kind}, ptr %x, i64 %i
  %to = getelementptr {kind}, ptr %y, i64 %i
  %value = load {kind}, ptr %from
  %rounded = call {kind} @{name}({kind} %value)
  store {kind} %rounded, ptr %to
  %next = add i64 %i, 1
  %is.last = icmp eq i64 %next, %count
  br i1 %is.last, label %end, label %loop
end:
  ret void
}}
"""
ROUNDINGS = {"floor": np.floor, "ceil": np.ceil, "trunc": np.trunc, "roundeven": np.rint}


@pytest.mark.isa("sse2")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", ROUNDINGS)
def test_builtin_rounds_like_numpy(name, dtype, rng):
    symbol = name + ("f" if dtype is np.float32 else "")
    assert symbol in BUILTINS
    base = Target.named("x86-64")
    kind = "float" if dtype is np.float32 else "double"
    text = ROUNDED.format(triple=base.triple, kind=kind, name=symbol)
    linked = link([object_of(text, base)])
    image = Image.from_bytes(linked.code)
    pointer = ctypes.c_void_p
    function = ctypes.CFUNCTYPE(None, pointer, pointer, ctypes.c_int64)(
        image.address + linked.symbols["all"]
    )
    some = np.array([0, 0.49999997, 0.5, 1.5, 2.5, 1, 7.9, 2**22 + 0.5, 2**23, 2**31, 2**51 + 0.5])
    wide = np.array([2**52, 2**53, 2**63, 2**64, 1e300, 1e-300, np.inf, np.nan])
    with np.errstate(over="ignore"):
        x = np.concatenate([some, wide, rng.standard_normal(500) * 100]).astype(dtype)
    x = np.concatenate([x, -x, np.nextafter(x, dtype(0)), np.nextafter(-x, dtype(np.inf))])
    y = np.empty_like(x)
    function(x.ctypes.data, y.ctypes.data, len(x))
    expected = ROUNDINGS[name](x)
    np.testing.assert_array_equal(y, expected)
    np.testing.assert_array_equal(np.signbit(y), np.signbit(expected))


def test_builtins_are_linked_once():
    linked = link([object_of(call_of(name, HOST), HOST) for name in ("memset", "memcpy")])
    assert sorted(linked.symbols) == ["memcpy", "memcpy_of", "memset", "memset_of"]


def test_equal_constants_of_two_objects_are_stored_once():
    func = PROGRAMS["f32_tan"]
    texts = texts_of([renamed(func, "one"), renamed(func, "two")], HOST)
    one, two = (object_of(text, HOST) for text in texts)
    constants = sum(s.size for s in read_object(one).sections if s.name.startswith(".rodata"))
    code = sum(s.size for s in read_object(one).sections if s.is_code)
    assert constants > 0
    assert len(link([one, two]).code) <= 2 * (code + 64) + constants + 64


def test_nothing_gives_an_empty_image():
    linked = link([])
    assert (linked.code, linked.symbols) == (b"", {})
    assert len(Image.from_bytes(linked.code).bytes) == 0


def host_object(body, head=""):
    return object_of(f'{head}\ntarget triple = "{HOST.triple}"\n{body}', HOST)


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ("@counter = global i32 7", "data that changes, `.data`"),
        ("@counter = global i32 0", "data that changes, `.bss`"),
        ("@counter = thread_local global i32 1", "data that changes, `.tdata`"),
        ('@table = constant [4 x i8] c"abcd", align 65536', "65536 bytes of alignment"),
    ],
)
def test_link_rejects_data(body, problem):
    with raises_code("I130", text=problem):
        link([host_object(body)])


def test_link_rejects_addresses_in_memory():
    body = "define void @f() { ret void }\n@table = constant ptr @f"
    with raises_code("I131", text="R_X86_64_64, an absolute address"):
        link([host_object(body)])


@pytest.mark.isa("sse2")
def test_link_rejects_tables_of_addresses():
    body = "@other = external global i32\ndefine ptr @f() { ret ptr @other }"
    with raises_code("I131", text="a table of addresses"):
        link([host_object(body), host_object("@other = constant i32 3")])


def test_link_rejects_functions_of_others():
    body = "declare double @sinh(double)\ndefine double @f(double %x) { %y = call double @sinh("
    with raises_code("I133", text="`sinh`"):
        link([host_object(body + "double %x)\n ret double %y }")])


def test_link_rejects_a_symbol_twice():
    one = host_object("define void @f() { ret void }")
    with raises_code("I134", text="`f`"):
        link([one, one])


OWN = """\
define internal i32 @own() noinline {{
  ret i32 {n}
}}
define i32 @f{n}() {{
  %x = call i32 @own()
  ret i32 %x
}}
"""


def test_local_symbols_do_not_clash():
    linked = link([host_object(OWN.format(n=n)) for n in (3, 4)])
    image = Image.from_bytes(linked.code)
    assert sorted(linked.symbols) == ["f3", "f4"]
    for n in (3, 4):
        assert ctypes.CFUNCTYPE(ctypes.c_int)(image.address + linked.symbols[f"f{n}"])() == n


def test_link_rejects_mixed_and_unknown_machines():
    body = "define void @{}() {{ ret void }}"
    targets = [Target.named(name) for name in ("x86-64", "aarch64", "riscv64")]
    one, *others = (
        object_of(f'target triple = "{t.triple}"\n' + body.format(f"f{n}"), t)
        for n, t in enumerate(targets)
    )
    for other in others:
        with raises_code("I130", text="another than that of the objects before"):
            link([one, other])
    strange = bytearray(one)
    strange[18:20] = struct.pack("<H", 258)  # LoongArch
    with raises_code("I130", text="no linker for machine 258"):
        link([bytes(strange)])


def test_damaged_objects_are_refused_or_linked(rng):
    """Whatever bytes change, there is an image or an error with a code, and nothing else."""
    whole = object_of(texts_of([KERNELS["f32_tan"]], HOST)[0], HOST)
    refused = 0
    for _ in range(400):
        data = bytearray(whole[: rng.integers(1, len(whole) + 1)] if rng.random() < 0.2 else whole)
        for _ in range(rng.integers(1, 4)):
            data[rng.integers(len(data))] = rng.integers(256)
        try:
            link([bytes(data)])
        except InternalError:
            refused += 1
    assert refused > 20


@pytest.mark.parametrize("machine", KINDS)
@pytest.mark.parametrize("extreme", [False, True])
def test_every_relocation_keeps_the_other_bits_and_knows_its_reach(machine, extreme):
    for number, kind in KINDS[machine].items():
        place = 1 << 40
        far = 1 << kind.bits + kind.zeros + (12 if "HI2" in kind.name else 0) - 1
        if extreme and not kind.unsigned:
            with raises_code("I132", text=kind.name):
                apply(machine, number, _Window(place), place, place + far)
            continue
        window = _Window(place, word=0xFFFFFFFF)
        apply(machine, number, window, place, place + far - (1 << kind.zeros + 12))
        (word,) = struct.unpack("<I", window.data)
        fixed = ~kind.field((1 << kind.bits) - 1) & 0xFFFFFFFF
        assert word & fixed == fixed


class _Window:
    """Four bytes of a large image."""

    def __init__(self, place, word=0):
        self.place, self.data = place, struct.pack("<I", word)

    def __getitem__(self, part):
        assert (part.start, part.stop) == (self.place, self.place + 4)
        return self.data

    def __setitem__(self, part, data):
        assert (part.start, part.stop) == (self.place, self.place + 4)
        self.data = data


def test_parts_of_a_page_must_be_aligned():
    with raises_code("I132", text="LDST64"):
        apply(183, 286, bytearray(4), 0, 0x1234)


NEAR = [0, 4, -4, 2046, 2048, -2048, -2050, 4094, 1 << 20, -(1 << 20), (1 << 31) - 2050, -(1 << 31)]


@pytest.mark.parametrize("distance", NEAR)
def test_both_halves_of_a_riscv_distance_add_up(distance):
    """Of a call, whose halves are neighbours, and of a load and a store somewhere behind."""
    image, place = bytearray(24), 4
    apply(RISCV64, 19, image, place, place + distance)
    words = struct.unpack("<6I", image)
    assert _upper_of(words[1]) + _signed(words[2] >> 20) == distance
    for kind, at in ((24, 16), (25, 20)):
        apply(RISCV64, kind, image, at, place + distance, base=place)
    load, store = struct.unpack("<2I", image[16:])
    assert _upper_of(words[1]) + _signed(load >> 20) == distance
    assert _upper_of(words[1]) + _signed(store >> 25 << 5 | store >> 7 & 31) == distance


def _upper_of(word):
    return struct.unpack("<i", struct.pack("<I", word & ~0xFFF))[0]


def _signed(value):
    return value - (value >> 11 << 12)


def test_calls_of_builtins_link_for_riscv():
    target = Target.named("riscv64")
    linked = link([object_of(call_of("memcpy", target), target)])
    code, at = linked.code, linked.symbols["memcpy_of"]
    words = [int.from_bytes(code[n : n + 4], "little") for n in range(at, len(code) - 4, 2)]
    calls = [n for n, word in enumerate(words) if word & 0xFFF == 0x097]  # auipc ra
    reached = [at + 2 * n + _upper_of(words[n]) + _signed(words[n + 2] >> 20) for n in calls]
    assert linked.symbols["memcpy"] in reached


def test_half_of_an_address_is_refused():
    target = Target.named("riscv64")
    whole = object_of(texts_of([KERNELS["f32_tan"]], target)[0], target)
    one = next(r for r in read_object(whole).relocations if r.kind == 23)
    upper, lower = (struct.pack("<QI", one.offset, kind) for kind in (23, 24))
    assert whole.count(upper) == 1
    with raises_code("I130", text="no first one"):
        link([whole.replace(upper, lower)])
