"""Tasks that searches are compared on: layers of ResNet-18 (C1 to C12), and products.

A layer has all its decisions free: every algorithm and layout that its site offers is a variant,
and so are layouts of its template, drawn at random with a seed. It stands in a model of its own
with channels first at both ends, as models have them.
"""

from __future__ import annotations

import tempfile
from itertools import islice
from pathlib import Path
from typing import Final

import numpy as np

from benchmarks.convolutions import TAGS
from benchmarks.kinds import with_file
from benchmarks.programs import PROGRAMS
from benchmarks.workloads import Workload
from tilewright.model.compilation import Chosen
from tilewright.model.compiler import AUTO, Compiling
from tilewright.pipeline import ModelPipeline
from tilewright.target import Target
from tilewright.tuning.joint import JointSites, near_the_chosen
from tilewright.tuning.proposals import Proposals
from tilewright.tuning.task import Task, task_of_func

__all__ = ["FRESH", "HISTORY", "LAYERS", "NAMES", "OWN_SHARE", "TAGGED", "anywhere"]
__all__ += ["layer_model", "task_named", "workload_named"]

TAGGED: Final = {tag: layer for layer, tag in TAGS.items()}
LAYERS: Final = tuple(tag for tag in TAGGED if tag.startswith("C"))
PRODUCTS: Final = {"128x3072x768": (128, 3072, 768), "1024x1024x1024": (1024, 1024, 1024)}
NAMES: Final = (*LAYERS, *PRODUCTS)
HISTORY: Final = tuple(f"C{n}" for n in range(1, 7))
FRESH: Final = (*(f"C{n}" for n in range(7, 13)), "1024x1024x1024")
"""Tasks that others teach, and those that they are taught to."""
OWN_SHARE: Final = 0.5
"""Of the time of its model: a layer has this, and what converts its data does not."""
VARIANTS: Final = 64
"""Of a layer at the most, those of the untuned choice and of the template together."""


def task_named(name: str, target: Target, threads: int = 1, drawn: int = 0, seed: int = 0) -> Task:
    """The task of a layer (C1 to C12) or of a product (MxNxK).

    So many layouts of the template are `drawn` with a seed beside those of the untuned choice, as
    far as there is room: searches can be compared that have the same ones.
    """
    if name in LAYERS:
        return _layer(name, target, threads, drawn, seed)
    program = PROGRAMS["matmul"](*PRODUCTS[name])
    return task_of_func(program.func, target, program.constants, threads)


def workload_named(name: str) -> Workload:
    """The same, or a depthwise layer (D1 to D9), as a workload: with inputs and a result."""
    if name in PRODUCTS:
        return Workload("matmul", "matmul", PRODUCTS[name])
    return Workload("conv", *TAGGED[name])


def anywhere(name: str, target: Target, threads: int, count: int, seed: int) -> Task:
    """A layer with so many variants that are drawn at random from all algorithms and layouts.

    Beside the chosen one, which times are compared with.
    """
    sites = JointSites(layer_model(name, target), threads, OWN_SHARE)
    (own,) = sites.open
    proposals = Proposals(sites.layouts(own), np.random.default_rng(seed))
    found = sites.task(own, proposals.drawn(), sites.surroundings(), 1 + count)
    assert found is not None
    return found.task


def layer_model(name: str, target: Target) -> Chosen:
    """A layer in a model of its own, up to the choice of algorithm and layouts."""
    with tempfile.TemporaryDirectory() as folder:
        path = with_file(workload_named(name), Path(folder)).path
        how = Compiling(target, None, "default", AUTO)
        made = ModelPipeline(how).run(str(path), until="choose").value
    assert isinstance(made, Chosen)
    return made


def _layer(name: str, target: Target, threads: int, drawn: int, seed: int) -> Task:
    sites = JointSites(layer_model(name, target), threads, OWN_SHARE)
    (own,) = sites.open
    proposals = Proposals(sites.layouts(own), np.random.default_rng(seed))
    untuned = near_the_chosen(own, float("inf"), VARIANTS - drawn)
    for alternative in untuned:
        proposals.see(alternative)
    more = islice(proposals.drawn(), drawn)
    found = sites.task(own, [*untuned, *more], sites.surroundings(), VARIANTS)
    assert found is not None
    return found.task
