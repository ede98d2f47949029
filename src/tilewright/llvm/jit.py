"""Native code in this process: LLVM text in, addresses of its functions out."""

from __future__ import annotations

import ctypes
import weakref
from contextlib import ExitStack
from typing import Any

from llvmlite import binding

from tilewright.llvm.machine import machine_for, parse
from tilewright.target import Target

__all__ = ["Function", "MachineCode", "load"]


class MachineCode:
    """Machine code in memory, which lives as long as this object: who has an address keeps it."""

    def __init__(self, engine: Any, resources: ExitStack) -> None:
        self._engine = engine
        # The engine must go before the context of its module. The garbage collector knows no
        # order, so the two are held from outside of any cycle that this object may be part of.
        self._release = weakref.finalize(self, resources.close)
        self._release.atexit = False

    def address(self, symbol: str) -> int:
        """Where a function is; 0 if there is none of this name."""
        return int(self._engine.get_function_address(symbol))


class Function:
    """A function of machine code, without result, as a callable; it keeps the code alive."""

    def __init__(self, code: MachineCode, symbol: str, *arguments: type) -> None:
        address = code.address(symbol)
        if not address:
            raise ValueError(f"there is no function `{symbol}`")
        self._code = code
        self._call = ctypes.CFUNCTYPE(None, *arguments)(address)

    def __call__(self, *values: int) -> None:
        """Call it; Python's lock is free while it runs."""
        self._call(*values)


def load(text: str, target: Target) -> MachineCode:
    """Compile LLVM text for this machine."""
    with ExitStack() as resources:
        context = resources.enter_context(binding.create_context())
        module = resources.enter_context(parse(text, context))
        machine = machine_for(target, jit=True)
        engine = resources.enter_context(binding.create_mcjit_compiler(module, machine))
        engine.finalize_object()
        return MachineCode(engine, resources.pop_all())
