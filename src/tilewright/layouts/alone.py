"""A site, or a conversion, as a graph of its own: what a tuner measures of an alternative.

It is written by what writes whole graphs (`apply.py`), so that its kernel is the one that a model
has which chose the alternative. Inputs and results are stored as they are inside of that model,
which a graph for callers may not say: these graphs are for kernels only, and are not verified.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tilewright.graph.ir import Graph, Value
from tilewright.layouts.apply import Applied, apply, converted
from tilewright.layouts.forms import LAST, Form
from tilewright.layouts.sites import Alternative, Site

__all__ = ["conversion_alone", "site_alone"]


def site_alone(
    graph: Graph, site: Site, alternative: Alternative, given: Mapping[Value, Form] | None = None
) -> Applied:
    """The nodes of a site, with everything it reads as inputs.

    Data have the form that the alternative reads, with the zeros around them that it wants, and
    what is read beside them has that of the result. `given` has the forms of values that are there
    otherwise: with a wider border, or with none.
    """
    inputs = tuple(v for v in site.reads if v not in graph.constants)
    forms = {value: site.wanted(value, alternative) for value in inputs} | dict(given or {})
    constants = {v: graph.constants[v] for v in site.reads if v in graph.constants}
    part = Graph(graph.name, inputs, site.results, site.nodes, constants)
    return apply(part, [(site, alternative)], forms)


def conversion_alone(value: Value, before: Form, after: Form) -> Graph:
    """The copy of a value from one form into another, with its borders."""
    steps = before.steps(value.shape) if before != LAST else ()
    stored = Value(value.name, replace(value.type, layout=steps))
    copy = converted(value, stored, after)
    return Graph("conversion", (stored,), copy.outputs, (copy,))
