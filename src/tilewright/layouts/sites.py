"""Sites: the kernels of a graph, and in which forms each of them can read and write.

A site is a group of nodes that run as one kernel. What an anchor reads (its `data`) may have one
form and the result another; what is read place by place beside it has the form of the result. Sites
that know nothing of forms read and write everything as it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from tilewright.graph.grouping import group_nodes
from tilewright.graph.groups import Group, is_view
from tilewright.graph.ir import Array, Graph, Node, Value
from tilewright.graph.ops import Concat, Map, Reduce, Remap, Transpose
from tilewright.graph.ops.window import Conv, ConvTranspose, Pool
from tilewright.graph.passes.movements import channel_range, keeps_channels
from tilewright.graph.sizes import fixed, same_shape, sized
from tilewright.layouts.algorithms import (
    DIRECT,
    Algorithm,
    algorithms_of,
    lines_of,
    shape_of,
)
from tilewright.layouts.costs import (
    ConvShape,
    Machine,
    Picture,
    converted_cycles,
    far_part,
    laid_out_cycles,
    turned_cycles,
)
from tilewright.layouts.flatten import is_free_order
from tilewright.layouts.forms import FIRST, LAST, Form
from tilewright.layouts.halos import halo_wishes, joined_cycles, with_halo
from tilewright.layouts.recorded import with_recorded
from tilewright.layouts.site import Alternative, Settings, Site, cuts_blocks, is_small
from tilewright.layouts.timing import Timing, with_times
from tilewright.layouts.unsized import unsized_ways
from tilewright.layouts.windows import Window, window_cycles

__all__ = ["Alternative", "Settings", "Site", "is_small", "sites_of"]


def sites_of(graph: Graph, settings: Settings) -> list[Site]:
    """All sites in the order of the graph."""
    weights = sum(array.nbytes for array in graph.constants.values())
    far = far_part(weights, settings.machine.target)
    machine = replace(settings.machine, far_weights=far, other_weights=weights)
    settings = replace(settings, machine=machine)
    groups = group_nodes(graph)
    consumers = graph.consumers()
    found = [_site(graph, g, g.outputs(graph, consumers), settings) for g in groups]
    found += [_view(graph, node, consumers, settings) for node in graph.nodes if is_view(node)]
    found = with_recorded(found, settings.times, machine)
    found = [with_times(site, settings.times, machine) for site in found]
    timing = Timing.of(settings.times, found, machine)
    found = [timing.priced(site) for site in found]
    wishes = {v: h for v, h in halo_wishes(found).items() if v not in graph.outputs}
    found = [with_halo(site, wishes, settings) for site in found]
    found = [_as_measured(timing.with_halos(site), settings) for site in found]
    place = {node: k for k, node in enumerate(graph.nodes)}
    return sorted(found, key=lambda site: place[site.nodes[-1]])


def _view(
    graph: Graph, node: Node, consumers: Mapping[Value, Sequence[Node]], settings: Settings
) -> Site:
    """No work; what is put in a row for a classifier has any form, and the weights follow."""
    plain = Site((node,), node.outputs)
    if not is_free_order(graph, node, consumers.get(node.outputs[0], ())):
        return plain
    (x,) = node.inputs
    if is_small(x):
        return plain
    found = (Alternative(f, LAST) for f in settings.forms if f.misfit(x.shape) is None)
    return replace(plain, data=(x,), alternatives=tuple(found))


def _as_measured(site: Site, settings: Settings) -> Site:
    """What was measured takes the place of what was predicted."""
    if not settings.measured:
        return site
    rank, workload = site.results[0].rank, site.workload
    known: list[Alternative] = []
    for own in site.alternatives:  # whose halos are those of this graph
        found = settings.measured.get((workload, own.key(rank)), own)
        known.append(replace(own, loops=found.loops, cycles=found.cycles))
    return replace(site, alternatives=tuple(known))


def _site(graph: Graph, group: Group, outputs: Sequence[Value], settings: Settings) -> Site:
    plain = Site(tuple(group.nodes), tuple(outputs), group=group)
    if len(outputs) != 1:
        return plain
    (result,) = outputs
    if result.rank < 3:
        return plain
    anchor = next((n for n in group.nodes if isinstance(n.op, Conv | ConvTranspose | Pool)), None)
    if sized(result.shape[1:]) is None:
        return plain if anchor is None else _unsized(graph, plain, anchor, settings)
    if anchor is not None and isinstance(anchor.op, Conv):
        return _convolution(graph, plain, anchor, result, settings)
    if anchor is not None and isinstance(anchor.op, ConvTranspose):
        return _spreading(graph, plain, anchor, settings)
    if result in graph.outputs:
        return _with_border(graph, plain, settings)
    if anchor is not None:
        return _following(graph, plain, [anchor.inputs[0]], result, settings)
    if all(_is_local(node) for node in group.nodes):
        return _following(graph, plain, [], result, settings)
    return _with_border(graph, plain, settings)


def _is_local(node: Node) -> bool:
    """Whether a node works place by place, or keeps the channels of each place together."""
    match node.op:
        case Map():
            return True
        case Concat(axis=along):
            return along == node.output.rank - 1
        case Remap():
            x = node.inputs[0]
            return keeps_channels(node.op, x) or channel_range(node.op, x) is not None
        case Reduce(axes=axes):
            rank = node.inputs[0].rank
            return set(axes) <= set(range(1, rank - 1))
    return False


def _following(
    graph: Graph, plain: Site, data: Sequence[Value], result: Value, settings: Settings
) -> Site:
    """A site that reads and writes in one form, whichever it is; what is small has none."""
    inner = {v for node in plain.nodes for v in node.outputs}
    wide = [v for v in plain.reads if v not in graph.constants and not is_small(v)]
    every, small = [*wide, result, *inner], is_small(result)
    if (small and not wide) or any(v.rank != result.rank for v in every):
        return plain
    forms = [f for f in settings.forms if all(f.misfit(v.shape) is None for v in every)]
    forms = [f for f in forms if not any(cuts_blocks(node, f) for node in plain.nodes)]
    window = _pooled(plain)
    found = [
        Alternative(f, LAST if small else f, DIRECT, joined_cycles(plain, f, settings.machine))
        for f in forms
    ]
    if window is not None:
        found = [
            replace(a, cycles=window_cycles(window, a.source, settings.machine)) for a in found
        ]
    read = tuple(v for v in wide if small or v in data)
    beside = tuple(v for v in wide if v not in read)
    return replace(plain, data=read, beside=beside, alternatives=tuple(found), window=window)


def _pooled(site: Site) -> Window | None:
    """The windows of a site that pools."""
    anchor = next((node for node in site.nodes if isinstance(node.op, Pool)), None)
    if anchor is None:
        return None
    assert isinstance(anchor.op, Pool)
    batch, *space = (fixed(d) or 1 for d in anchor.output.shape[:-1])
    channels, size = fixed(anchor.output.shape[-1]) or 1, anchor.output.dtype.size_bytes
    return Window.of(anchor.op, anchor.op.kernel, batch, space, channels, size)


def _convolution(
    graph: Graph, plain: Site, anchor: Node, result: Value, settings: Settings
) -> Site:
    op, (x, weights) = anchor.op, anchor.inputs
    assert isinstance(op, Conv)
    held = graph.constants.get(weights)
    shape = None if held is None else shape_of(op, held, anchor.output)
    if held is None or shape is None or x in graph.constants:
        return plain
    wide = [v for v in plain.reads if v not in graph.constants and not is_small(v) and v is not x]
    if any(not same_shape(v.shape, result.shape) for v in wide):
        return plain
    forms = (LAST,) if result in graph.outputs or is_small(result) else settings.forms
    results = [f for f in forms if f.misfit(result.shape) is None]
    window = _depthwise(op, shape)
    if window is not None:
        cycles = [window_cycles(window, form, settings.machine) for form in results]
        pairs = zip(results, cycles, strict=True)
        found = [Alternative(form, form, DIRECT, each) for form, each in pairs]
    else:
        own = replace(settings, machine=settings.machine.beside(held.nbytes))
        found = [*_conv_alternatives(op, held, shape, x, results, own)]
    beside = tuple(wide)
    return replace(
        plain, data=(x,), beside=beside, alternatives=tuple(found), conv=shape, window=window
    )


def _depthwise(op: Conv, shape: ConvShape) -> Window | None:
    """The windows of a convolution that keeps channels apart."""
    if not op.groups == shape.channels == shape.filters > 1:
        return None
    sizes = shape.batch, shape.space, shape.channels
    return Window.of(op, shape.taps, *sizes, shape.element_bytes)


def _unsized(graph: Graph, plain: Site, anchor: Node, settings: Settings) -> Site:
    """Space of unknown size stays channels last; what is fast depends on the size of a run."""
    op, weights = anchor.op, graph.constants.get(anchor.inputs[-1])
    if not isinstance(op, Conv | ConvTranspose) or weights is None:
        return plain
    machine = settings.machine.beside(weights.nbytes)
    ways = unsized_ways(op, weights, anchor.output, machine, strict=settings.strict)
    found = tuple(Alternative(algorithm=way, cycles=cycles) for way, cycles in ways)
    return replace(plain, alternatives=found)


def _spreading(graph: Graph, plain: Site, anchor: Node, settings: Settings) -> Site:
    """A transposed convolution copies its data with a border, from whatever form they have."""
    op, (x, weights) = anchor.op, anchor.inputs
    assert isinstance(op, ConvTranspose)
    held = graph.constants.get(weights)
    shape = None if held is None else shape_of(op, held, anchor.output)
    forms = [f for f in (LAST, FIRST) if f.misfit(x.shape) is None]
    if held is None or shape is None:
        every = [Alternative(f, LAST) for f in forms]
    else:
        found = _algorithms(op, held, shape, settings)
        machine = settings.machine.beside(held.nbytes)
        every = [_spread_by(a, shape, f, machine) for a in found for f in forms]
    return Site(plain.nodes, plain.results, (x,), (), tuple(every), plain.group, shape)


def _spread_by(algorithm: Algorithm, shape: ConvShape, form: Form, machine: Machine) -> Alternative:
    cycles = algorithm.cycles(shape, machine)
    if algorithm.lines:
        cycles += turned_cycles(shape, form, LAST, machine)
    return Alternative(form, LAST, algorithm, algorithm.price(cycles, shape, machine))


def _algorithms(
    op: Conv | ConvTranspose, weights: Array, shape: ConvShape, settings: Settings
) -> Iterator[Algorithm]:
    """What a convolution of known size may run as, the direct way first."""
    yield from algorithms_of(op, weights, strict=settings.strict)
    yield from lines_of(op, shape, settings.machine)


def _conv_alternatives(
    op: Conv,
    weights: Array,
    shape: ConvShape,
    x: Value,
    results: Sequence[Form],
    settings: Settings,
) -> Iterator[Alternative]:
    machine = settings.machine
    usual = (LAST,) if is_small(x) else settings.forms
    sources = [f for f in usual if f.misfit(x.shape) is None]
    for algorithm in _algorithms(op, weights, shape, settings):
        halo = algorithm.halo(op, shape.space, sized(x.shape[1:-1]) or ())
        for source in sources:
            wanted = replace(source, halo=halo)
            for target in results:
                cycles = laid_out_cycles(algorithm, shape, source, target, machine)
                if cycles is not None:
                    price = algorithm.price(cycles, shape, machine)
                    yield Alternative(wanted, target, algorithm, price)


def _with_border(graph: Graph, plain: Site, settings: Settings) -> Site:
    """A transpose at the border of a graph costs nothing if forms on both sides agree."""
    node, *others = plain.nodes
    if others or not isinstance(node.op, Transpose):
        return plain
    op, x, y = node.op, node.inputs[0], node.outputs[0]
    if x.rank < 3 or sized(x.shape[1:]) is None:
        return plain
    rank, machine = x.rank, settings.machine
    enters = op.order == (0, *range(2, rank), 1) and x in graph.inputs
    leaves = op.order == (0, rank - 1, *range(1, rank - 1)) and y in graph.outputs
    inside = y if enters else x
    if not (enters or leaves) or inside in (*graph.inputs, *graph.outputs):
        return plain
    moved = converted_cycles(Picture.of(inside), machine)
    found: list[Alternative] = []
    for form in settings.forms:
        if form.misfit(inside.shape) is None:
            ends = (LAST, form) if enters else (form, LAST)
            found.append(Alternative(*ends, DIRECT, 0.0 if form == FIRST else moved))
    return Site(plain.nodes, plain.results, (x,), (), tuple(found), plain.group)
