"""Native code in this process: LLVM text in, addresses of its functions out."""

from __future__ import annotations

from typing import Any

from llvmlite import binding

from tilewright.llvm.machine import machine_for, optimise, parse
from tilewright.target import Target

__all__ = ["MachineCode", "load"]


class MachineCode:
    """Machine code in memory, which lives as long as this object: who has an address keeps it."""

    def __init__(self, engine: Any) -> None:
        self._engine = engine

    def address(self, symbol: str) -> int:
        """Where a function is; 0 if there is none of this name."""
        return int(self._engine.get_function_address(symbol))


def load(text: str, target: Target) -> MachineCode:
    """Compile LLVM text for this machine."""
    module, machine = parse(text), machine_for(target, jit=True)
    optimise(module, machine)
    engine = binding.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    return MachineCode(engine)
