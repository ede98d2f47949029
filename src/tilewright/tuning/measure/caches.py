"""Cold or warm: what a kernel finds of its constants when a model runs it.

A run of a model reads all its weights, each once. If all of them together fit into the cache that a
core can count on (its share of the last one), they are still there in the next run, and a kernel is
measured with the same constants over and over: warm. If they do not, the weights of other kernels
have driven its own out by the time it runs again, and it is measured with constants that are cold:
copies in turns, so many that what the others read passes between two uses of one, but no more than
twice the cache, which is enough to drive anything out.

Data and results are warm in both cases, as far as caches hold them: the kernel before has just
written what this one reads. A model of which only one kernel has weights keeps them warm or drives
them out by itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from tilewright.layouts.costs import far_part
from tilewright.model.kernels import KernelTask
from tilewright.model.made_up import parameters_of
from tilewright.model.standalone import sizes_of
from tilewright.target import Target

__all__ = ["cold_bytes_of", "constant_bytes"]


def cold_bytes_of(
    kernel: KernelTask, weights_bytes: int, target: Target, sizes: Mapping[str, int] | None = None
) -> int:
    """Bytes that pass through the caches between two runs of a kernel, for `Job.cold_bytes`.

    `weights_bytes` are those of all kernels of the model, its own included.
    """
    own = constant_bytes(kernel, sizes)
    if not own or not far_part(weights_bytes, target):
        return 0
    cache = max(c.share_bytes for c in target.caches)
    return max(0, min(weights_bytes - own, 2 * cache))


def constant_bytes(kernel: KernelTask, sizes: Mapping[str, int] | None = None) -> int:
    """Bytes of the constants that one run of a kernel reads, as they are before packing."""
    params = parameters_of(kernel, sizes_of(kernel, sizes or {}))
    return sum(prod(p.shape) * p.dtype.size_bytes for p in params if p.is_constant)
