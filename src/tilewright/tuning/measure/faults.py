"""Candidates that misbehave, for tests and benchmarks of runners: real machine code, with a fault.

A `FaultyBuilder` stands before another builder. Where it is told to, the kernel of a task gets
another body under the same interface: whoever runs it finds out the hard way, as with any other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from tilewright.model.kernel_store import decode, encode
from tilewright.model.kernels import KernelTask
from tilewright.pipeline import Compiled
from tilewright.target import Target
from tilewright.tuning.measure.build import Builder, Built
from tilewright.tuning.measure.trial import BUILD, OK

__all__ = ["FAULTS", "MEMORY_HUNGRY", "FaultyBuilder", "faulty"]

BODIES: Final = {
    "trap": "  call void @llvm.trap()\n  unreachable",
    "stray": "  store volatile i32 1, ptr inttoptr (i64 64 to ptr)\n  ret i32 0",
    "hang": "  br label %again\nagain:\n  br label %again",
    "refuse": "  ret i32 7",
    "silent": "  ret i32 0",
}
"""An instruction that is none; a store to nowhere; no end; an error; results that are not there."""

MEMORY_HUNGRY: Final = "hungry"
HUNGRY_BYTES: Final = 1 << 42
UNBUILT: Final = "unbuilt"
FAULTS: Final = (*BODIES, MEMORY_HUNGRY, UNBUILT)


def faulty(kernel: Compiled, fault: str, target: Target) -> Compiled:
    """A kernel with the same interface and a fault."""
    from tilewright.llvm.machine import object_of

    interface = kernel.interface
    if fault == MEMORY_HUNGRY:
        hungry = replace(interface, shared_bytes=HUNGRY_BYTES, local_bytes=0)
        return Compiled(kernel.code, hungry)
    text = (
        f"declare void @llvm.trap()\n"
        f"define i32 @{interface.symbol}(ptr %buffers, ptr %sizes, ptr %context) {{\n"
        f"entry:\n{BODIES[fault]}\n}}\n"
    )
    known = replace(interface, shared_bytes=0, local_bytes=0)  # there is no function to ask
    return Compiled(object_of(text, target), known)


class FaultyBuilder:
    """A builder that gives some kernels the fault that `choose` names for their task."""

    def __init__(self, builder: Builder, choose: Callable[[KernelTask], str | None]) -> None:
        self.builder, self.choose = builder, choose

    def build(self, task: KernelTask, target: Target, schedule: str = "draft") -> Built:
        """The kernel of a task, or one that only looks like it."""
        fault = self.choose(task)
        if fault == UNBUILT:
            return Built(b"", BUILD, "a fault on purpose")
        made = self.builder.build(task, target, schedule)
        if fault is None or made.status != OK:
            return made
        data = encode(faulty(decode(made.data), fault, target))
        assert data is not None
        return replace(made, data=data)

    def close(self) -> None:
        """End what the other builder has started."""
        self.builder.close()
