"""Is there code for everything that a scheduled program uses: functions, and instructions?"""

from __future__ import annotations

from tilewright.errors import Code, TargetError
from tilewright.intrin.functions import EXPANSIONS, NATIVE
from tilewright.target import Target
from tilewright.tensor import ir as tir
from tilewright.tensor.functions import MARKS
from tilewright.tensor.visit import walk, walk_stmts

__all__ = ["require_features", "require_functions"]

T202 = Code("T202", "block `{block}` uses an instruction that `{target}` does not have")

T203 = Code("T203", "there is no native code for the function `{function}` yet")


def require_functions(func: tir.Func) -> None:
    """Refuse a program that calls a function which only the interpreter knows (T203)."""
    known = {*EXPANSIONS, *NATIVE, *MARKS, "thread", "threads"}
    for stmt in walk_stmts(func):
        for part in walk(stmt) if type(stmt) is tir.Store else ():
            if type(part) is tir.Call and part.name not in known and part.name[:5] != "llvm.":
                facts = {"function": part.name, "known": ", ".join(sorted({*EXPANSIONS, *NATIVE}))}
                hint = (
                    "give it an expansion with `tilewright.intrin.define_function`, "
                    "or write it in terms of the functions that are known"
                )
                raise TargetError(T203, facts, program=func, marks={"call": stmt}, hint=hint)


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
