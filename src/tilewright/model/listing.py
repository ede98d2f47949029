"""Plans, kernels and programs as text, for people: the last stages of a model.

Kernels have the numbers of their program throughout: `tilewright show MODEL --until plan` says
which group is kernel 3, and `--kernel 3` looks at it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tilewright.graph.ir import Node, Value
from tilewright.llvm.interface import Interface
from tilewright.model import steps as planned
from tilewright.model.assemble import Assembled
from tilewright.model.compile_kernels import Kernels
from tilewright.model.kernel_plan import Planned
from tilewright.pipeline import Compiled
from tilewright.runtime import program as rt
from tilewright.shown import counted, shown
from tilewright.tensor import ir as tir
from tilewright.tensor.printer import print_node

__all__ = ["kernels_text", "labels_of", "plan_text", "program_text"]


def plan_text(plan: Planned) -> str:
    """The steps of a plan; a kernel with the nodes that it computes."""
    numbers = {task.key: k for k, task in enumerate(plan.kernels)}
    steps = [step for step in plan.plan.steps if not isinstance(step, planned.Label)]
    head = f"{counted(len(steps), 'step')}, {counted(len(numbers), 'kernel')}"
    lines = [f"plan {shown(plan.graph.name)}: {head}"]
    place = 0
    for step in plan.plan.steps:
        if isinstance(step, planned.Label):
            lines.append(f"      {step.name}:")
            continue
        number = numbers[plan.tasks[step].key] if isinstance(step, planned.KernelStep) else None
        first, *more = _planned(step, number)
        lines += [f"{place:>4}  {first}", *(f"        {line}" for line in more)]
        place += 1
    return "\n".join(lines)


def labels_of(plan: Planned) -> list[tuple[str, ...]]:
    """The labels of the nodes that each kernel computes, by its number."""
    found: dict[str, dict[str, None]] = {task.key: {} for task in plan.kernels}
    for step, task in plan.tasks.items():
        labels = " ".join(dict.fromkeys(node.label for node in step.group.nodes if node.label))
        found[task.key].update({labels: None} if labels else {})
    return [tuple(labels) for labels in found.values()]


def _planned(step: planned.PlanStep, kernel: int | None) -> Iterator[str]:
    match step:
        case planned.KernelStep(group=group, outputs=outputs, segment=segment):
            later = f", segment {segment}" if segment else ""
            yield f"kernel {kernel} ({group.kind.value}{later}) → {_names(outputs)}"
            yield from map(_node, group.nodes)
        case planned.HostStep(node=node, segment=segment):
            yield "Python" + (f" (segment {segment})" if segment else "")
            yield _node(node)
        case planned.Enter(segment=segment, read=read):
            sizes = ", ".join(f"{shown(s.name)} = {shown(v.name)}" for s, v in read)
            yield f"enter segment {segment}" + (f" with {sizes}" if sizes else "")
        case planned.Assign(size=size, value=value):
            yield f"{shown(size.name)} = {print_node(value)}"
        case planned.Branch(to=label, unless=unless):
            yield f"go to {label.name}{_unless(unless)}"


def _unless(condition: Value | tir.Expr | None) -> str:
    if condition is None:
        return ""
    text = shown(condition.name) if isinstance(condition, Value) else print_node(condition)
    return f" unless {text}"


def _node(node: Node) -> str:
    label = f"  # {shown(node.label)}" if node.label else ""
    return f"{', '.join(map(str, node.outputs))} = {node.op} {_names(node.inputs)}{label}"


def _names(values: Sequence[Value]) -> str:
    return ", ".join(shown(value.name) for value in values)


def kernels_text(kernels: Kernels) -> str:
    """The interface of each kernel, and what it computes."""
    total = sum(len(kernel.code) for kernel in kernels.compiled.values())
    count = counted(len(kernels.compiled), "kernel")
    lines = [f"kernels {shown(kernels.planned.graph.name)}: {count}, {total} bytes of objects"]
    pairs = zip(kernels.compiled.values(), labels_of(kernels.planned), strict=True)
    for number, (kernel, labels) in enumerate(pairs):
        lines.append(f"{number:>4}  {', '.join(map(shown, labels)) or '(no label)'}")
        lines += (f"        {line}" for line in _kernel(kernel))
    return "\n".join(lines)


def _kernel(kernel: Compiled) -> Iterator[str]:
    interface = kernel.interface
    params = ", ".join(map(str, interface.params))
    yield f"{interface.symbol}({params})"
    runs = "all threads" if interface.parallel else "one thread"
    yield f"{len(kernel.code)} bytes, {runs}, scratch {_scratch(interface)}"
    if interface.packings:
        packed = (f"{interface.params[k].name}: {p}" for k, p in _packings(interface).items())
        yield f"packed {'; '.join(packed)}"
    if interface.in_place:
        names = [param.name for param in interface.params]
        pairs = ", ".join(f"{names[y]} over {names[x]}" for x, y in interface.in_place)
        yield f"in place {pairs}"
    yield from (f"remark {remark}" for remark in kernel.remarks)


def _packings(interface: Interface) -> Mapping[int, str]:
    return {k: ", ".join(map(str, p.steps)) for k, p in interface.packings.items()}


def _scratch(interface: Interface) -> str:
    if not interface.has_known_scratch:
        return "by size"
    each = f" and {interface.local_bytes} for each thread" if interface.local_bytes else ""
    return f"{interface.shared_bytes} bytes{each}"


def program_text(made: Assembled) -> str:
    """The image, the buffers and the steps of a program."""
    program = made.program
    code = f"{counted(len(program.kernels), 'kernel')} in {len(made.code)} bytes of machine code"
    weights = f"{made.constants.size_bytes} bytes of weights"
    lines = [f"program {shown(program.name)}: {code}, {weights}"]
    for kind, ports in (("input", program.inputs), ("output", program.outputs)):
        lines += (f"  {kind:<6} {_port(port)}" for port in ports)
    lines += (f"  size   {k}: {_size(size)}" for k, size in enumerate(program.sizes))
    lines += (f"  buffer {k}: {_buffer(b)}" for k, b in enumerate(program.buffers))
    lines += (f"  kernel {k}: {_code(kernel)}" for k, kernel in enumerate(program.kernels))
    lines += (f"  step   {k}: {_step(step)}" for k, step in enumerate(program.steps))
    return "\n".join(lines)


def _port(port: rt.Port) -> str:
    dims = ", ".join(map(shown, port.shown))
    return f"{shown(port.name)}: {port.dtype.name}[{dims}] in buffer {port.buffer}"


def _size(size: rt.Size) -> str:
    known = "told by inputs or steps" if size.value is None else _postfix(size.value)
    return f"{shown(size.name)}, {known}" + (f", segment {size.segment}" if size.segment else "")


def _buffer(buffer: rt.Buffer) -> str:
    text = f"{buffer.place.value} {shown(buffer.name)}, {_postfix(buffer.bytes)} bytes"
    match buffer.place:
        case rt.Place.ARENA:
            text += f", steps {buffer.first} to {buffer.last}"
        case rt.Place.PART:
            text += f", at {_postfix(buffer.offset)} of buffer {buffer.parent}"
        case rt.Place.WEIGHTS:
            text += f", at {_postfix(buffer.offset)}"
    return text + (f", segment {buffer.segment}" if buffer.segment else "")


def _code(kernel: rt.KernelCode) -> str:
    scratch = f"{kernel.shared_bytes} + {kernel.local_bytes} bytes of scratch"
    if kernel.scratch >= 0:
        scratch = f"scratch by the function at {kernel.scratch}"
    return f"{kernel.name} at {kernel.entry}, {scratch}" + (", parallel" if kernel.parallel else "")


def _step(step: rt.Step) -> str:
    match step:
        case rt.Call(kernel=kernel, buffers=buffers, sizes=sizes, wait=wait, label=label):
            sized = f", sizes {', '.join(map(str, sizes))}" if sizes else ""
            met = "wait, " if wait else ""
            numbers = ", ".join(map(str, buffers))
            return f"{met}call {kernel} with buffers {numbers}{sized}  # {shown(label)}"
        case rt.Jump(to=to, unless=unless, condition=condition):
            if condition:
                return f"go to {to} unless {_postfix(condition)}"
            return f"go to {to}" + (f" unless buffer {unless}" if unless >= 0 else "")
        case rt.Assign(size=size, value=value):
            return f"size {size} = {_postfix(value)}"
        case rt.Enter(segment=segment, read=read):
            told = ", ".join(f"size {s} of buffer {b}[{k}]" for s, b, k in read)
            return f"enter segment {segment}" + (f" with {told}" if told else "")
        case rt.Host(function=function, inputs=inputs, outputs=outputs, label=label):
            given, made = (", ".join(str(o.buffer) for o in side) for side in (inputs, outputs))
            return f"Python function {function} of buffers {given} → {made}  # {shown(label)}"


def _postfix(value: rt.SizeExpr) -> str:
    """An expression as it is stored: operands first."""
    words = []
    for op, operand in value:
        match op:
            case rt.SizeOp.CONST:
                words.append(str(operand))
            case rt.SizeOp.SIZE:
                words.append(f"s{operand}")
            case _:
                words.append(op.name.lower())
    return " ".join(words)
