"""A choice becomes a graph: layouts in the types of values, algorithms in nodes, conversions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from tilewright.graph.ir import Array, Graph, Node, TensorType, Value, array_type
from tilewright.graph.ops import Map, Op, argument, computed_as
from tilewright.graph.ops.by_size import BySize
from tilewright.graph.ops.window import Conv, ConvTranspose, Pool
from tilewright.graph.ops.winograd import WinogradConv, WinogradTransposed, WinogradWeights
from tilewright.layouts.algorithms import Algorithm
from tilewright.layouts.forms import LAST, Form
from tilewright.layouts.sites import Alternative, Site
from tilewright.tensor.library.tile_weights import short_windows, spread_windows, tile_matrix
from tilewright.tensor.library.tiles import SpreadTiles, Tiles

__all__ = ["Applied", "Conversion", "apply", "converted"]


@dataclass(frozen=True)
class Conversion:
    """A value that is copied from one form into another, and for whom."""

    value: str
    before: Form
    after: Form
    reader: str


@dataclass(frozen=True)
class Applied:
    """A graph as it was chosen, and the conversions that it needs.

    `kernels` numbers the sites that are kernels, by the values that their nodes compute.
    """

    graph: Graph
    conversions: tuple[Conversion, ...]
    kernels: Mapping[Value, int]


def apply(
    graph: Graph,
    chosen: Sequence[tuple[Site, Alternative]],
    given: Mapping[Value, Form] | None = None,
) -> Applied:
    """The graph with the alternatives of all its sites.

    Inputs are stored as they are, unless `given` says otherwise: a part of a graph is handed values
    in the forms that they have there (`alone.py`), and hands on results in theirs.
    """
    return _Writer(graph, chosen, given or {}).run()


class _Writer:
    """Values of the new graph, in the forms in which they are there."""

    def __init__(
        self,
        graph: Graph,
        chosen: Sequence[tuple[Site, Alternative]],
        given: Mapping[Value, Form],
    ) -> None:
        self.graph, self.chosen = graph, chosen
        self.forms: dict[Value, Form] = dict(given)
        self.new: dict[tuple[Value, Form], Value] = {}
        self.nodes: list[Node] = []
        self.constants: dict[Value, Array] = dict(graph.constants)
        self.conversions: list[Conversion] = []
        self.numbers = {site: k for k, (site, _) in enumerate(chosen) if site.group is not None}
        self.kernels: dict[Value, int] = {}

    def run(self) -> Applied:
        for site, alternative in self.chosen:
            self.forms.update(dict.fromkeys(site.results, alternative.result))
        for value in self.graph.constants:
            self.new[value, LAST] = value
        inputs = [self._written(value) for value in self.graph.inputs]
        site_of = {node: pair for pair in self.chosen for node in pair[0].nodes}
        for node in self.graph.nodes:
            self._add(node, *site_of[node])
        outputs = [self.new[v, self._form_of(v).plain] for v in self.graph.outputs]
        made = Graph(
            self.graph.name,
            tuple(inputs),
            tuple(outputs),
            tuple(self.nodes),
            self.constants,
            self.graph.output_names,
        )
        return Applied(made.with_nodes(made.nodes), tuple(self.conversions), self.kernels)

    def _add(self, node: Node, site: Site, alternative: Alternative) -> None:
        inputs = [self._read(value, node, site, alternative) for value in node.inputs]
        op: Op = node.op
        if isinstance(op, Conv | ConvTranspose) and alternative.algorithm.tiles is not None:
            op, inputs = self._by(alternative.algorithm, op, inputs)
        elif isinstance(op, Conv | ConvTranspose) and _has_lines(site):
            op = replace(op, lines=alternative.algorithm.lines)
        outputs = tuple(self._written(value) for value in node.outputs)
        if site in self.numbers:
            self.kernels.update(dict.fromkeys(outputs, self.numbers[site]))
        loops = alternative.loops if isinstance(node.op, Conv | Pool) else None
        self.nodes.append(Node(op, tuple(inputs), outputs, node.label, loops))

    def _written(self, value: Value) -> Value:
        """The value in the form in which it is written; what stays inside of a site has none."""
        form = self._form_of(value)
        steps = form.steps(value.shape) if form != LAST else ()
        made = Value(value.name, replace(value.type, layout=steps)) if steps else value
        self.new[value, form.plain] = made
        return made

    def _form_of(self, value: Value) -> Form:
        return self.forms.get(value, LAST)

    def _read(self, value: Value, node: Node, site: Site, alternative: Alternative) -> Value:
        if value in self.graph.constants or value not in site.reads:
            return self.new[value, self._form_of(value).plain]
        form = site.wanted(value, alternative)
        written = self._form_of(value).plain
        if form.plain == written:
            return self.new[value, written]
        if (value, form.as_copied) not in self.new:  # tiles have the border of those who read them
            self._convert(value, form.as_copied, node)
        return self.new[value, form.as_copied]

    def _convert(self, value: Value, form: Form, node: Node) -> None:
        before = self._form_of(value)
        copy = converted(value, self.new[value, before.plain], form, node.label)
        self.nodes.append(copy)
        self.new[value, form] = copy.output
        self.conversions.append(Conversion(value.name, before, form, node.label))

    def _by(
        self, algorithm: Algorithm, op: Conv | ConvTranspose, inputs: list[Value]
    ) -> tuple[Op, list[Value]]:
        """The operator of an algorithm with its transformed weights.

        They are only made where they are stored: there may be many times as many of them.
        """
        x, weights = inputs
        if not algorithm.places:
            made, held = self._tiled(algorithm.tiles, op, weights)
            return made, [x, held]
        large, of_large = self._tiled(algorithm.tiles, op, weights)
        small, of_small = self._tiled(algorithm.below, op, weights)
        return BySize(large, small, algorithm.places), [x, of_large, of_small]

    def _tiled(
        self, tiles: Tiles | None, op: Conv | ConvTranspose, weights: Value
    ) -> tuple[Op, Value]:
        if tiles is None:
            return op, weights
        plain = self.constants[weights]
        made: Op
        if isinstance(op, Conv):
            windows, one, lead = short_windows(plain, tiles), tiles, 0
            how = (op.strides, op.dilations, op.pads, op.groups, op.dtype)
            made = WinogradConv(tiles.taps, tiles.results, *how)
        else:
            assert isinstance(tiles, SpreadTiles)
            windows, one = spread_windows(plain, tiles, op.groups), tiles.of_one_image
            lead = len(tiles.images)
            spread = (op.strides, op.pads, op.extra, op.groups, op.dtype)
            made = WinogradTransposed(tiles.taps, tiles.results, *spread)
        name = f"{weights.name}_{Algorithm(tiles).name}"
        matrix = self._constant(f"{name}_matrix", tile_matrix(one))
        held = self._constant(f"{name}_windows", windows)
        transform = WinogradWeights(lead, tuple(f.tile for f in one.filters))
        (kind,) = transform.infer([matrix.type, held.type])
        value = Value(name, kind)
        self.nodes.append(Node(transform, (matrix, held), (value,), weights.name))
        return made, value

    def _constant(self, name: str, array: Array) -> Value:
        value = Value(name, array_type(array))
        self.constants[value] = array
        return value


def converted(value: Value, stored: Value, form: Form, label: str = "") -> Node:
    """The copy of a value, as it is stored, into a form."""
    name = f"{value.name}_{form.name(value.rank)}"
    made = Value(name, TensorType(value.dtype, value.shape, form.steps(value.shape)))
    copy = Map(argument(0, computed_as(value.dtype)), 1, value.dtype)
    return Node(copy, (stored,), (made,), label)


def _has_lines(site: Site) -> bool:
    """Whether the choice was between filters and places in vectors."""
    return any(a.algorithm.lines for a in site.alternatives)
