"""A choice for people: sites with their layouts, conversions with their reasons, and the costs.

Everything is worked out from the chosen alternatives: which form a value is written in, which one a
reader wants, and what the next best alternative would have cost. What a value is converted to for
one reader is there for all others, and is paid for once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any

from tilewright.graph.groups import is_view
from tilewright.graph.ir import Graph, Node, Value
from tilewright.graph.ops import Reshape, Transpose
from tilewright.graph.ops.window import Conv, ConvTranspose, Pool
from tilewright.graph.sizes import fixed
from tilewright.layouts.choose import decide
from tilewright.layouts.forms import FIRST, LAST, Form
from tilewright.layouts.sharing import Price
from tilewright.layouts.sites import Alternative, Settings, Site, is_small
from tilewright.layouts.timing import Timing
from tilewright.tensor.printer import print_node

__all__ = ["ConversionRow", "Overview", "SiteRow", "overview"]

Chosen = Sequence[tuple[Site, Alternative]]

PLAIN = "plain"
"""The layout of values that are no feature maps: they are stored as they are."""


@dataclass(frozen=True)
class SiteRow:
    """A kernel, or a view: `reads` are the numbers of sites, or names of inputs.

    `algorithm` is that of a convolution that has a choice. `cycles` are predicted, and None for
    what costs the same in all layouts; they are `margin` times as many as are expected, because the
    algorithm rounds more than a direct one.
    """

    site: int
    reads: tuple[int | str, ...]
    operators: tuple[str, ...]
    computes: str
    algorithm: str
    source: str
    result: str
    value: str
    dtype: str
    shape: tuple[str, ...]
    cycles: float | None
    margin: float
    is_view: bool


@dataclass(frozen=True)
class ConversionRow:
    """A value that is copied into another layout, right before the first of its `readers`."""

    value: str
    shape: tuple[str, ...]
    source: str
    result: str
    writer: int | None
    readers: tuple[int, ...]
    reason: str
    cycles: float


@dataclass(frozen=True)
class Overview:
    """All sites in order, and what other layouts for everything would cost (`others`)."""

    layouts: str
    target: str
    threads: int
    sites: tuple[SiteRow, ...]
    conversions: tuple[ConversionRow, ...]
    cycles: float
    seconds: float
    exact: bool
    others: dict[str, float]

    def to_dict(self) -> dict[str, Any]:
        """Data of JSON."""
        return asdict(self)


def overview(graph: Graph, settings: Settings, chosen: Chosen, *, exact: bool) -> Overview:
    """What was chosen for a graph (as it was before the choice), and what that costs."""
    walk = _Walk(graph, settings, chosen)
    target = settings.machine.target
    others = {
        _asked(other): _Walk(graph, other, decide(graph, other)[0]).cycles
        for other in _others(settings)
    }
    return Overview(
        _asked(settings),
        target.name,
        settings.machine.threads,
        walk.sites,
        walk.conversions,
        walk.cycles,
        walk.cycles / (target.frequency_ghz * 1e9),
        exact,
        others,
    )


def _asked(settings: Settings) -> str:
    """The name of the settings' layouts, as `compile` takes it."""
    return "auto" if settings.fixed is None else str(settings.fixed)


def _others(settings: Settings) -> Iterator[Settings]:
    """The other layouts that could have been asked for."""
    if settings.fixed is not None:
        yield replace(settings, fixed=None)
    for form in settings.forms:
        if form != settings.fixed:
            yield replace(settings, fixed=form)


class _Walk:
    """Once over the sites, with the forms in which values are there."""

    def __init__(self, graph: Graph, settings: Settings, chosen: Chosen) -> None:
        self.graph, self.settings, self.chosen = graph, settings, chosen
        self.maker = {v: k for k, (site, _) in enumerate(chosen) for v in site.results}
        self.maps = {v for site, _ in chosen for v in _feature_maps(site)}
        self.turned = {v for site, _ in chosen for v in _beyond_border(site)}
        self.timing = Timing.of(settings.times, [s for s, _ in chosen], settings.machine)

    @cached_property
    def sites(self) -> tuple[SiteRow, ...]:
        return tuple(self._row(k, *pair) for k, pair in enumerate(self.chosen))

    @cached_property
    def conversions(self) -> tuple[ConversionRow, ...]:
        wanted: dict[tuple[Value, Form], list[int]] = {}
        for k, (site, alternative) in enumerate(self.chosen):
            for value in self._read(site):
                form = site.wanted(value, alternative).as_copied
                if form.plain != self._written(value).plain:
                    wanted.setdefault((value, form), []).append(k)
        return tuple(self._conversion(*key, readers) for key, readers in wanted.items())

    @cached_property
    def cycles(self) -> float:
        """Of everything, as it counts in the choice."""
        own = sum(row.cycles or 0.0 for row in self.sites)
        return own + sum(row.cycles for row in self.conversions)

    def _read(self, site: Site) -> list[Value]:
        return [value for value in site.reads if value not in self.graph.constants]

    def _written(self, value: Value) -> Form:
        maker = self.maker.get(value)
        return LAST if maker is None else self.chosen[maker][1].result

    def _name(self, value: Value, form: Form) -> str:
        if value in self.maps:
            return form.name(value.rank)
        return FIRST.name(value.rank) if value in self.turned else PLAIN

    def _row(self, number: int, site: Site, alternative: Alternative) -> SiteRow:
        reads = [self.maker.get(value, value.name) for value in self._read(site)]
        result, computes = site.results[0], _computes(site)
        return SiteRow(
            number,
            tuple(dict.fromkeys(reads)),
            tuple(dict.fromkeys(node.label for node in site.nodes if node.label)),
            computes,
            alternative.algorithm.name if computes.startswith("conv ") else "",
            self._source(site, alternative),
            self._name(result, alternative.result),
            result.name,
            result.dtype.name,
            _shape(result),
            self._site_cycles(site, alternative) or None,
            alternative.algorithm.margin,
            self._is_view(site, alternative),
        )

    def _source(self, site: Site, alternative: Alternative) -> str:
        """The layout of what is read mainly, as it is there."""
        read = next(iter((*site.data, *site.beside, *self._read(site))), None)
        if read is None:
            return PLAIN
        return self._name(read, self._there(read, site, alternative))

    def _there(self, value: Value, site: Site, alternative: Alternative) -> Form:
        """The form in which a site finds a value: a halo is there only where it was written."""
        written, wanted = self._written(value), site.wanted(value, alternative)
        return written if written.plain == wanted.plain else wanted.as_copied

    def _site_cycles(self, site: Site, alternative: Alternative) -> float:
        """With the borders that it makes itself."""
        total = alternative.cycles
        for value in self._read(site):
            written, wanted = self._written(value), site.wanted(value, alternative)
            total += self._price(value).border(written, wanted)
        return total

    def _is_view(self, site: Site, alternative: Alternative) -> bool:
        """Whether the site is memory under another name, in the layouts that it has."""
        if len(site.nodes) != 1:
            return False
        (node,) = site.nodes
        if isinstance(node.op, Reshape) and len(site.alternatives) > 1:  # weights have its order
            return not self._there(node.inputs[0], site, alternative).halo
        inputs = [_stored(v, self._there(v, site, alternative)) for v in node.inputs]
        outputs = [_stored(v, alternative.result) for v in node.outputs]
        return is_view(Node(node.op, tuple(inputs), tuple(outputs)))

    def _conversion(self, value: Value, form: Form, readers: list[int]) -> ConversionRow:
        written = self._written(value)
        return ConversionRow(
            value.name,
            _shape(value),
            self._name(value, written),
            form.name(value.rank),
            self.maker.get(value),
            tuple(readers),
            self._reason(value, written, form, readers),
            self._price(value).between(written, form),
        )

    def _price(self, value: Value) -> Price:
        return Price.of(value, self.settings.machine, self.timing)

    def _reason(self, value: Value, written: Form, form: Form, readers: Sequence[int]) -> str:
        """Why not all readers take the value as it is; the only one is called `it`."""
        shown, before = form.name(value.rank), written.plain.name(value.rank)
        names = {k: f"site {k}" if len(readers) > 1 else "it" for k in readers}
        for k, name in names.items():
            site = self.chosen[k][0]
            if all(site.wanted(value, a).as_copied == form for a in site.alternatives):
                return f"{name} reads {shown} only"
        if self.settings.fixed is not None:
            return f"{self.settings.fixed} is asked for, wherever there is a choice"
        for k, name in names.items():
            saved = self._saved_by_reader(value, written, k)
            if saved > 0:
                return f"{name} takes {saved:,.0f} cycles more if it reads {before}"
        saved = self._saved_by_writer(value, form)
        if saved > 0:
            return f"site {self.maker[value]} takes {saved:,.0f} cycles more if it writes {shown}"
        _, alternative = self.chosen[readers[0]]
        return f"the result of site {readers[0]} is {alternative.result.name(value.rank)}"

    def _saved_by_reader(self, value: Value, written: Form, reader: int) -> float:
        site, alternative = self.chosen[reader]
        like = [
            a.cycles
            for a in site.alternatives
            if site.wanted(value, a).plain == written.plain
            and (value not in site.data or a.result == alternative.result)
        ]
        return min(like, default=alternative.cycles) - alternative.cycles

    def _saved_by_writer(self, value: Value, form: Form) -> float:
        maker = self.maker.get(value)
        if maker is None:
            return 0.0
        site, alternative = self.chosen[maker]
        like = [
            a.cycles
            for a in site.alternatives
            if a.result.plain == form.plain and a.source.plain == alternative.source.plain
        ]
        return min(like, default=alternative.cycles) - alternative.cycles


def _shape(value: Value) -> tuple[str, ...]:
    return tuple(map(print_node, value.shape))


def _stored(value: Value, form: Form) -> Value:
    return Value(value.name, replace(value.type, layout=form.steps(value.shape)))


def _border(site: Site) -> tuple[Value, Value] | None:
    """(inner, outer) of a transpose between channels first and channels last."""
    node = site.nodes[0]
    if not isinstance(node.op, Transpose) or len(site.nodes) > 1 or len(site.alternatives) == 1:
        return None
    (x,), y = node.inputs, node.output
    return (y, x) if node.op.order[-1] == 1 else (x, y)


def _feature_maps(site: Site) -> tuple[Value, ...]:
    """The values of a site whose layout was chosen."""
    border = _border(site)
    if border is not None:
        return border[:1]
    chosen = (*site.results, *site.data, *site.beside) if len(site.alternatives) > 1 else ()
    return tuple(value for value in chosen if value.rank > 2 and not is_small(value))


def _beyond_border(site: Site) -> tuple[Value, ...]:
    """What is channels first as it is, because the model passes it so."""
    border = _border(site)
    return () if border is None else border[1:]


def _main(site: Site) -> Node:
    anchor = None if site.group is None else site.group.anchor
    return anchor or site.nodes[-1]


def _computes(site: Site) -> str:
    """`conv 3×3 /2`: the main operator of a site, with its window and strides."""
    node = _main(site)
    match node.op:
        case Conv() | ConvTranspose():
            taps = [fixed(d) or 0 for d in node.inputs[1].shape[2:]]
            groups = node.op.groups
            whole = groups > 1 and groups == fixed(node.inputs[0].shape[-1])
            name = "depthwise" if whole and isinstance(node.op, Conv) else node.op.name
        case Pool(kernel=kernel):
            taps, name = list(kernel), "pool"
        case _:
            return node.op.name
    strides = {s for s in node.op.strides if s != 1}
    return f"{name} {'×'.join(map(str, taps))}" + (f" /{max(strides)}" if strides else "")
