"""Loads and stores of scalars and vectors.

A ramp with stride one is one vector access. Other index vectors are taken apart by lanes: if all
lanes lie at constant distances, a few overlapping vector loads and shuffles fetch them (nothing
outside of the touched range is read), else each lane is loaded by itself. Stores of such vectors
go lane by lane. A prefix of a vector is loaded and stored under a mask: lanes that are off touch
nothing, so that it may reach beyond the end of a buffer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tilewright.dtypes import DType, index
from tilewright.llvm.addresses import Address
from tilewright.llvm.spelling import lane_literals, memory_type, value_type, vector
from tilewright.llvm.writer import Value, Writer
from tilewright.tensor import ir as tir

__all__ = ["Access", "broadcast", "first_lanes", "gather", "load_prefix", "load_vector", "ramp"]
__all__ += ["scatter", "shuffled", "store_prefix", "store_vector"]

MAX_WINDOWS = 4
"""Vector loads that stand in for one strided load at most; beyond, single elements are cheaper."""


class Access:
    """One buffer as the memory operations see it: `version` counts the writes to it so far."""

    __slots__ = ("buffer", "constant", "dtype", "version")

    def __init__(self, buffer: tir.Buffer, version: int, *, constant: bool) -> None:
        self.buffer, self.dtype, self.version, self.constant = (
            buffer,
            buffer.dtype,
            version,
            constant,
        )


def load_vector(w: Writer, access: Access, at: Address, lanes: int, skip_bytes: int = 0) -> Value:
    """Adjacent elements (or one), `skip_bytes` behind an address."""
    kind = memory_type(access.dtype.vector(lanes))
    pointer = at.pointer(w, skip_bytes)
    tail = ", !invariant.load !0" if access.constant else ""
    text = (
        f"load {kind}, ptr {pointer.text}, align {_alignment(at, access.dtype, lanes, skip_bytes)}"
    )
    value = w.load(kind, text + tail, pointer, access.version, access.buffer)
    return w.compare("icmp ne", value, 0) if access.dtype.is_bool else value


def store_vector(w: Writer, access: Access, at: Address, value: Value, lanes: int) -> None:
    """Write adjacent elements (or one)."""
    if access.dtype.is_bool:
        value = w.convert("zext", value, "i8")
    pointer = at.pointer(w)
    w.line(
        f"store {value.typed}, ptr {pointer.text}, align {_alignment(at, access.dtype, lanes, 0)}"
    )


def load_prefix(w: Writer, access: Access, at: Address, lanes: int, mask: Value) -> Value:
    """Adjacent elements, of which only those under the mask are touched; zero elsewhere."""
    kind = memory_type(access.dtype.vector(lanes))
    pointer = at.pointer(w)
    name = f"llvm.masked.load.{_overload(kind)}.p0"
    w.declare(name, kind, "ptr", "i32", mask.type, kind)
    aligned = _alignment(at, access.dtype, 1, 0)
    text = (
        f"call {kind} @{name}(ptr {pointer.text}, i32 {aligned}, {mask.typed},"
        f" {kind} zeroinitializer)"
    )
    reach = Value(pointer.text, "ptr", max(pointer.depth, mask.depth))
    value = w.load(kind, text, reach, access.version, access.buffer)
    return w.compare("icmp ne", value, 0) if access.dtype.is_bool else value


def store_prefix(w: Writer, access: Access, at: Address, value: Value, mask: Value) -> None:
    """Write adjacent elements under the mask."""
    if access.dtype.is_bool:
        value = w.convert("zext", value, "i8")
    pointer = at.pointer(w)
    name = f"llvm.masked.store.{_overload(value.type)}.p0"
    w.declare(name, "void", value.type, "ptr", "i32", mask.type)
    aligned = _alignment(at, access.dtype, 1, 0)
    w.line(f"call void @{name}({value.typed}, ptr {pointer.text}, i32 {aligned}, {mask.typed})")


def _overload(kind: str) -> str:
    """How an intrinsic names a vector type: `<8 x float>` is `v8f32`."""
    lanes, element = kind[1:-1].split(" x ")
    return f"v{lanes}{_FLOATS.get(element, element)}"


_FLOATS: Final = {"float": "f32", "double": "f64"}


def first_lanes(w: Writer, count: Value, lanes: int, bits: int) -> Value:
    """A mask of the first `count` lanes; lanes are counted in integers of so many bits."""
    kind = vector("i1", lanes)
    if count.text[0] != "%":
        on = int(count.text)
        each = ", ".join(f"i1 {str(lane < on).lower()}" for lane in range(lanes))
        return Value(f"<{each}>", kind)
    numbers = DType(index.kind, bits, lanes)
    if bits < 64:
        least, most = Value("0", "i64"), Value(str(lanes), "i64")
        count = w.call("llvm.smax.i64", "i64", w.call("llvm.smin.i64", "i64", count, most), least)
        count = w.convert("trunc", count, f"i{bits}")
    lane = Value(lane_literals(range(lanes), count.type), value_type(numbers))
    return w.compare("icmp sgt", broadcast(w, count, numbers), lane)


def _alignment(at: Address, dtype: DType, lanes: int, skip_bytes: int) -> int:
    """The largest power of two that divides the address, up to the size of what is accessed."""
    known = at.aligned(skip_bytes)
    size = dtype.size_bytes * lanes
    known = (known & -known) if known else size
    return max(dtype.size_bytes, min(known, 1 << (size - 1).bit_length()))


def broadcast(w: Writer, value: Value, dtype: DType) -> Value:
    """A scalar in every lane of the vector type `dtype`."""
    kind = value_type(dtype)
    if dtype.lanes == 1:
        return value
    if value.text[0] != "%":
        return Value(f"splat ({value.typed})", kind)
    single = w.pure(kind, f"insertelement {kind} poison, {value.typed}, i64 0", value)
    mask = f"<{dtype.lanes} x i32> zeroinitializer"
    return w.pure(kind, f"shufflevector {single.typed}, {kind} poison, {mask}", single)


def gather(w: Writer, access: Access, lanes: Sequence[Address]) -> Value:
    """Elements at one address per lane."""
    windows = _windows(access, lanes)
    if windows is not None:
        return _from_windows(w, access, lanes, windows)
    kind = value_type(access.dtype.vector(len(lanes)))
    result = Value("poison", kind)
    for lane, at in enumerate(lanes):
        element = load_vector(w, access, at, 1)
        text = f"insertelement {result.typed}, {element.typed}, i64 {lane}"
        result = w.pure(kind, text, result, element)
    return result


def _windows(access: Access, lanes: Sequence[Address]) -> list[int] | None:
    """Offsets of few vectors that hold all lanes and reach no further than they do; else None."""
    if any(at.base is not lanes[0].base for at in lanes) or access.dtype.is_bool:
        return None
    offsets = sorted({at.offset_bytes for at in lanes})
    size = access.dtype.size_bytes
    width = size * len(lanes)
    last = offsets[-1] - width + size
    if last < offsets[0]:
        return None
    windows: list[int] = []
    for offset in offsets:
        if not windows or offset >= windows[-1] + width:
            windows.append(min(offset, last))
    return windows if len(windows) <= min(MAX_WINDOWS, len(lanes) // 2) else None


def _from_windows(
    w: Writer, access: Access, lanes: Sequence[Address], windows: Sequence[int]
) -> Value:
    count, size = len(lanes), access.dtype.size_bytes
    kind = value_type(access.dtype.vector(count))
    result: Value | None = None
    for window in windows:
        at = lanes[0]
        loaded = load_vector(w, access, at, count, window - at.offset_bytes)
        mask = list(range(count))
        for lane, address in enumerate(lanes):
            inside = (address.offset_bytes - window) // size
            if 0 <= inside < count:
                mask[lane] = count + inside
            elif result is None:
                mask[lane] = -1
        before = result or Value("poison", kind)
        result = shuffled(w, before, loaded, mask)
    assert result is not None
    return result


def shuffled(w: Writer, a: Value, b: Value, mask: Sequence[int]) -> Value:
    """Lanes of both vectors by their numbers; what a negative one gets does not matter."""
    lanes = ", ".join("i32 poison" if lane < 0 else f"i32 {lane}" for lane in mask)
    text = f"shufflevector {a.typed}, {b.typed}, <{len(mask)} x i32> <{lanes}>"
    return w.pure(a.type, text, a, b)


def scatter(w: Writer, access: Access, lanes: Sequence[Address], value: Value) -> None:
    """Write one lane of `value` to each address, in order."""
    element = value_type(access.dtype)
    for lane, at in enumerate(lanes):
        single = w.pure(element, f"extractelement {value.typed}, i64 {lane}", value)
        store_vector(w, access, at, single, 1)


def ramp(w: Writer, base: Value, stride: int, dtype: DType) -> Value:
    """`base, base + stride, …` as a vector of `dtype`."""
    if dtype.lanes == 1:
        return base
    first = int(base.text) if base.text[0] != "%" else 0
    steps = [first + lane * stride for lane in range(dtype.lanes)]
    counted = Value(lane_literals(steps, base.type), value_type(dtype))
    return counted if base.text[0] != "%" else w.binary("add", broadcast(w, base, dtype), counted)
