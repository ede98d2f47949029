"""LLVM's machinery for a target: parsing, assembly and object code.

No pass of the standard pipeline is run. What they would do for loops (registers for small buffers,
numbering values, hoisting, unrolling, vectorising) has been done when the text was written, and
code generation does the rest. Besides the time, a pass builder of llvmlite 0.50 costs 1.8 KB that
are never given back, and must not be used twice: what a run registers in it refers to its stack.

Calls into LLVM release Python's lock; every module has a context of its own, so that kernels can be
compiled in parallel threads.
"""

from __future__ import annotations

import re
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from llvmlite import binding

from tilewright.errors import Code, InternalError, ParseError
from tilewright.target import Target
from tilewright.tensor.text.source import Source

__all__ = ["assembly_of", "machine_for", "object_of", "parse", "parsed"]
__all__ += ["require_accepted"]

I110 = Code("I110", "LLVM does not accept a generated module: {problem}")
P202 = Code("P202", "LLVM does not accept the text")

LEVEL: Final = 3
"""Effort of code generation."""

_lock = threading.Lock()
_state = {"ready": False}


def _initialize() -> None:
    with _lock:
        if not _state["ready"]:
            binding.initialize_all_targets()
            binding.initialize_all_asmprinters()
            _state["ready"] = True


def machine_for(target: Target, *, jit: bool = False) -> Any:
    """A new target machine; an engine takes its machine over, so each needs its own."""
    if not _state["ready"]:
        _initialize()
    abi = "lp64d" if target.arch == "riscv64" and "d" in target.features else ""
    return binding.Target.from_triple(target.triple).create_target_machine(
        cpu=target.cpu,
        features=target.llvm_features,
        opt=LEVEL,
        reloc="pic",
        codemodel="small",
        jit=jit,
        abiname=abi,
    )


@contextmanager
def parsed(text: str) -> Iterator[Any]:
    """The module that `text` describes, in a context of its own, while it is needed.

    A context must outlive its module; left to the garbage collector, either may go first.
    """
    with binding.create_context() as context, parse(text, context) as module:
        yield module


def parse(text: str, context: Any) -> Any:
    """The module that `text` describes; its context is the caller's to close, after the module."""
    try:
        module = binding.parse_assembly(text, context)
        module.verify()
    except RuntimeError as problem:
        facts = {"problem": str(problem).strip(), "module": _saved(text)}
        raise InternalError(I110, facts) from None
    return module


def require_accepted(text: str) -> None:
    """Refuse LLVM text of a user's own (P202): what is wrong with it is no bug of tilewright."""
    with binding.create_context() as context:
        try:
            with binding.parse_assembly(text, context) as module:
                module.verify()
        except RuntimeError as problem:
            raise _refused(text, str(problem).strip()) from None


def _refused(text: str, problem: str) -> ParseError:
    hint = "mend the text here, or write the stage out again"
    place = re.search(r"<string>:(\d+):(\d+): error: (.*)", problem)
    if place is None:
        return ParseError(P202, {"found": problem}, hint=hint)
    at = int(place[1]), int(place[2])
    return Source(text).error(P202, at, hint, found=place[3])


def _saved(text: str) -> str:
    """A file that keeps a refused module for the report."""
    with tempfile.NamedTemporaryFile(
        "w", prefix="tilewright-", suffix=".ll", delete=False, encoding="utf-8"
    ) as file:
        file.write(text)
    return str(Path(file.name))


def object_of(text: str, target: Target) -> bytes:
    """LLVM text as object code for any target."""
    with parsed(text) as module, machine_for(target) as machine:
        return bytes(machine.emit_object(module))


def assembly_of(text: str, target: Target) -> str:
    """LLVM text as assembly for any target, with LLVM's remarks on loops and spills."""
    with parsed(text) as module, machine_for(target) as machine:
        machine.set_asm_verbosity(True)
        return str(machine.emit_assembly(module))
