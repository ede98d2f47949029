"""Fold a consumer into the block that produces its input."""

from __future__ import annotations

from tilewright.errors import Code, ScheduleError
from tilewright.schedule.accesses import Ranges, loads_of, tidied
from tilewright.schedule.dataflow import Outline, Place, edited, without_alloc
from tilewright.schedule.domains import solved
from tilewright.schedule.moves import cannot_pass
from tilewright.schedule.primitive import Edit, primitive
from tilewright.schedule.primitives.compute_inline import require_plain
from tilewright.tensor import ir as tir
from tilewright.tensor.regions import block_regions, point
from tilewright.tensor.visit import rewrite, substitute

__all__ = ["reverse_compute_inline"]

S233 = Code("S233", "block `{block}` has no producer that it could be folded into")
S234 = Code("S234", "`{buffer}` is also read by `{other}`")
S235 = Code("S235", "block `{block}` does not read each element of `{buffer}` exactly once")


@primitive
def reverse_compute_inline(func: tir.Func, block: tir.Block) -> Edit:
    """Let the producer of a block's input compute the block's result at once.

    If the block reads several computed buffers, it is folded into the one that is computed last.

    Before:  for i in range(64): B[i] = A[i] * 2
             for i in range(64): C[i] = max(B[i], 0)
    After:   for i in range(64): C[i] = max(A[i] * 2, 0)
    Requires: S201 the block is not inside another block; S203 block and producer are the only
        writers of their buffers; S208 the block's other inputs are complete before the nest of the
        producer; S230 both compute one plain value per element; S233 the input is computed by some
        block and is no output; S234 nothing else reads it; S235 the block reads each element of it
        exactly once
    Example: s.reverse_compute_inline("relu")
    """
    outline = Outline(func)
    place = outline.place(block)
    store = require_plain(outline, place)
    outline.require_sole_writer(place, store.buffer)
    producer, middle = _producer(outline, place)
    made = require_plain(outline, producer)
    outline.require_sole_writer(producer, middle)
    _require_only_reader(outline, place, middle)
    _require_inputs_first(outline, place, producer, middle)
    at = _iterators(outline, place, producer, middle)
    value = rewrite(
        substitute(store.value, at),
        lambda n: made.value if isinstance(n, tir.Load) and n.buffer is middle else None,
    )
    ranges = Ranges.of_block(producer.block)
    where = ranges.simplify_all(tuple([substitute(i, at) for i in store.indices]))
    body = tir.Store(store.buffer, where, tidied(value, ranges))
    reads, writes = block_regions(producer.block.iters, body)
    folded = producer.block.with_fields(reads=reads, writes=writes, body=body)
    new = edited(func, (outline.own(place), ()), (producer.block, (folded,)))
    return Edit(without_alloc(new, middle))


def _producer(outline: Outline, place: Place) -> tuple[Place, tir.Buffer]:
    """The last block that computes an intermediate buffer that the block reads (S233)."""
    found: list[tuple[int, Place, tir.Buffer]] = []
    for region in place.block.reads:
        if not any(region.buffer is p for p in outline.func.params):
            writers = [w for w in outline.writers(region.buffer) if w.number < place.number]
            found += [(w.number, w, region.buffer) for w in writers]
    if not found:
        raise ScheduleError(
            S233,
            {"expected": "a block that reads an intermediate buffer"},
            program=outline.func,
            marks={"block": place.block},
            hint="name a block that reads what another block computes",
        )
    _, producer, buffer = max(found, key=lambda item: item[0])
    return producer, buffer


def _require_only_reader(outline: Outline, place: Place, buffer: tir.Buffer) -> None:
    for reader in outline.readers(buffer):
        if reader is not place:
            raise ScheduleError(
                S234,
                {"other": reader.block.name},
                program=outline.func,
                marks={"block": place.block, "buffer": buffer, "reader": reader.block},
                hint="use `compute_inline` on the producer, which serves all readers",
            )


def _require_inputs_first(
    outline: Outline, place: Place, producer: Place, middle: tir.Buffer
) -> None:
    """S208: everything else that the block reads is complete where the producer runs."""
    top = outline.top(producer)
    start = min((p.number for p in outline.inside(top)), default=producer.number)
    needed = [r.buffer for r in place.block.reads if r.buffer is not middle]
    touched = [r.buffer for r in place.block.writes]
    for other in outline.places[start : place.number]:
        late = [b for b in needed if other.writes(b)] + [b for b in touched if other.reads(b)]
        if late:
            hint = "compute the other input before, or use `reverse_compute_at`"
            raise cannot_pass(outline, place, late[0], other, hint)


def _iterators(
    outline: Outline, place: Place, producer: Place, middle: tir.Buffer
) -> dict[tir.Var, tir.Expr]:
    """The block's iterators for the element that one iteration of the producer writes (S235)."""
    iters = {it.var: it.extent for it in place.block.iters}
    reads = [load.indices for load in loads_of(place.block.body, middle)]
    assert isinstance(producer.block.body, tir.Store)
    written = producer.block.body.indices
    analyzer = Ranges.of_block(producer.block).analyzer
    found = None
    if all(indices == reads[0] for indices in reads):
        found = solved(iters, point(middle, reads[0]), written, analyzer)
    if found is not None and all(
        analyzer.prove((value >= 0) & (value < iters[var])) for var, value in found.items()
    ):
        return found
    raise ScheduleError(
        S235,
        {"producer": producer.block.name},
        program=outline.func,
        marks={"block": place.block, "buffer": middle, "producing block": producer.block},
        hint="use `compute_inline` on the producer, or `reverse_compute_at`",
    )
