"""Does a target have the instructions that a scheduled program uses?"""

from __future__ import annotations

from tilewright.errors import Code, TargetError
from tilewright.target import Target
from tilewright.tensor import ir as tir
from tilewright.tensor.visit import walk_stmts

__all__ = ["require_features"]

T202 = Code("T202", "block `{block}` uses an instruction that `{target}` does not have")


def require_features(func: tir.Func, target: Target) -> None:
    """Refuse a program with tensor instructions that the target lacks (T202)."""
    for stmt in walk_stmts(func):
        if type(stmt) is not tir.Block or not stmt.notes:
            continue
        notes = dict(stmt.notes)
        needed = notes.get("requires", ())
        missing = set(needed if isinstance(needed, tuple) else ()) - target.features
        if missing:
            facts = {
                "target": target.name,
                "instruction": notes.get("intrinsic"),
                "missing": ", ".join(sorted(map(str, missing))),
            }
            hint = "choose another target, or an instruction that it has"
            raise TargetError(T202, facts, program=func, marks={"block": stmt}, hint=hint)
