"""Kernels of single sites and conversions, as a model contains them that chose so.

A tuner measures alternatives of a site by these. Their programs are those that `plan_kernels` makes
for the whole model, whose records are found by the same keys.
"""

from __future__ import annotations

from collections.abc import Mapping

from tilewright.graph.grouping import group_nodes
from tilewright.graph.ir import Graph, Value
from tilewright.graph.ops import Concat
from tilewright.layouts.alone import conversion_alone, site_alone
from tilewright.layouts.forms import Form
from tilewright.layouts.sites import Alternative, Site
from tilewright.model.joins import lie_in_order
from tilewright.model.kernel_plan import plan_kernels
from tilewright.model.kernels import KernelTask
from tilewright.schedule.recipes.context import NOMINAL_THREADS

__all__ = ["conversion_kernel", "kernel_of", "kernels_of"]


def kernels_of(
    graph: Graph,
    site: Site,
    alternative: Alternative,
    threads: int = NOMINAL_THREADS,
    given: Mapping[Value, Form] | None = None,
) -> list[KernelTask]:
    """The kernels that a site is, mostly one.

    None, if it moves nothing: a view, a transpose between forms that agree, parts that are written
    where they belong. Several, if the size of a run decides. `given` has forms of values that are
    not stored as the alternative wants them.
    """
    made = site_alone(graph, site, alternative, given)
    (first, *_) = made.graph.nodes
    if isinstance(first.op, Concat) and lie_in_order(first, first.op):
        return []
    planned = plan_kernels(made.graph, threads, group_nodes(made.graph, made.kernels))
    return planned.kernels


def kernel_of(
    graph: Graph,
    site: Site,
    alternative: Alternative,
    threads: int = NOMINAL_THREADS,
    given: Mapping[Value, Form] | None = None,
) -> KernelTask | None:
    """The only kernel of a site; None if there is none to measure, or not a single one."""
    found = kernels_of(graph, site, alternative, threads, given)
    return found[0] if len(found) == 1 else None


def conversion_kernel(
    value: Value, before: Form, after: Form, threads: int = NOMINAL_THREADS
) -> KernelTask | None:
    """The copy of a value between two forms; None where both are stored alike."""
    if before == after:
        return None
    found = plan_kernels(conversion_alone(value, before, after), threads).kernels
    return found[0] if found else None
