"""Features of stores: one vector for each statement, as Ansor and MetaSchedule have them.

The groups and their order are those of MetaSchedule's `per_store_feature.cc` without what a CPU
does not have. They are computed from the loops as they will run (`nests.py`): multiply-adds are
counted, positions of annotated loops are told, contiguity goes over several dimensions, strides are
those of linear forms, layouts are rewritten, and the machine is in it. What the original lacks
follows: vector instructions, registers and spills, traffic between caches, tails, instructions.

Each statement has a vector of its own. The originals keep one for each buffer, the last; here what
a cut leaves over stores to the same buffer as the rest, and both matter.
"""

from __future__ import annotations

from math import log2, prod
from typing import Final

import numpy as np

from tilewright.schedule.recipes.work import extent_or_assumed
from tilewright.target import Target
from tilewright.tensor import ir as tir
from tilewright.tuning.features.buffers import BUFFERS, buffer_names, buffer_rows
from tilewright.tuning.features.footprints import Footprint, footprints
from tilewright.tuning.features.nests import Program, Statement, program_of
from tilewright.tuning.features.operations import KINDS
from tilewright.tuning.features.resources import (
    Vectors,
    cycles_of,
    instruction_kind,
    issued_by,
    registers_of,
    traffic_of,
    vectors_of,
)
from tilewright.tuning.features.scaling import Features, Vector, signed_log2, unscaled

__all__ = ["PROGRAM_NAMES", "STORE_NAMES", "program_features", "store_features"]

POSITIONS: Final = (
    *("none", "inner_spatial", "middle_spatial", "outer_spatial"),
    *("inner_reduce", "middle_reduce", "outer_reduce", "mixed"),
)
ANNOTATIONS: Final = {
    "vector": tir.LoopKind.VECTOR,
    "unroll": tir.LoopKind.UNROLLED,
    "parallel": tir.LoopKind.PARALLEL,
}
SAMPLES: Final = 10
"""Of the curve of arithmetic intensity."""
HEAVIEST: Final = 3
"""Statements of a program that have columns of their own."""
INSTRUCTIONS: Final = ("scalar", "vector", "dot", "tile")

Row = dict[str, float]
Touched = dict[tir.Buffer, list[Footprint]]


def store_features(program: Program, target: Target) -> Features:
    """A row for each statement, in program order."""
    total = sum(s.weight for s in program.statements)
    rows = [list(_row(program, s, target, total).values()) for s in program.statements]
    return Features(STORE_NAMES, np.array(rows, float).reshape(len(rows), len(STORE_NAMES)))


def program_features(func: tir.Func, target: Target) -> Vector:
    """A lowered program in one vector: the heaviest statements, and the sum over all of them."""
    program = program_of(func)
    if not program.statements:
        return np.zeros(len(PROGRAM_NAMES))
    rows = store_features(program, target).rows
    order = np.argsort([-s.weight for s in program.statements], kind="stable")[:HEAVIEST]
    heaviest = np.zeros((HEAVIEST, len(STORE_NAMES)))
    heaviest[: len(order)] = rows[order]
    sums = unscaled(rows).sum(axis=0)
    beside = [len(rows), signed_log2(program.prefetches), *_machine(target).values()]
    scaled = np.sign(sums) * np.log2(np.abs(sums) + 1)
    return np.concatenate([heaviest.ravel(), scaled, np.array(beside)])


def _row(program: Program, statement: Statement, target: Target, total: float) -> Row:
    line = target.machine.level(1).line_bytes
    touched = footprints(statement, line)
    vectors = vectors_of(statement, target)
    return {
        **_operations(statement),
        **_annotations(statement),
        **buffer_rows(program, statement, touched, line),
        **_curve(statement, touched),
        **_allocation(statement),
        **_around(statement, vectors),
        **_resources(statement, vectors, touched, target),
        "share_of_work": statement.weight / max(1.0, total),
        "tail": _tail(program, statement),
    }


def _operations(statement: Statement) -> Row:
    often, found = statement.iterations, statement.operations
    row = {f"float_{k}": float(n) for k, n in zip(KINDS, found.floats, strict=True)}
    row |= {f"int_{k}": float(n) for k, n in zip(KINDS, found.integers, strict=True)}
    row |= {"logic": float(found.logic), "select": float(found.selects)}
    return {name: signed_log2(n * often) for name, n in row.items()}


def _annotations(statement: Statement) -> Row:
    """Loops of each kind: how many, how long together, the innermost, and where they stand."""
    row: Row = {}
    for name, kind in ANNOTATIONS.items():
        places = statement.of_kind(kind)
        extents = [statement.loops[k].extent for k in places]
        row[f"{name}_count"] = signed_log2(len(places))
        row[f"{name}_product"] = signed_log2(prod(extents) if extents else 0)
        row[f"{name}_innermost"] = signed_log2(extents[-1] if extents else 0)
        here = _position(statement, places)
        row |= {f"{name}_{position}": float(position == here) for position in POSITIONS}
    return row


def _position(statement: Statement, places: list[int]) -> str:
    """Among loops that move the stored element, or among those that do not."""
    if not places:
        return "none"
    spatial = [slope != 0 for slope in statement.target.slopes]
    if len({spatial[k] for k in places}) > 1:
        return "mixed"
    alike = [k for k, moves in enumerate(spatial) if moves is spatial[places[-1]]]
    kind = "spatial" if spatial[places[-1]] else "reduce"
    if places[-1] == alike[-1]:
        return f"inner_{kind}"
    return f"outer_{kind}" if places[-1] == alike[0] else f"middle_{kind}"


def _curve(statement: Statement, touched: Touched) -> Row:
    """Operations by bytes, from the innermost loop outwards, sampled evenly in operations."""
    each = max(1, statement.operations.flops)
    depths = range(len(statement.loops), -1, -1)
    inside = [float(each * prod(x.extent for x in statement.loops[d:])) for d in depths]
    memory = [max(1.0, sum(f[d].size_bytes for f in touched.values())) for d in depths]
    intensity = [o / m for o, m in zip(inside, memory, strict=True)]
    at = [inside[-1] * (j + 1) / SAMPLES for j in range(SAMPLES)]
    values = np.interp(at, inside, intensity)
    return {f"intensity_{j}": signed_log2(float(v)) for j, v in enumerate(values)}


def _allocation(statement: Statement) -> Row:
    buffer = statement.store.buffer
    elements = prod(extent_or_assumed(d) for d in buffer.shape)
    outer = prod(loop.extent for loop in statement.loops[: statement.alloc_depth])
    values = {
        "alloc_bytes": elements * buffer.dtype.size_bytes,
        "alloc_product": elements * outer,
        "alloc_outer": outer,
        "alloc_inner": statement.iterations / outer,
    }
    return {name: signed_log2(value) for name, value in values.items()}


def _around(statement: Statement, vectors: Vectors) -> Row:
    unrolled = [statement.loops[k].extent for k in statement.of_kind(tir.LoopKind.UNROLLED)]
    return {
        "iterations": signed_log2(statement.iterations),
        "loops": signed_log2(len(statement.loops)),
        "copies": signed_log2(prod(unrolled) * vectors.pieces),
    }


def _resources(statement: Statement, vectors: Vectors, touched: Touched, target: Target) -> Row:
    machine = target.machine
    registers = registers_of(statement, vectors, target)
    traffic = traffic_of(statement, touched, machine)
    issued = issued_by(statement, vectors)
    unique = sum(f[0].size_bytes for f in touched.values())
    chunks = prod(statement.loops[k].extent for k in statement.of_kind(tir.LoopKind.PARALLEL))
    kind = instruction_kind(statement, vectors)
    row = {
        "cycles": signed_log2(cycles_of(issued, registers, traffic, machine)),
        "vector_instructions": signed_log2(issued.total),
        "lanes": signed_log2(vectors.lanes),
        "lanes_filled": vectors.filled,
        "register_tile": signed_log2(registers.tile),
        "registers_share": registers.alive / target.vector_registers,
        "registers_spilled": signed_log2(registers.spilled),
        "chunks_per_core": signed_log2(chunks / target.cores),
        "accumulates": float(statement.accumulates),
    }
    for number, moved in enumerate(traffic, start=1):
        size = machine.level(number).size_bytes or machine.levels[-2].size_bytes
        row[f"into_l{number}"] = signed_log2(moved)
        row[f"share_of_l{number}"] = log2((unique + 1) / size)
    return row | {f"is_{k}": float(k == kind) for k in INSTRUCTIONS}


def _tail(program: Program, statement: Statement) -> float:
    """The part of all that is stored alike to this buffer which is not in the longest nest."""
    alike = [
        s.iterations
        for s in program.statements
        if s.store.buffer is statement.store.buffer
        and s.operations.of_values == statement.operations.of_values
    ]
    return 1 - max(alike) / sum(alike)


def _machine(target: Target) -> Row:
    machine = target.machine
    row = {
        "vector_bytes": target.vector_bytes,
        "vector_registers": target.vector_registers,
        "cores": target.cores,
        "fma_per_cycle": machine.fma_per_cycle,
        "fma_latency": machine.fma_latency,
        "memory_read": machine.memory.read,
    }
    row |= {f"l{n}_bytes": machine.level(n).size_bytes for n in (1, 2, 3)}
    return {f"machine_{name}": signed_log2(value) for name, value in row.items()}


def _store_names() -> tuple[str, ...]:
    names = [f"float_{k}" for k in KINDS] + [f"int_{k}" for k in KINDS] + ["logic", "select"]
    for kind in ANNOTATIONS:
        names += [f"{kind}_{part}" for part in ("count", "product", "innermost", *POSITIONS)]
    names += buffer_names(BUFFERS)
    names += [f"intensity_{j}" for j in range(SAMPLES)]
    names += ["alloc_bytes", "alloc_product", "alloc_outer", "alloc_inner"]
    names += [
        "iterations",
        "loops",
        "copies",
        "cycles",
        "vector_instructions",
        "lanes",
        "lanes_filled",
    ]
    names += ["register_tile", "registers_share", "registers_spilled", "chunks_per_core"]
    names += ["accumulates"]
    names += [f"{part}_l{n}" for n in (1, 2, 3) for part in ("into", "share_of")]
    return (*names, *(f"is_{k}" for k in INSTRUCTIONS), "share_of_work", "tail")


STORE_NAMES: Final = _store_names()
"""Columns of one statement."""

_MACHINE_NAMES = (
    *("vector_bytes", "vector_registers", "cores", "fma_per_cycle", "fma_latency", "memory_read"),
    *("l1_bytes", "l2_bytes", "l3_bytes"),
)
PROGRAM_NAMES: Final = (
    *(f"store{k}_{name}" for k in range(HEAVIEST) for name in STORE_NAMES),
    *(f"sum_{name}" for name in STORE_NAMES),
    *("stores", "prefetches"),
    *(f"machine_{name}" for name in _MACHINE_NAMES),
)
"""Columns of a program."""
