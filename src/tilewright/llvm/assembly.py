"""Reading assembly: spilled registers and innermost loops, by the remarks that LLVM adds to it."""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["Spills", "count_spills", "innermost_loops", "instructions"]


@dataclass(frozen=True, slots=True)
class Spills:
    """Registers stored to the stack for want of registers, and loaded back."""

    stores: int
    reloads: int


def count_spills(assembly: str) -> Spills:
    """Spills and reloads, folded ones included.

    On AArch64 and RISC-V LLVM marks the saving of callee-saved registers in the same way: there,
    count inside of `innermost_loops`.
    """
    return Spills(
        stores=len(re.findall(r"-byte (?:Folded )?Spill", assembly)),
        reloads=len(re.findall(r"-byte (?:Folded )?Reload", assembly)),
    )


def innermost_loops(assembly: str) -> list[str]:
    """The text of each loop that has no loop inside: from its header to the jump back to it."""
    loops = []
    lines = assembly.splitlines()
    for number, line in enumerate(lines):
        label = re.match(r"(\.L\w+):", line)
        if label is None or not _is_header(lines[number : number + 4]):
            continue
        jump = re.compile(rf"\s.*{re.escape(label[1])}\b")
        back = [n for n in range(number + 1, len(lines)) if jump.match(lines[n])]
        if back:
            loops.append("\n".join(lines[number : back[0] + 1]))
    return loops


def _is_header(lines: list[str]) -> bool:
    """Remarks follow the label, some on lines of their own."""
    head = [lines[0], *(line for line in lines[1:] if re.match(r"\s*[#;@]|\s*//", line))]
    return any("Inner Loop Header" in line for line in head)


def instructions(assembly: str) -> list[str]:
    """Instructions only: no labels, directives or remarks."""
    kept = (re.split(r"\s*(?:#|//)", line)[0].strip() for line in assembly.splitlines())
    return [line for line in kept if line and not line.endswith(":") and not line.startswith(".")]
