"""Whether a kernel finds its constants in the caches.

Activations were just written by the kernel before, and are warm. Weights are warm where those of
the whole model fit into the last cache that a core can count on: each run finds them where the last
one left them. Otherwise all others have passed through it in between, and each run of a kernel
reads its own from memory; so copies of them are used in turns, twice as many bytes as it has.
"""

from __future__ import annotations

from tilewright.target import Target

__all__ = ["cold_bytes_of"]


def cold_bytes_of(own_bytes: int, model_bytes: int, target: Target) -> int:
    """Bytes of constants that pass between two runs with the same copy; 0 if they stay warm."""
    last = max(level.size_bytes for level in target.machine.levels)
    return 2 * last if own_bytes and model_bytes > last else 0
