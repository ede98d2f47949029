"""Random schedule steps for Hypothesis, drawn from all registered primitives.

Steps look legal: they name what is there, and follow the structure (chains for `reorder`, loops of
the block's own nest, covers that fill). Many are still refused, which is part of what is tested;
a primitive that is not known here gets arguments by the kinds of its parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from hypothesis import strategies as st

from tilewright.errors import UserError
from tilewright.schedule import PRIMITIVES, Schedule, Step
from tilewright.schedule.handles import Names, names_of
from tilewright.schedule.nests import Chain, blocks_under, chain_from, loops_around
from tilewright.schedule.primitive import Parameter, Plain
from tilewright.tensor import ir as tir
from tilewright.tensor.visit import free_vars

__all__ = ["MAX_LOOPS", "applicable_steps", "apply_steps"]

MAX_LOOPS = 24  # a program with more loops is big enough: only steps that add none are drawn

Arguments = dict[str, Plain]


def applicable_steps(
    schedule: Schedule, primitives: tuple[str, ...] | None = None
) -> st.SearchStrategy[Step]:
    """Steps that look legal for the program as it is now."""
    names = names_of(schedule.func)
    known = tuple(PRIMITIVES) if primitives is None else primitives
    if len(names.loops) > MAX_LOOPS:
        known = tuple(p for p in known if p in _SETTLING) or known
    return _steps(names, known)


_SETTLING = ("unroll", "vectorize", "parallel", "annotate", "reorder", "fuse")


def apply_steps(
    draw: Callable[[st.SearchStrategy[Step]], Step],
    schedule: Schedule,
    count: int,
    primitives: tuple[str, ...] | None = None,
) -> tuple[int, int]:
    """Draw `count` steps and apply them; how many were accepted and refused."""
    refused = 0
    for _ in range(count):
        step = draw(applicable_steps(schedule, primitives))
        try:
            schedule.apply(step)
        except UserError as error:
            str(error)  # rendering must not fail either
            refused += 1
    return count - refused, refused


@st.composite
def _steps(draw: st.DrawFn, names: Names, known: tuple[str, ...]) -> Step:
    primitive = draw(st.sampled_from(known))
    make = _MAKERS.get(primitive)
    args = make(draw, names) if make is not None and names.loops else None
    if args is None:
        args = {
            p.name: _argument(draw, names, p)
            for p in PRIMITIVES[primitive].parameters
            if p.required or p.variadic or draw(st.booleans())
        }
    return Step.of(primitive, **args)


def _one(draw: st.DrawFn, names: Mapping[str, object]) -> str:
    return draw(st.sampled_from(list(names))) if names else "none"


def _argument(draw: st.DrawFn, names: Names, parameter: Parameter) -> Plain:
    """Some value of the parameter's kind."""
    if parameter.name == "scope":
        return draw(st.sampled_from([s.value for s in tir.Scope]))
    kinds: dict[str, Callable[[], Plain]] = {
        "tir.For": lambda: _one(draw, names.loops),
        "tir.Block": lambda: _one(draw, names.blocks),
        "tir.Buffer": lambda: _one(draw, names.buffers),
        "tir.For | tir.Block": lambda: _one(draw, {**names.loops, **names.blocks}),
        "int": lambda: draw(st.integers(0, 4)),
        "bool": lambda: draw(st.booleans()),
        "str": lambda: draw(st.sampled_from(["a", "b"])),
        "Plain": lambda: draw(st.sampled_from([1, "x", None])),
        "Tiles": lambda: draw(st.integers(1, 8)),
        "tuple[int, ...]": lambda: tuple(draw(st.lists(st.integers(0, 4), max_size=4))),
        "tuple[str, ...]": lambda: (),
    }
    make = kinds.get(parameter.kind, lambda: None)
    if parameter.variadic:
        return tuple(dict.fromkeys(make() for _ in range(draw(st.integers(1, 3)))))
    return make()


def _chain(draw: st.DrawFn, names: Names, least: int = 1) -> Chain:
    """A chain of at least so many loops, if there is one."""
    chains = [chain_from(loop) for loop in names.loops.values()]
    long = [chain for chain in chains if len(chain.loops) >= least]
    return draw(st.sampled_from(long or chains))


def _split(draw: st.DrawFn, names: Names) -> Arguments:
    loop = names.loops[_one(draw, names.loops)]
    extent = tir.int_value(loop.extent)
    if extent is None or extent < 3 or draw(st.booleans()):
        tile = draw(st.integers(1, 8))
        if tile == 1 or draw(st.booleans()):
            return {"loop": loop.var.name, "tiles": tile}
        smaller = sorted(draw(st.sets(st.integers(1, tile - 1), max_size=3)), reverse=True)
        return {"loop": loop.var.name, "tiles": (tile, *smaller)}
    tiles: list[tuple[int, int]] = []
    while extent:
        size = draw(st.integers(1, extent))
        count = draw(st.integers(1, extent // size))
        tiles.append((size, count))
        extent -= size * count
    return {"loop": loop.var.name, "tiles": tuple(tiles)}


def _split_guarded(draw: st.DrawFn, names: Names) -> Arguments:
    return {"loop": _one(draw, names.loops), "tile": draw(st.integers(1, 8))}


def _fuse(draw: st.DrawFn, names: Names) -> Arguments:
    loops = _chain(draw, names, 2).loops
    return {"loops": tuple(p.var.name for p in loops[: draw(st.integers(2, 3))])}


def _reorder(draw: st.DrawFn, names: Names) -> Arguments:
    loops = [p.var.name for p in _chain(draw, names, 2).loops]
    return {"loops": tuple(draw(st.permutations(loops)))}


def _innermost(draw: st.DrawFn, names: Names) -> Arguments:
    return {"loop": _chain(draw, names).loops[-1].var.name}


def _folding(names: Names) -> dict[str, tir.Block]:
    """The blocks with a start value, or all."""
    return {n: b for n, b in names.blocks.items() if b.init is not None} or names.blocks


def _block_and_loop(draw: st.DrawFn, names: Names) -> Arguments:
    folding = _folding(names)
    block = folding[_one(draw, folding)]
    loops = loops_around(names.func, block)
    if not loops:
        return {"block": block.name, "loop": _one(draw, names.loops)}
    return {"block": block.name, "loop": draw(st.sampled_from(loops)).var.name}


def _reducing(draw: st.DrawFn, names: Names) -> Arguments:
    """A reduction, and a loop that it runs over."""
    folding = _folding(names)
    block = folding[_one(draw, folding)]
    kinds = zip(block.iters, block.bindings, strict=True)
    driven = [b for it, b in kinds if it.kind is tir.IterKind.REDUCE]
    loops = [
        p for p in loops_around(names.func, block) if any(p.var in free_vars(b) for b in driven)
    ]
    if not loops:
        return {"loop": _one(draw, names.loops)}
    return {"loop": draw(st.sampled_from(loops)).var.name, "axis": draw(st.integers(-1, 1))}


def _padding(draw: st.DrawFn, names: Names) -> Arguments:
    folding = _folding(names)
    block = folding[_one(draw, folding)]
    return {"block": block.name, "padding": tuple(draw(st.integers(1, 4)) for _ in block.iters)}


def _instruction(draw: st.DrawFn, names: Names) -> Arguments:
    """A loop nest whose extents the instruction is made for."""
    loop = names.loops[_one(draw, names.loops)]
    extents = [tir.int_value(p.extent) or 1 for p in chain_from(loop).loops]
    if len(extents) == 3 and draw(st.booleans()):
        m, n, k = draw(st.permutations(extents))
        return {"target": loop.var.name, "intrinsic": f"f32.gemm({m},{n},{k})"}
    return {"target": loop.var.name, "intrinsic": f"f32.dot({extents[0]})"}


def _scope(draw: st.DrawFn, names: Names) -> Arguments:
    own = {n: b for n, b in names.buffers.items() if b not in names.func.params}
    scope = draw(st.sampled_from([s.value for s in tir.Scope]))
    return {"buffer": _one(draw, own or names.buffers), "scope": scope}


def _reader(draw: st.DrawFn, names: Names) -> Arguments:
    """A block, and a buffer that it reads."""
    block = names.blocks[_one(draw, names.blocks)]
    found = [r.buffer.name for r in block.reads]
    return {
        "block": block.name,
        "buffer": draw(st.sampled_from(found)) if found else _one(draw, names.buffers),
    }


def _moved(draw: st.DrawFn, names: Names) -> Arguments:
    """A block, and a loop around another block."""
    block = _one(draw, names.blocks)
    others = [n for n, p in names.loops.items() if all(b.name != block for b in blocks_under(p))]
    return {"block": block, "loop": draw(st.sampled_from(others or list(names.loops)))}


def _iterators(draw: st.DrawFn, names: Names) -> Arguments:
    block = names.blocks[_one(draw, names.blocks)]
    kind = draw(st.sampled_from(tir.IterKind))
    own = [it.var.name for it in block.iters if it.kind is kind] or [
        it.var.name for it in block.iters
    ]
    first = draw(st.integers(0, max(0, len(own) - 2)))
    return {"block": block.name, "iterators": tuple(own[first : first + 2])}


def _iterator(draw: st.DrawFn, names: Names) -> Arguments:
    block = names.blocks[_one(draw, names.blocks)]
    own = [it.var.name for it in block.iters] or ["none"]
    size = draw(st.integers(1, 4))
    return {"block": block.name, "iterator": draw(st.sampled_from(own)), "size": size}


def _rounding(draw: st.DrawFn, names: Names) -> Arguments:
    block = names.blocks[_one(draw, names.blocks)]
    own = [it.var.name for it in block.iters] or ["none"]
    return {
        "block": block.name,
        "iterator": draw(st.sampled_from(own)),
        "multiple": draw(st.integers(1, 5)),
    }


def _of_rank(draw: st.DrawFn, names: Names, least: int) -> tir.Buffer:
    """A buffer of at least so many dimensions, if there is one."""
    fitting = [b for b in names.buffers.values() if len(b.shape) >= least]
    return draw(st.sampled_from(fitting or list(names.buffers.values())))


def _dimension(*others: str, least: int = 1) -> Callable[[st.DrawFn, Names], Arguments]:
    """Arguments for a step on one dimension of a buffer, and some small numbers."""

    def make(draw: st.DrawFn, names: Names) -> Arguments:
        buffer = _of_rank(draw, names, least)
        dim = draw(st.integers(0, max(0, len(buffer.shape) - least)))
        numbers = {name: draw(st.integers(1, 4)) for name in others}
        return {"buffer": buffer.name, "dim": dim, **numbers}

    return make


def _order(draw: st.DrawFn, names: Names) -> Arguments:
    buffer = _of_rank(draw, names, 2)
    return {"buffer": buffer.name, "order": tuple(draw(st.permutations(range(len(buffer.shape)))))}


_MAKERS: dict[str, Callable[[st.DrawFn, Names], Arguments]] = {
    "split": _split,
    "split_guarded": _split_guarded,
    "fuse": _fuse,
    "reorder": _reorder,
    "vectorize": _innermost,
    "decompose_reduction": _block_and_loop,
    "rfactor": _reducing,
    "pad_einsum": _padding,
    "tensorize": _instruction,
    "fuse_iters": _iterators,
    "split_iter": _iterator,
    "round_up": _rounding,
    "set_scope": _scope,
    "cache_read": _reader,
    "reindex": _reader,
    "layout_split": _dimension("factor"),
    "layout_fuse": _dimension(least=2),
    "layout_pad": _dimension("before", "after"),
    "layout_unfold": _dimension("tile", "stride"),
    "layout_reorder": _order,
    "compute_at": _moved,
    "reverse_compute_at": _moved,
}
