"""The examples, by family of codes."""

from tilewright.explain.example import Example
from tilewright.explain.examples import (
    artefacts,
    calls,
    clusters,
    copying,
    files,
    graphs,
    inference,
    instructions,
    layouts,
    levels,
    loops,
    meaning,
    measuring,
    models,
    moving,
    path,
    records,
    reductions,
    running,
    sessions,
    softmaxes,
    targets,
    texts,
    tuning,
    well_formed,
)

__all__ = ["EXAMPLES"]

_MODELS = (artefacts, graphs, inference, models, files, sessions, records)
_STEPS = (loops, moving, copying, reductions, softmaxes, layouts, instructions)
_PROGRAMS = (well_formed, levels, meaning, running)
_TUNING = (tuning, measuring, clusters)

EXAMPLES: dict[str, Example] = {
    example.code: example
    for module in (*_MODELS, calls, path, texts, *_STEPS, targets, *_PROGRAMS, *_TUNING)
    for example in module.EXAMPLES
}
"""One example for each code that a user can meet."""
