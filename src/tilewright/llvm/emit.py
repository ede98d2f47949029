"""A lowered function as the text of an LLVM module.

The module exports one function with the kernel's calling convention. It unpacks its arguments and
calls the body, whose parameters carry what LLVM cannot see from there: buffers do not overlap where
one of them is written, how they are aligned, and which are only read or only written. A second
exported function tells the scratch sizes when they depend on symbolic sizes.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

from tilewright.abi import ALIGNMENT, CONTEXT
from tilewright.dtypes import u8
from tilewright.llvm.addresses import Place, locate
from tilewright.llvm.linear import linear
from tilewright.llvm.magnitude import checked
from tilewright.llvm.spelling import identifier
from tilewright.llvm.statements import FIRST_LOOP_NOTE, Statements
from tilewright.llvm.writer import Value, Writer
from tilewright.target import Target
from tilewright.tensor import ir as tir

if TYPE_CHECKING:
    from tilewright.lower import Lowered

__all__ = ["emit", "scratch_symbol", "symbol"]

# Names of the body's own parameters; buffers and loops get others.
_CONTEXT_PARAMETERS = ("thread", "threads", "barrier", "shared", "local")
_RESERVED = (*_CONTEXT_PARAMETERS, "context", "entry", "buffers", "sizes")


def symbol(func: tir.Func) -> str:
    """The name under which a function is exported."""
    return identifier(func.name)


def scratch_symbol(func: tir.Func) -> str:
    """`void (const int64 *sizes, int64 bytes[2])`: shared and local scratch, if not constant.

    -1 stands for more than there can be.
    """
    return f"{symbol(func)}_scratch"


def emit(lowered: Lowered, target: Target, shared: Collection[int] = ()) -> str:
    """The module of one kernel as text.

    `shared` are the numbers of parameters that may be the memory of another one of them (see
    `lower/in_place.py`).
    """
    func, writer = lowered.func, Writer()
    body = Statements(writer, target, func.body)
    overlapping = {func.params[number] for number in shared}
    names = _place_everything(body, lowered, overlapping)
    body.use_registers(func.body)
    body.run(func.body)
    parts = [
        f'source_filename = "{symbol(func)}"\ntarget triple = "{target.triple}"\n',
        _entry(func, names, lowered.sizes),
        _body(func, names, lowered.sizes, body, overlapping),
    ]
    if any(tir.int_value(size) is None for size in (lowered.shared_bytes, lowered.local_bytes)):
        parts.append(_scratch(lowered, target))
    parts.append("\n".join(writer.declared.values()) + "\n" if writer.declared else "")
    parts.append(_metadata(body.loops))
    return "\n".join(part for part in parts if part)


def _place_everything(
    body: Statements, lowered: Lowered, overlapping: Collection[tir.Buffer]
) -> list[str]:
    """Give sizes, parameters and arena buffers their values; the names of the parameters."""
    w = body.w
    for name in _RESERVED:
        w.fresh(name)
    for size in lowered.sizes:
        body.count(size, Value(f"%{w.fresh(identifier(size.name))}", "i64"))
    names = [w.fresh(identifier(buffer.name)) for buffer in lowered.func.params]
    changing = {*body.effects(lowered.func.body).writes, *overlapping}
    for name, buffer in zip(names, lowered.func.params, strict=True):
        place = Place(Value(f"%{name}", "ptr"), buffer.dtype.size_bytes, buffer not in changing)
        body.places[buffer] = place
    for arena, offsets in (("shared", lowered.shared), ("local", lowered.local)):
        base = Place(Value(f"%{arena}", "ptr"), ALIGNMENT)
        for buffer, offset in offsets.items():
            at = locate(w, base, u8, linear(tir.as_index(offset), body.emit), {})
            body.places[buffer] = Place(at.pointer(w), ALIGNMENT)
    return names


def _entry(func: tir.Func, names: list[str], sizes: Iterable[tir.Var]) -> str:
    lines, arguments = [], []
    for number, name in enumerate(names):
        lines.append(f"%{name}.at = getelementptr ptr, ptr %buffers, i64 {number}")
        lines.append(f"%{name} = load ptr, ptr %{name}.at, align 8")
        arguments.append(f"ptr %{name}")
    for number, _ in enumerate(sizes):
        lines.append(f"%size.at.{number} = getelementptr i64, ptr %sizes, i64 {number}")
        lines.append(f"%size.{number} = load i64, ptr %size.at.{number}, align 8")
        arguments.append(f"i64 %size.{number}")
    for name in _CONTEXT_PARAMETERS:
        field = CONTEXT[name]
        lines.append(f"%{name}.at = getelementptr i8, ptr %context, i64 {field.offset}")
        lines.append(f"%{name}.raw = load {field.type}, ptr %{name}.at, align {_size(field.type)}")
        if field.type == "ptr":
            arguments.append(f"ptr %{name}.raw")
        else:
            lines.append(f"%{name}.wide = sext {field.type} %{name}.raw to i64")
            arguments.append(f"i64 %{name}.wide")
    arguments.append("ptr %context")
    lines += [f"call void @{symbol(func)}.body({', '.join(arguments)})", "ret i32 0"]
    head = f"define i32 @{symbol(func)}(ptr readonly %buffers, ptr readonly %sizes, ptr %context)"
    return _function(head, lines)


def _size(kind: str) -> int:
    return 8 if kind == "ptr" else int(kind[1:]) // 8


def _body(
    func: tir.Func,
    names: list[str],
    sizes: Iterable[tir.Var],
    body: Statements,
    overlapping: Collection[tir.Buffer],
) -> str:
    changed = body.written if body.effects(func.body).meets else set()
    parameters = [
        f"ptr {_facts(buffer, body, alone=buffer not in changed | {*overlapping})} %{name}"
        for buffer, name in zip(func.params, names, strict=True)
    ]
    parameters += [body.values[size].typed for size in sizes]
    parameters += ["i64 %thread", "i64 %threads", "ptr %barrier"]
    parameters += [f"ptr noundef align {ALIGNMENT} %{arena}" for arena in ("shared", "local")]
    parameters.append("ptr %context")
    head = f"define internal void @{symbol(func)}.body({', '.join(parameters)}) noinline"
    lines = ["entry:", *body.w.slots, *body.w.region.lines, "ret void"]
    return _function(head, lines)


def _facts(buffer: tir.Buffer, body: Statements, *, alone: bool) -> str:
    """Parameter attributes. The runtime refuses arrays that overlap where one is written.

    A buffer is not `alone` where it may be the memory of a result, and, if it is written, where
    threads meet: others change it meanwhile.
    """
    written = buffer in body.written
    facts = ["noundef", f"align {buffer.dtype.size_bytes}"]
    if alone:
        facts += ["noalias", "captures(none)"]
    extents = [tir.int_value(extent) for extent in buffer.shape]
    if all(extents):
        count = math.prod(extent for extent in extents if extent is not None)
        facts.append(f"dereferenceable({count * buffer.dtype.size_bytes})")
    if not written:
        facts.append("readonly" if buffer in body.read else "readnone")
    elif buffer not in body.read:
        facts.append("writeonly")
    return " ".join(facts)


def _scratch(lowered: Lowered, target: Target) -> str:
    writer = Writer()
    values = Statements(writer, target, tir.Seq(()))
    for number, size in enumerate(lowered.sizes):
        pointer = writer.pure("ptr", f"getelementptr i64, ptr %sizes, i64 {number}")
        values.count(size, writer.here("i64", f"load i64, ptr {pointer.text}, align 8"))
    for number, total in enumerate((lowered.shared_bytes, lowered.local_bytes)):
        value = values.emit(checked(total))
        pointer = writer.pure("ptr", f"getelementptr i64, ptr %bytes, i64 {number}")
        writer.line(f"store i64 {value.text}, ptr {pointer.text}, align 8")
    name = scratch_symbol(lowered.func)
    head = f"define void @{name}(ptr readonly %sizes, ptr writeonly %bytes)"
    return _function(head, [*writer.region.lines, "ret void"])


def _function(head: str, lines: Iterable[str]) -> str:
    text = "\n".join(line if line.endswith(":") else f"  {line}" for line in lines)
    return f"{head} nounwind {{\n{text}\n}}\n"


def _metadata(loops: int) -> str:
    """Loads of constant buffers are invariant; loops stay as they are scheduled."""
    lines = ["!0 = !{}"]
    lines.append('!1 = !{!"llvm.loop.unroll.disable"}')
    lines.append('!2 = !{!"llvm.loop.vectorize.enable", i1 false}')
    lines += [
        f"!{n} = distinct !{{!{n}, !1, !2}}"
        for n in range(FIRST_LOOP_NOTE, FIRST_LOOP_NOTE + loops)
    ]
    return "\n".join(lines) + "\n"
