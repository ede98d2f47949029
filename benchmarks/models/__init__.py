"""The real models that tilewright is held against: a registry, and the files made of it.

`python -m benchmarks.models make` writes them, `python -m benchmarks models` measures them.
"""

from benchmarks.models.registry import MODELS, find
from benchmarks.models.spec import Arrays, Model, Sizes

__all__ = ["MODELS", "Arrays", "Model", "Sizes", "find"]
