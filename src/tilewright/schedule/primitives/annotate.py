"""Put a note on a loop or block, for later stages to read."""

from __future__ import annotations

from tilewright.schedule.primitive import Edit, Plain, primitive
from tilewright.tensor import ir as tir
from tilewright.tensor.visit import replace_node

__all__ = ["annotate"]


@primitive
def annotate(func: tir.Func, target: tir.For | tir.Block, key: str, value: Plain) -> Edit:
    """Set the note `key` of a loop or block; `None` takes it away. Notes never change a result.

    Lowering reads `prefetch` on a loop: its iterations fetch what is read next of these parameters,
    or what is read then, `prefetch_ahead` parts further.

    Before:  for k in range(8): S(k)
    After:   for k in range(8, prefetch=("W",)): S(k)
    Requires: S001 there is such a loop or block; S005 the name means one of them only
    Example: s.annotate("k", "prefetch", ["W"])
    """
    kept = tuple((k, v) for k, v in target.notes if k != key)
    notes = kept if value is None else (*kept, (key, value))
    done = replace_node(func, target, target.with_fields(notes=notes))
    return Edit(done, harmless=True)
