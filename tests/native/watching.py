"""Generated code that a sanitizer watches: before each access, its runtime is told of it.

No compiler of another's is between the text of a kernel and its machine code, so nothing would
instrument it. The runtimes have functions for code like this: a range of bytes is about to be read
or written. AddressSanitizer knows which bytes are nobody's, ThreadSanitizer who touched them last
and whether the two have met since.
"""

from __future__ import annotations

import ctypes
import importlib
import re
from collections.abc import Callable, Iterator
from typing import Any, Final

__all__ = ["change_generated_code", "tell", "watch_generated_code"]

RUNTIMES: Final = {
    "address": ("__asan_loadN", "__asan_storeN"),
    "thread": ("__tsan_read_range", "__tsan_write_range"),
}

EMITTERS: Final = ("tilewright.llvm.emit", "tilewright.model.kernels")
"""Modules that know `emit` by its name."""

BITS: Final = {"ptr": 64, "half": 16, "bfloat": 16, "float": 32, "double": 64}

_TYPE = r"<\d+ x \w+>|\w+"
_LOAD = re.compile(rf"\s*%\S+ = load ({_TYPE}), ptr (\S+),")
_STORE = re.compile(rf"\s*store ({_TYPE}) .*, ptr (\S+), align")
_MASKED = re.compile(
    rf"\s*(?:%\S+ = )?call .*@llvm\.masked\.(load|store)\.\S+\((?:({_TYPE}) \S+, )?"
    r"ptr (\S+), i32 \d+, <(\d+) x i1> (%[^\s,)]+)"
)
_SLOT = re.compile(r"\s*(%\S+) = alloca ")
_PART = re.compile(r"\s*(%\S+) = getelementptr \S+, ptr (%[^\s,]+),")


def size_bytes(kind: str) -> int:
    """What a value of an LLVM type takes in memory."""
    lanes, _, element = kind.strip("<>").rpartition(" x ")
    bits = BITS.get(element) or int(element.removeprefix("i"))
    return int(lanes or 1) * bits // 8


def tell(text: str, on_read: int, on_write: int) -> str:
    """The text of a kernel in which each access is told to the function at an address.

    What lies on the stack of a thread, at a constant place, is left alone: those are registers.
    """
    return "\n".join(_told(text, on_read, on_write)) + "\n"


def _told(text: str, on_read: int, on_write: int) -> Iterator[str]:
    on_stack: set[str] = set()
    for number, line in enumerate(text.splitlines()):
        if line.startswith("define"):
            on_stack.clear()
        if slot := _SLOT.match(line):
            on_stack.add(slot[1])
        if (part := _PART.match(line)) and part[2] in on_stack:
            on_stack.add(part[1])
        for pattern, address in ((_LOAD, on_read), (_STORE, on_write)):
            access = pattern.match(line)
            if access and access[2] not in on_stack:
                to = f"call void inttoptr (i64 {address} to ptr)"
                yield f"  {to}(ptr {access[2]}, i64 {size_bytes(access[1])})"
        if masked := _MASKED.match(line):
            address = on_read if masked[1] == "load" else on_write
            yield from _told_masked(masked, address, f"%told.{number}")
        yield line


def _told_masked(access: re.Match[str], address: int, name: str) -> Iterator[str]:
    """An access under a mask, whose first lanes are on: it is as long as there are of them."""
    pointer, lanes, mask = access[3], int(access[4]), access[5]
    overload = re.search(r"\.v\d+[if](\d+)\.p0", access[0])
    assert overload is not None
    yield f"  {name}.bits = bitcast <{lanes} x i1> {mask} to i{lanes}"
    yield f"  {name}.count = call i{lanes} @llvm.ctpop.i{lanes}(i{lanes} {name}.bits)"
    wide = f"{name}.count"
    if lanes < 64:
        wide = f"{name}.wide"
        yield f"  {wide} = zext i{lanes} {name}.count to i64"
    yield f"  {name}.bytes = mul i64 {wide}, {int(overload[1]) // 8}"
    yield f"  call void inttoptr (i64 {address} to ptr)(ptr {pointer}, i64 {name}.bytes)"


def watch_generated_code(sanitizer: str) -> None:
    """From now on, kernels that are compiled in this process are watched."""
    process = ctypes.CDLL(None)
    read, write = (_address(getattr(process, name)) for name in RUNTIMES[sanitizer])
    change_generated_code(lambda text: tell(text, read, write))


def change_generated_code(change: Callable[[str], str]) -> None:
    """From now on, the text of kernels is changed before it is compiled in this process."""
    modules = [importlib.import_module(name) for name in EMITTERS]
    emit: Callable[..., str] = modules[0].emit

    def changed(*arguments: Any) -> str:
        return change(emit(*arguments))

    for module in modules:
        assert module.emit is emit, module
        module.emit = changed


def _address(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0
